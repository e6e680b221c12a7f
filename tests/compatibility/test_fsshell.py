"""Hadoop's own shell on CairnFS does and says what it does on HDFS.

What HDFS says is in golden/, recorded by `record.py`; the differences that there are, each with
its reason, in docs/compatibility.md: not one more, and not one less.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

import pytest
from tests.compatibility.record import GOLDEN, SCRIPTS, run_on
from tests.compatibility.shell import why_not
from tests.compatibility.transcript import find_differences, read_transcript

from cairnfs.testing.cluster import Cluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def known_differences(script: str) -> set[str]:
    """The commands that the table of the script's section names in its first column."""
    text = DOCUMENT.read_text().partition(f"## {script}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return {command for row in rows for command in re.findall(r"`([^`]*)`", row)}


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("script", SCRIPTS)
def test_fsshell_behaves_as_on_hdfs(tmp_path: Path, script: str) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        entries = run_on(cluster.uri, getpass.getuser(), script)
    differences = find_differences(read_transcript(GOLDEN / script), entries)
    known = known_differences(script)
    unexpected = [
        f"{golden}\n--- on CairnFS\n{ours}"
        for golden, ours in differences
        if golden.command not in known
    ]
    assert not unexpected, "\n\n" + "\n\n".join(unexpected)
    assert {golden.command for golden, _ in differences} == known
