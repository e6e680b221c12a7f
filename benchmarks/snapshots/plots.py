"""The figures of a run beside those that were published.

    python -m benchmarks.snapshots.plots RESULTS.json docs/figures/ [PAGE.md]

draws an SVG for each part that was run; with a page, also writes that.  What is dashed was
measured by others, on other machines: compare how lines grow.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.snapshots import published
from benchmarks.snapshots.page import write_page
from cairnfs.svg import Axis, Line, draw

Stores = dict[str, dict[str, list[dict[str, Any]]]]
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshots.plots")
    parser.add_argument("results", type=Path, help="what `make bench-snapshots` has written")
    parser.add_argument("figures", type=Path, help="the folder for the drawings")
    parser.add_argument("page", type=Path, nargs="?", help="a page that shows them")
    options = parser.parse_args(arguments)
    try:
        results = json.loads(options.results.read_text())
    except FileNotFoundError:
        parser.error(f"{options.results} does not exist: run `make bench-snapshots` first")
    drawn = draw_all(results, options.figures)
    print(f"{len(drawn)} figures are in {options.figures}")
    if options.page is not None:
        options.page.write_text(write_page(results, drawn, options.page.parent))
        print(f"{options.page} shows them")
    return 0


def draw_all(results: dict[str, Any], directory: Path) -> dict[str, Path]:
    """Draw what there are figures for; the files, by part."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for part, make in FIGURES.items():
        stores: Stores = {kind: parts for kind, parts in results["stores"].items() if part in parts}
        if stores:
            drawn[part] = directory / f"snapshots-{part}.svg"
            drawn[part].write_text(make(stores))
    return drawn


def _lines(stores: Stores, part: str, x: str, columns: dict[str, str]) -> Iterator[Line]:
    """A line for each store and column; `columns` says what they are called."""
    for kind, parts in stores.items():
        for column, name in columns.items():
            points = [(row[x], row[column]) for row in parts[part] if row[column] is not None]
            yield Line(f"{NAMES[kind]}{name}", points)


def _create(stores: Stores) -> str:
    lines = [*_lines(stores, "create", "files", {"snapshot_ms": ""})]
    for parts in stores.values():
        if "peer" in parts:
            rows = parts["peer"]
            lines.append(Line("through Hadoop's client", _pairs(rows, "files", "cairnfs_ms")))
            lines.append(Line("Apache HDFS, the same", _pairs(rows, "files", "hdfs_ms")))
    sizes = [row["files"] for row in next(iter(stores.values()))["create"]]
    thesis = [(size, published.THESIS_CREATE_MS) for size in (sizes[0], sizes[-1])]
    lines.append(Line("000, section 4.1.2", thesis, is_published=True))
    paper = [(published.PAPER_CREATE_FILES, published.PAPER_CREATE_S * 1000)]
    lines.append(Line("003, figure 8 (grows linearly)", paper, is_published=True))
    x, y = Axis("files", is_logarithmic=True), Axis("ms", is_logarithmic=True)
    return draw("Taking a snapshot", x, y, lines)


def _memory(stores: Stores) -> str:
    columns = {"bytes_per_snapshot": ", rows", "namenode_bytes_per_snapshot": ", NameNode"}
    lines = [*_lines(stores, "memory", "files", columns)]
    sizes = [row["files"] for row in next(iter(stores.values()))["memory"]]
    paper = [(size, published.PAPER_MEMORY_BYTES) for size in (sizes[0], sizes[-1])]
    lines.append(Line("003, figure 9", paper, is_published=True))
    return draw("What a snapshot takes", Axis("files", is_logarithmic=True), Axis("bytes"), lines)


def _listing(stores: Stores) -> str:
    columns = {"snapshot_s": ", snapshot", "now_s": ", present"}
    lines = [*_lines(stores, "listing", "changes", columns)]
    thesis = [
        ((n + 1) * published.ROUND_CHANGES, seconds)
        for n, seconds in enumerate(published.THESIS_LISTING_S)
    ]
    lines.append(Line("000, figure 4.1, snapshot", thesis, is_published=True))
    return draw("Listing a directory", Axis("changes since the snapshot"), Axis("s"), lines)


def _rollback(stores: Stores) -> str:
    columns = {"seconds": ", roll-back", "bulk_copy_s": ", one bulk copy"}
    lines = [*_lines(stores, "rollback", "rows", columns)]
    for name, column in (("000, figure 4.6", "clusterj_s"), ("000, figure 4.4", "mysql_s")):
        points = [(row.rows, getattr(row, column)) for row in published.ROLLBACK]
        lines.append(Line(name, points, is_published=True))
    return draw("Roll-back", Axis("rows"), Axis("s", is_logarithmic=True), lines)


def _append(stores: Stores) -> str:
    columns = {"selective_s": ", selective", "always_s": ", always copied"}
    lines = [*_lines(stores, "append", "snapshots", columns)]
    return draw("A log that is appended to", Axis("snapshots"), Axis("s"), lines)


def _coverage(stores: Stores) -> str:
    names = {"joined": "000, 3.2.6.1", "listed": "000, 3.2.6.2", "carried": "ours"}
    lines = []
    for kind, parts in stores.items():
        for way, name in names.items():
            rows = [row for row in parts["coverage"] if row["way"] == way]
            lines.append(Line(f"{NAMES[kind]}, {name}", _pairs(rows, "snapshots", "check_us")))
    y = Axis("µs for each changed row", is_logarithmic=True)
    return draw("Knowing what snapshots need", Axis("nested snapshots"), y, lines)


def _pairs(rows: Sequence[dict[str, Any]], x: str, y: str) -> list[tuple[float, float]]:
    return [(row[x], row[y]) for row in rows]


FIGURES: dict[str, Callable[[Stores], str]] = {
    "create": _create,
    "memory": _memory,
    "listing": _listing,
    "rollback": _rollback,
    "append": _append,
    "coverage": _coverage,
}


if __name__ == "__main__":
    sys.exit(main())
