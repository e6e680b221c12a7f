"""WebHDFS on CairnFS answers as on HDFS.

What HDFS answers is in golden.txt, recorded by `record.py`; the differences that there are, each
with its reason, in docs/webhdfs.md.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from tests.webhdfs.exchange import find_differences, read_script, read_transcript, run_script
from tests.webhdfs.record import GOLDEN, SCRIPT

from cairnfs.testing.cluster import Cluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "webhdfs.md"


def requests_in(section: str) -> set[str]:
    """The requests that a section's table names in its first column."""
    text = DOCUMENT.read_text().partition(f"### {section}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return {request for row in rows for request in re.findall(r"`([^`]*)`", row)}


def test_requests_are_answered_as_by_hdfs(cluster: Cluster) -> None:
    address = cluster.namenodes[0].http_address
    entries = run_script(read_script(SCRIPT), address, getpass.getuser())
    differences = find_differences(read_transcript(GOLDEN), entries)
    to_come, different = requests_in("Not there yet"), requests_in("Otherwise different")
    unexpected = [
        f"{golden}\n--- on CairnFS\n{ours}"
        for golden, ours in differences
        if golden.request not in to_come | different
    ]
    assert not unexpected, "\n\n" + "\n\n".join(unexpected)
    # What is to come may have come; all else that differs is to be known.
    assert {golden.request for golden, _ in differences} - to_come == different
