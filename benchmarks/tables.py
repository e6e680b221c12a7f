"""Results as Markdown tables that are aligned for a terminal too (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import thesis
from benchmarks.bars import Bar

_CONTROLS = ("system-lock", "pessimistic", "optimistic")


def render(results: dict[str, Any], bars: Sequence[Bar]) -> str:
    """The whole report."""
    parts = [_machine(results)]
    if "core" in results:
        parts += [_core(results["core"], store) for store in results["stores"]]
    if "raw" in results:
        parts.append(_raw(results["raw"]))
    if "large" in results:
        parts.append(_large(results["large"]))
    if "thesis" in results:
        parts += [_thesis(results["thesis"], store) for store in results["stores"]]
    if "two_namenodes" in results:
        parts.append(_two_namenodes(results["two_namenodes"]))
    parts.append(_bars(bars))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Text to the left in the first column, numbers to the right in the others."""
    lines = [list(head), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    rendered = [
        "| "
        + " | ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join(
        "-" * (width + 2) if n == 0 else "-" * (width + 1) + ":" for n, width in enumerate(widths)
    )
    return "\n".join([rendered[0], rule + "|", *rendered[1:]])


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        if value >= 100:
            return f"{value:,.0f}"
        return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _machine(results: dict[str, Any]) -> str:
    rows = [(name, str(value)) for name, value in results["machine"].items()]
    return "## Machine\n\n" + table(("fact", "value"), rows)


def _core(cells: list[dict[str, Any]], store: str) -> str:
    cells = [cell for cell in cells if cell["store"] == store]
    has_server = any(cell["server_us"] is not None for cell in cells)
    measures = ["per_s", "cpu_us", *(["server_us"] if has_server else []), "p50_ms", "p99_ms"]
    heads = {"per_s": "ops/s", "cpu_us": "CPU us", "server_us": "PG us"}
    found = {(c["control"], c["operation"], c["callers"], c["directories"] == 1): c for c in cells}
    operations = list(dict.fromkeys(cell["operation"] for cell in cells))
    callers = sorted({cell["callers"] for cell in cells})
    parts = [_comparison(found, operations, callers[-1], store)]
    for control in _CONTROLS:
        head = ["operation", "callers"]
        for where in ("64 dirs", "one dir"):
            head += [f"{where} {heads.get(name, name.replace('_', ' '))}" for name in measures]
        rows = []
        for operation in operations:
            for count in callers:
                row: list[object] = [operation, count]
                for is_one in (False, True):
                    cell = found.get((control, operation, count, is_one), {})
                    row += [cell.get(name) for name in measures]
                rows.append(row)
        parts.append(f"### {store}: {control}\n\n" + table(head, rows))
    return f"## Core, {store}\n\n" + "\n\n".join(parts)


def _comparison(
    found: dict[tuple[Any, ...], dict[str, Any]], operations: list[str], callers: int, store: str
) -> str:
    head = ["ops/s"]
    head += [f"{where}, {control}" for where in ("64 dirs", "one dir") for control in _CONTROLS]
    rows = []
    for operation in operations:
        row: list[object] = [operation]
        for is_one in (False, True):
            row += [
                found.get((control, operation, callers, is_one), {}).get("per_s")
                for control in _CONTROLS
            ]
        rows.append(row)
    return f"### {store}: {callers} callers, controls side by side\n\n" + table(head, rows)


def _raw(figures: list[dict[str, Any]]) -> str:
    names = {"insert": "insert", "create": "reads, insert, update"}
    rows = [
        (f["store"], names[f["what"]], f["directories"], f["per_s"], f["cpu_us"], f["server_us"])
        for f in figures
    ]
    head = ("store", "in groups of 32", "directories", "rows/s", "client us", "PG us")
    return "## Raw engine\n\n" + table(head, rows)


def _large(results: list[dict[str, Any]]) -> str:
    rows = []
    for each in results:
        for what in ("rename", "delete"):
            times = each[what]
            rows.append(
                (
                    f"{each['store']}: {what}",
                    *(
                        times[f"{who}_{part}"]
                        for part in ("ms", "p99_ms")
                        for who in ("big", "small")
                    ),
                    times["ratio"],
                )
            )
    files = results[0]["files"]
    many = f"{files:,}"
    head = ("ms", f"{many} files", "10 files", f"p99 {many}", "p99 10", "ratio")
    reclaim = [
        (
            each["store"],
            each["filled_rows_per_s"],
            *(each["reclaim"][name] for name in ("rows", "rows_per_s")),
            *(
                each["reclaim"][f"{when}stat_{p}_ms"]
                for when in ("quiet_", "")
                for p in ("p50", "p99")
            ),
            each["reclaim"]["stat_max_ms"],
        )
        for each in results
    ]
    reclaim_head = (
        *("store", "filled rows/s", "rows reclaimed", "rows/s"),
        *("stat p50 ms before", "p99 before", "p50 meanwhile", "p99 meanwhile", "max"),
    )
    return (
        f"## A directory of {many} files (optimistic)\n\n"
        + table(head, rows)
        + "\n\n"
        + table(reclaim_head, reclaim)
    )


def _thesis(results: dict[str, Any], store: str) -> str:
    head = ["HDFS (thesis)", "PCC (thesis)", *(f"ours, {control}" for control in _CONTROLS)]
    rates = {
        (each["operation"], each["control"]): each["per_s"]
        for each in results["table_4_1"]
        if each["store"] == store
    }
    first = [
        (name, *of_thesis.values(), *(rates.get((name, control)) for control in _CONTROLS))
        for name, of_thesis in thesis.TABLE_4_1.items()
    ]
    times = {
        (each["creations"], each["control"]): each["elapsed_s"]
        for each in results["table_4_2"]
        if each["store"] == store
    }
    second = []
    for count, of_thesis in thesis.TABLE_4_2.items():
        ours = [times.get((count, control)) for control in _CONTROLS]
        cells = ["not run" if value is None else value for value in ours]
        second.append((f"{count:,}", *of_thesis.values(), *cells))
    return (
        f"## Thesis 004, {store} (its columns come from other hardware)\n\n"
        "Table 4.1, operations per second: 100 operations, 4 directories, 3 threads\n\n"
        + table(["ops/s", *head], first)
        + "\n\nTable 4.2, seconds: concurrent creations in one parent, pool of 1,024\n\n"
        + table(["creations", *head], second)
    )


def _two_namenodes(results: list[dict[str, Any]]) -> str:
    names = ("per_s", "cpu_us", "server_us", "p99_ms", "calls", "commits", "conflicts", "ran_alone")
    rows = [(f"{r['namenodes']}", r["directories"], *(r[name] for name in names)) for r in results]
    head = (
        *("NameNodes", "directories", "creates/s, all", "CPU us", "PG us", "p99 ms"),
        *("calls", "commits", "conflicts = retries", "ran alone"),
    )
    return "## Two NameNodes on one PostgreSQL, create, 32 callers each\n\n" + table(head, rows)


def _bars(bars: Sequence[Bar]) -> str:
    rows = [
        (
            bar.name,
            None if bar.value is None else f"{bar.value:g} {bar.unit}",
            bar.wanted,
            {True: "pass", False: "FAIL", None: "-"}[bar.passed],
            bar.from_figures,
        )
        for bar in bars
    ]
    return "## Bars\n\n" + table(("bar", "value", "wanted", "", "figures"), rows)
