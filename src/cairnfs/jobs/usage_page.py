"""A usage report as a page: one file of HTML with its plots in it, for any browser or mail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from cairnfs.jobs.usage import HeldBySnapshot, UsageReport, UsageRow
from cairnfs.jobs.usage_tables import (
    AGE,
    DIRECTORY,
    GROWTH,
    OWNER,
    POLICY,
    SIZE,
    SMALL,
    TEMPERATURE,
)
from cairnfs.sizes import format_bytes
from cairnfs.svg import Axis, Bar, Line, draw, draw_bars

BARS_MAX = 15
DAY_MS = 86_400_000

_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em }
dl { display: flex; flex-wrap: wrap; gap: 1em 2.5em }
dt { color: #666; font-size: .85em } dd { margin: 0; font-size: 1.3em }
table { border-collapse: collapse; font-size: .9em }
th, td { padding: .2em .9em .2em 0; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left; word-break: break-all }
svg { width: 100%; height: auto }
"""


class _Section(NamedTuple):
    """A table of a report, and what people call it."""

    title: str
    column: str
    of_small: bool = False  # by the number of small files, not by space


SECTIONS = {
    GROWTH: _Section("What has changed most", "Directory"),
    DIRECTORY: _Section("Directories", "Directory"),
    OWNER: _Section("Owners", "Owner"),
    SIZE: _Section("Length of files", "Length"),
    AGE: _Section("Last modified within", "Time"),
    TEMPERATURE: _Section("Last used: within a week, a month, a year, or not", "Temperature"),
    POLICY: _Section("Storage policies", "Policy"),
    SMALL: _Section("Where small files are", "Directory", of_small=True),
}


def make_page(report: UsageReport) -> str:
    """The whole document."""
    title = f"Usage of {report.directory}"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{_moment(report.moment_ms)}{_compared(report)}</p>",
        *_facts(report),
    ]
    for name, section in SECTIONS.items():
        rows = report.tables.get(name)
        if rows:
            parts += _section(section, rows)
    parts += _snapshots(report)
    return "\n".join([*parts, "</body>\n</html>"]) + "\n"


def format_change(count: int) -> str:
    """So much more, or less."""
    return f"{'-' if count < 0 else '+'}{format_bytes(abs(count))}"


def _facts(report: UsageReport) -> Iterator[str]:
    total = report.total
    facts = {
        "files": f"{total.files:,}",
        "directories": f"{total.directories:,}",
        "size": format_bytes(total.bytes),
        "with all replicas": format_bytes(total.space),
        "blocks": f"{total.blocks:,}",
        f"files under {format_bytes(report.small_bytes)}": f"{total.small_files:,}",
    }
    if total.space_before is not None:
        facts[f"since {report.since}"] = format_change(total.growth)
    yield "<dl>"
    for name, text in facts.items():
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
    yield "</dl>"


def _section(section: _Section, rows: Sequence[UsageRow]) -> Iterator[str]:
    yield f"<h2>{escape(section.title)}</h2>"
    if section.of_small:
        bars = [Bar(row.name, row.small_files, f"{row.small_files:,} files") for row in rows]
    else:
        bars = [Bar(row.name, row.space, format_bytes(row.space), row.space_before) for row in rows]
    what = "Small files" if section.of_small else "Space, with all replicas"
    yield draw_bars(what, bars[:BARS_MAX])
    is_compared = rows[0].space_before is not None
    head = [section.column, "Files", "Small files", "Size", "With replicas"]
    cells = []
    for row in rows:
        numbers = [f"{row.files:,}", f"{row.small_files:,}"]
        sizes = [format_bytes(row.bytes), format_bytes(row.space)]
        change = [format_change(row.growth)] if is_compared else []
        cells.append([row.name, *numbers, *sizes, *change])
    yield _table([*head, "Change"] if is_compared else head, cells)


def _snapshots(report: UsageReport) -> Iterator[str]:
    held = report.snapshots
    if not held:
        return
    yield "<h2>Snapshots</h2>"
    own = [each for each in held if each.path == report.directory]
    if len(own) > 1:
        yield draw("What snapshots of it show", Axis("days"), Axis("MB"), [_growth(own)])
    most = sorted(held, key=lambda each: each.exclusive or 0, reverse=True)
    bars = [
        Bar(f"{each.path} {each.name}", each.exclusive or 0, format_bytes(each.exclusive or 0))
        for each in most[:BARS_MAX]
    ]
    yield draw_bars("What the deletion of a snapshot would free", bars)
    yield _table(
        ["Directory", "Snapshot", "Taken", "Files", "Size", "Refers to", "Alone holds"],
        [
            [
                each.path,
                each.name,
                _moment(each.created_ms),
                f"{each.files:,}",
                format_bytes(each.bytes),
                format_bytes(each.referenced),
                "gone" if each.exclusive is None else format_bytes(each.exclusive),
            ]
            for each in held
        ],
    )


def _growth(snapshots: Sequence[HeldBySnapshot]) -> Line:
    begin_ms = snapshots[0].created_ms
    points = [((each.created_ms - begin_ms) / DAY_MS, each.bytes / 1e6) for each in snapshots]
    return Line("size", points)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _compared(report: UsageReport) -> str:
    return f", compared with snapshot {escape(report.since)}" if report.since else ""
