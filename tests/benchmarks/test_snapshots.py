"""The benchmarks of snapshots, in sizes of seconds: every part runs, and is drawn and judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.namespaces import POSTGRES, SQLITE
from benchmarks.snapshots import plots
from benchmarks.snapshots.appending import Log
from benchmarks.snapshots.bars import judge
from benchmarks.snapshots.command import PARTS, PEER, run_parts
from benchmarks.snapshots.published import ROLLBACK
from benchmarks.snapshots.sizes import Sizes

TINY = Sizes(
    name="tiny",
    files=(10, 100),
    repeats=1,
    listing_rounds=3,
    diff_limit_s=60.0,
    overhead_calls=10,
    overhead_rounds=1,
    deleted=50,
    quiet_s=0.2,
    log=Log(snapshots=(0, 1), transactions=2, first_bytes=10_000, rounds=1),
    covered_files=50,
    nested=(5,),
    peer_files=(10,),
)


def run(parts: list[str], store: str, directory: Path) -> dict[str, Any]:
    return run_parts(
        parts,
        TINY,
        stores=[store],
        json_file=directory / "results.json",
        peer_home=directory / "nowhere",
        directory=directory,
    )


def test_every_part_runs(tmp_path: Path) -> None:
    found = run([*PARTS, PEER], SQLITE, tmp_path)["stores"][SQLITE]
    assert set(found) == set(PARTS)  # there is no HDFS
    assert [row["changes"] for row in found["listing"]] == [0, 5, 10, 15]
    assert len(found["rollback"]) == len(ROLLBACK)
    assert found["append"][1]["selective_copied_mib"] == 0
    assert found["append"][1]["always_copied_mib"] > 0
    assert found["delete"][0]["versions"] >= TINY.deleted

    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    assert plots.main([str(tmp_path / "results.json"), str(page.parent / "f"), str(page)]) == 0
    text = page.read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == len(plots.FIGURES)
    for link in links:
        assert (page.parent / link).read_text().endswith("</svg>\n")
    assert "these figures mean nothing" in text


def test_they_run_on_postgresql(tmp_path: Path) -> None:
    parts = [part for part in PARTS if part != "append"]  # of which clients make the most part
    found = run(parts, POSTGRES, tmp_path)["stores"][POSTGRES]
    assert set(found) == set(parts)
    assert all(row["seconds"] for row in found["diff"])
    assert [row["changes"] for row in found["listing"]] == [0, 5, 10, 15]


def test_a_part_that_is_run_alone_leaves_the_others(tmp_path: Path) -> None:
    run(["coverage"], SQLITE, tmp_path)
    run(["create"], SQLITE, tmp_path)
    written = json.loads((tmp_path / "results.json").read_text())
    assert set(written["stores"][SQLITE]) == {"coverage", "create"}
    assert {bar["name"].split(":")[0] for bar in written["bars"]} == {SQLITE}


def test_the_bars_tell_what_is_met() -> None:
    listing = [
        {"changes": 0, "ratio": 1.1, "snapshot_s": 1.1, "now_s": 1.0},
        {"changes": 10, "ratio": 1.2, "snapshot_s": 1.2, "now_s": 1.0},
        {"changes": 20, "ratio": 1.6, "snapshot_s": 1.6, "now_s": 1.0},
    ]
    delete = [{"ratio": 1.9, "busy_p99_ms": 1.9, "quiet_p99_ms": 1.0}]
    bars = judge({"stores": {SQLITE: {"listing": listing, "delete": delete}}})
    assert [bar.passed for bar in bars] == [False, False, True]


def test_published_rows_are_those_of_the_thesis() -> None:
    assert [row.rows for row in ROLLBACK] == [1_200_000 + 100_000 * n for n in range(9)]
    assert all(row.deleted + row.alone + row.modified == 1_000_000 for row in ROLLBACK)
