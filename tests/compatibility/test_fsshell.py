"""Hadoop's own shell on CairnFS does and says what it does on HDFS.

What HDFS says is in golden/, recorded by `record.py`; the differences that there are, each with
its reason, in docs/compatibility.md: not one more, and not one less.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

import pytest
from tests.compatibility.record import GOLDEN, run_on
from tests.compatibility.shell import why_not
from tests.compatibility.transcript import find_differences, read_transcript

from cairnfs.testing.cluster import Cluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def known_differences() -> set[str]:
    """The commands that the document's table names in its first column."""
    return set(re.findall(r"^\| `([@-][^`]*)` \|", DOCUMENT.read_text(), re.MULTILINE))


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_fsshell_behaves_as_on_hdfs(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        entries = run_on(cluster.uri, getpass.getuser())
    differences = find_differences(read_transcript(GOLDEN), entries)
    unexpected = [
        f"{golden}\n--- on CairnFS\n{ours}"
        for golden, ours in differences
        if golden.command not in known_differences()
    ]
    assert not unexpected, "\n\n" + "\n\n".join(unexpected)
    assert {golden.command for golden, _ in differences} == known_differences()
