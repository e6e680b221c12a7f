"""Send the requests to a WebHDFS and write down its answers: `golden.txt` is from HDFS.

    python -m tests.webhdfs.record 127.0.0.1:9870 OUTPUT [--superuser NAME]

The file system must be empty.
"""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path

from tests.webhdfs.exchange import read_script, run_script, write_transcript

HERE = Path(__file__).parent
SCRIPT = HERE / "requests.txt"
GOLDEN = HERE / "golden.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the NameNode's HTTP server")
    parser.add_argument("output", type=Path)
    parser.add_argument("--superuser", default=getpass.getuser())
    given = parser.parse_args()
    entries = run_script(read_script(SCRIPT), given.address, given.superuser)
    write_transcript(given.output, entries)


if __name__ == "__main__":
    main()
