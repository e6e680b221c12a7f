"""`cairn job usage`: its options, and a report as tables."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from cairnfs.cli.output import BOLD, Output, format_bytes

if TYPE_CHECKING:
    from cairnfs.jobs import UsageReport
    from cairnfs.jobs.usage import UsageRow


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIRECTORY")
    parser.add_argument("--depth", type=int, default=2, help="of directories in the report (2)")
    parser.add_argument("--top", type=int, default=20, help="rows of each table (20)")
    parser.add_argument(
        "--small",
        type=int,
        default=1 << 20,
        metavar="BYTES",
        help="shorter files count as small (1048576)",
    )
    parser.add_argument("--since", metavar="SNAPSHOT", help="tell what has grown since then")
    parser.add_argument("--until", metavar="SNAPSHOT", help="look at a snapshot, not at now")
    parser.add_argument("--output", metavar="URL", help="all rows as Parquet, in a new directory")
    parser.add_argument("--html", metavar="FILE", help="the report as a page with plots")


def write_page(report: UsageReport, target: str) -> None:
    """To a local file, or anything with a URL."""
    from cairnfs.jobs.places import Place
    from cairnfs.jobs.usage_page import make_page

    url = target if "://" in target else f"file://{os.path.abspath(target)}"
    directory, _, name = url.rpartition("/")
    Place(directory).write(name, make_page(report).encode(errors="replace"))


def print_report(report: UsageReport, out: Output) -> None:
    from cairnfs.jobs.usage_page import SECTIONS, format_change

    total = report.total
    out.print(
        f"{out.paint(report.directory, BOLD)}: {total.files:,} files and {total.directories:,}"
        f" directories, {format_bytes(total.bytes)}, with all replicas {format_bytes(total.space)};"
        f" {total.small_files:,} files are shorter than {format_bytes(report.small_bytes)}"
    )
    if total.files_before is not None:
        files = total.files - total.files_before
        out.print(f"since {report.since}: {files:+,} files, {format_change(total.growth)}")
    for name, section in SECTIONS.items():
        rows = report.tables.get(name)
        if rows:
            out.print(f"\n{section.title}")
            head = [section.column.upper(), *_head(rows[0])]
            out.print_table([head, *map(_cells, rows)], frozenset(range(1, len(head))))
    if report.snapshots:
        _print_snapshots(report, out)


def _head(row: UsageRow) -> list[str]:
    head = ["FILES", "SMALL", "SIZE", "WITH REPLICAS"]
    return head if row.space_before is None else [*head, "CHANGE"]


def _cells(row: UsageRow) -> list[str]:
    from cairnfs.jobs.usage_page import format_change

    sizes = [format_bytes(row.bytes), format_bytes(row.space)]
    cells = [row.name, f"{row.files:,}", f"{row.small_files:,}", *sizes]
    return cells if row.space_before is None else [*cells, format_change(row.growth)]


def _print_snapshots(report: UsageReport, out: Output) -> None:
    rows = [["DIRECTORY", "SNAPSHOT", "FILES", "SIZE", "REFERS TO", "ALONE HOLDS"]]
    for each in report.snapshots:
        sizes = [format_bytes(each.bytes), format_bytes(each.referenced)]
        alone = "gone" if each.exclusive is None else format_bytes(each.exclusive)
        rows.append([each.path, each.name, f"{each.files:,}", *sizes, alone])
    out.print("\nSnapshots")
    out.print_table(rows, frozenset(range(2, 6)))
