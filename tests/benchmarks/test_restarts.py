"""The benchmark of restarts, without Apache HDFS: its files are made by our own client."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from benchmarks.restarts import AFTER_CREATE, AT_REST, BARS, TOP, restart, restarts_table
from benchmarks.servers import CAIRNFS, HDFS, Cairn

import cairnfs

FILES = 3


def test_a_killed_namenode_is_back_with_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.restarts.BAR_FILES", FILES)
    server = Cairn(tmp_path / "cluster")
    try:
        server.start()
        with cairnfs.connect(server.url) as fs:
            for number in range(FILES):
                fs.create(f"{TOP}/d0/f{number}").close()
        os.kill(int(server.namenode_pid()), signal.SIGKILL)  # as who has filled it does
        rows = [restart(server, FILES, how) for how in (AFTER_CREATE, AT_REST)]
        with pytest.raises(AssertionError, match="has 3 of 4 files"):
            restart(server, FILES + 1, "killed, and a file is missing")
    finally:
        server.stop()
    for row in rows:
        assert 0 < row["first_answer_s"] < row["first_change_s"]
        assert min(row["resident_mb"], row["resident_listed_mb"]) > 10
        assert row["bars"] == BARS


def test_the_table_says_what_is_reached() -> None:
    figures = {"first_change_s": 4.0, "resident_mb": 100.0, "resident_listed_mb": 600.0}
    row = {"how": AT_REST, "files": 1_000_000, "first_answer_s": 2.5, **figures}
    rows = [{**row, "server": CAIRNFS, "bars": BARS}, {**row, "server": HDFS, "bars": {}}]
    ours, theirs = restarts_table(rows).splitlines()[2:]
    assert ours.endswith("| first answer s <= 3, resident listed MB ABOVE 500 |")
    assert theirs.endswith(" - |")
