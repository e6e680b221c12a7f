"""The examples of the pages on Python and on snapshots, and of the README, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cairnfs
from cairnfs.testing.cluster import Cluster

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
SNAPSHOTS = PAGE.parent / "snapshots.md"
README = PAGE.parents[1] / "README.md"
EXAMPLES = [
    example.replace("127.0.0.1:8020", "namenode:8020")
    for page in (PAGE, SNAPSHOTS, README)
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    if ("namenode:8020" in example or "127.0.0.1:8020" in example) and "spark." not in example
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("\n")[-2][:30])
def test_examples_run(
    cluster: Cluster, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "pandas" in example:
        pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "file").write_bytes(b"result")
    exec(example.replace("namenode:8020", cluster.namenodes[0].address), {"cairnfs": cairnfs})
    if "download" in example:
        assert (tmp_path / "results-again" / "file").read_bytes() == b"result"


def test_every_call_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)", PAGE.read_text()))
    calls = {name for name in dir(cairnfs.FileSystem) if not name.startswith("_")}
    assert calls - listed <= {"absolute_path", "close", "home_directory", "url", "user"}
