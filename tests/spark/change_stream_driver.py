"""A program of its own: streams the changes of a directory to Parquet until it is killed.

`change_stream_driver.py ARGUMENTS`, a file of JSON: `hadoop` settings, the `url` of the directory,
and a `local` directory, in which checkpoint and sink are; with `once` it ends when all that has
happened is there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.spark.sessions import make_session


def main(arguments: str) -> None:
    given = json.loads(Path(arguments).read_text())
    local = Path(given["local"])
    spark = make_session(given["hadoop"], local)
    changes = spark.readStream.format("cairn").option("table", "changes").load(given["url"])
    writer = (
        changes.writeStream.format("parquet")
        .option("checkpointLocation", f"file://{local}/checkpoint")
        .trigger(**({"availableNow": True} if given["once"] else {"processingTime": "0 seconds"}))
    )
    writer.start(f"file://{local}/sink").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
