"""The ratios we want to reach, from the figures of a run (pure)."""

from __future__ import annotations

import statistics
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
    name = f"{store}: create, 32 callers, optimistic, one directory over 64"
    beside = results.get("beside_raw")
    if store == "postgres" and beside is not None:
        value, figures = beside["one_over_many"], _medians(beside, "create_one", "create_many")
    else:
        value, figures = _ratio_of_rates(
            _cell(results, store, "optimistic", "one", "create"),
            _cell(results, store, "optimistic", "many", "create"),
        )
    return _bar(name, "x", ">= 0.9", lambda v: v >= 0.9, value, figures)


def _over_raw(results: Results) -> list[Bar]:
    """Like against like, in turns: 64 directories with 64, one with one."""
    beside = results.get("beside_raw")
    bars = []
    for directories, where in (("many", "64 directories"), ("one", "one directory")):
        value, figures = None, ""
        if beside is not None:
            value = beside[f"{directories}_over_insert"]
            figures = _medians(beside, f"create_{directories}", f"insert_{directories}")
        name = f"postgres: create, {where}, over the raw grouped insert"
        bars.append(_bar(name, "x", ">= 0.25", lambda v: v >= 0.25, value, figures))
    return bars


def _medians(beside: dict[str, Any], over: str, under: str) -> str:
    """What the ratios are of; these are taken turn by turn, so they differ a little."""
    rates = beside["rates"]
    return f"{statistics.median(rates[over]):,.0f} / {statistics.median(rates[under]):,.0f} per s"


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
