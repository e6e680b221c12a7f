"""The ratios we want to reach, from the figures of a run (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

SAME_TIME = 1.25  # "the same time", as medians of turns with noise can show it

Results = dict[str, Any]


class Bar(NamedTuple):
    """One thing to reach.  `passed` is None where it was not measured."""

    name: str
    value: float | None
    unit: str
    wanted: str
    passed: bool | None
    from_figures: str


def judge(results: Results) -> list[Bar]:
    """Every bar, passed or not; those whose part was not run stay open."""
    stores = results["stores"]
    bars: list[Bar] = []
    for store in stores:
        bars.append(_over_pessimistic(results, store))
        bars.append(_one_over_many(results, store))
    if "postgres" in stores:
        bars += _over_raw(results)
    for store in stores:
        bars.append(_stat_cpu(results, store))
    for store in stores:
        for what in ("rename", "delete"):
            bars.append(_large(results, store, what))
    return bars


def _bar(
    name: str,
    unit: str,
    wanted: str,
    test: Callable[[float], bool],
    value: float | None,
    figures: str = "",
) -> Bar:
    if value is None:
        return Bar(name, None, unit, wanted, None, "not run")
    return Bar(name, round(value, 3), unit, wanted, test(value), figures)


def _cell(
    results: Results, store: str, control: str, directories: str, operation: str
) -> dict[str, Any] | None:
    """At 32 callers; `directories` is "one" or "many"."""
    cells: Iterable[dict[str, Any]] = results.get("core", ())
    for cell in cells:
        is_one = cell["directories"] == 1
        if (
            (cell["store"], cell["control"], cell["operation"]) == (store, control, operation)
            and cell["callers"] == 32
            and is_one == (directories == "one")
        ):
            return cell
    return None


def _ratio_of_rates(
    over: dict[str, Any] | None, under: dict[str, Any] | None
) -> tuple[float | None, str]:
    if over is None or under is None:
        return None, ""
    figures = f"{over['per_s']:,.0f} / {under['per_s']:,.0f} per s"
    return over["per_s"] / under["per_s"], figures


def _over_pessimistic(results: Results, store: str) -> Bar:
    value, figures = _ratio_of_rates(
        _cell(results, store, "optimistic", "one", "create"),
        _cell(results, store, "pessimistic", "one", "create"),
    )
    name = f"{store}: create in one directory, 32 callers, optimistic over pessimistic"
    return _bar(name, "x", ">= 10", lambda v: v >= 10, value, figures)


def _one_over_many(results: Results, store: str) -> Bar:
    value, figures = _ratio_of_rates(
        _cell(results, store, "optimistic", "one", "create"),
        _cell(results, store, "optimistic", "many", "create"),
    )
    name = f"{store}: create, 32 callers, optimistic, one directory over 64"
    return _bar(name, "x", ">= 0.9", lambda v: v >= 0.9, value, figures)


def _over_raw(results: Results) -> list[Bar]:
    """Like against like: 64 directories with 64, one with one; inserts alone are the bar."""
    bars = []
    for directories in ("many", "one"):
        create = _cell(results, "postgres", "optimistic", directories, "create")
        for what, wanted in (("insert", ">= 0.25"), ("create", "to know")):
            raw = next(
                (
                    figure
                    for figure in results.get("raw", ())
                    if figure["store"] == "postgres"
                    and figure["what"] == what
                    and (figure["directories"] == 1) == (directories == "one")
                ),
                None,
            )
            value, figures = _ratio_of_rates(create, raw)
            where = "one directory" if directories == "one" else "64 directories"
            kind = "grouped insert" if what == "insert" else "grouped reads, insert, update"
            name = f"postgres: create, {where}, over the raw {kind}"
            bar = _bar(name, "x", wanted, lambda v: v >= 0.25, value, figures)
            bars.append(bar if what == "insert" else bar._replace(passed=None))
    return bars


def _stat_cpu(results: Results, store: str) -> Bar:
    cell = _cell(results, store, "optimistic", "many", "stat")
    value = None if cell is None else cell["cpu_us"]
    figures = ""
    if cell is not None and cell["server_us"] is not None:
        figures = f"and the server {cell['server_us']} us"
    name = f"{store}: stat, 32 callers, NameNode CPU"
    return _bar(name, "us", "<= 40", lambda v: v <= 40, value, figures)


def _large(results: Results, store: str, what: str) -> Bar:
    large = next((each for each in results.get("large", ()) if each["store"] == store), None)
    files = 1_000_000 if large is None else large["files"]
    name = f"{store}: {what} of a directory of {files:,} files over one of 10"
    value, figures = None, ""
    if large is not None:
        value = large[what]["ratio"]
        figures = f"{large[what]['big_ms']} / {large[what]['small_ms']} ms"
    return _bar(name, "x", f"<= {SAME_TIME}", lambda v: v <= SAME_TIME, value, figures)
