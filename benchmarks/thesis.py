"""The two experiments of thesis 004, chapter 4, with the column it left empty.

Table 4.1: 100 operations of each kind over 4 directories by 3 threads, in
operations per second.  Table 4.2: so many concurrent creations of
sub-directories in one parent from a pool of 1,024 threads, in seconds.  The
thesis ran on other hardware (NDB on a cluster of 2014): compare columns of
one side with each other, not across.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.callers import Callers, Request
from benchmarks.core import (
    CONTROLS,
    Progress,
    create_and_complete_of,
    mkdirs_of,
    open_warm,
)
from benchmarks.namespaces import Namespaces
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import delete, rename
from cairnfs.namesystem.paths import FsPath

OPERATIONS = 100
DIRECTORIES = 4
THREADS = 3
POOL = 1024

TABLE_4_1 = {
    "create": {"HDFS": 609, "PCC": 188},
    "mkdirs": {"HDFS": 636, "PCC": 413},
    "delete": {"HDFS": 833, "PCC": 242},
    "rename": {"HDFS": 869, "PCC": 132},
}
TABLE_4_2 = {
    1_000: {"HDFS": 0.82, "PCC": 4.35},
    10_000: {"HDFS": 7.83, "PCC": 36.74},
    100_000: {"HDFS": 77.13, "PCC": 332.36},
}


async def measure_throughput(
    namespaces: Namespaces, kind: str, *, repeats: int, progress: Progress
) -> list[dict[str, Any]]:
    """Table 4.1: the median of several repeats, since 100 operations take but moments."""
    results = []
    for control in CONTROLS:
        progress(f"thesis, {kind}: table 4.1, {control.value}")
        url = await namespaces.fresh(kind)
        namenode = await open_warm(url, control, THREADS)
        taken: dict[str, list[float]] = {name: [] for name in TABLE_4_1}
        try:
            for repeat in range(repeats + 1):
                rates = await _hundred_of_each(namenode, f"/thesis{repeat}")
                if repeat:  # the first one warms up
                    for name, rate in rates.items():
                        taken[name].append(rate)
        finally:
            await namenode.stop()
            namespaces.drop(url)
        for name, rates_taken in taken.items():
            results.append(
                {
                    "store": kind,
                    "control": control.value,
                    "operation": name,
                    "per_s": round(statistics.median(rates_taken), 1),
                    "repeats_per_s": [round(rate, 1) for rate in rates_taken],
                }
            )
    return results


async def _hundred_of_each(namenode: NameNode, top: str) -> dict[str, float]:
    caller = namenode.caller(namenode.superuser)
    for i in range(DIRECTORIES):
        request = mkdirs_of(f"{top}/d{i}")
        await namenode.call(request.operation, caller, *request.arguments)

    def path(i: int, name: str) -> str:
        return f"{top}/d{i % DIRECTORIES}/{name}{i}"

    def parsed(i: int, name: str) -> FsPath:
        return FsPath.parse(path(i, name))

    kinds = {
        "create": lambda i: create_and_complete_of(path(i, "f")),
        "mkdirs": lambda i: mkdirs_of(path(i, "m")),
        "rename": lambda i: Request(rename.rename, (parsed(i, "f"), parsed(i, "r"))),
        "delete": lambda i: Request(delete.delete, (parsed(i, "r"), False)),
    }
    rates = {}
    for name, make in kinds.items():

        def work(i: int, make: Any = make) -> Request | None:
            return make(i) if i < OPERATIONS else None

        rates[name] = (await Callers.of(namenode, THREADS).finish(work)).per_s
    return rates


async def measure_contention(
    namespaces: Namespaces, kind: str, *, counts: tuple[int, ...], full: bool, progress: Progress
) -> list[dict[str, Any]]:
    """Table 4.2; the slow cells only if `full`, and never by extrapolation."""
    results = []
    for count in counts:
        for control in CONTROLS:
            result: dict[str, Any] = {"store": kind, "control": control.value, "creations": count}
            results.append(result)
            if count > 10_000 and control is not Control.OPTIMISTIC and not full:
                result["elapsed_s"] = None  # not run
                continue
            progress(f"thesis, {kind}: table 4.2, {count:,} creations, {control.value}")
            result.update(await _create_in_one_parent(namespaces, kind, control, count))
    return results


async def _create_in_one_parent(
    namespaces: Namespaces, kind: str, control: Control, count: int
) -> dict[str, Any]:
    url = await namespaces.fresh(kind)
    namenode = await open_warm(url, control, POOL)
    try:

        def work(i: int) -> Request | None:
            return mkdirs_of(f"/parent/d{i}") if i < count else None

        request = mkdirs_of("/parent")
        caller = namenode.caller(namenode.superuser)
        await namenode.call(request.operation, caller, *request.arguments)
        measured = await Callers.of(namenode, POOL).finish(work)
        assert measured.operations == count
        return {
            "elapsed_s": round(measured.elapsed_s, 3),
            "p99_ms": round(measured.latency_ms(0.99), 1),
            "conflicts": namenode.statistics.conflicts.total(),
        }
    finally:
        await namenode.stop()
        namespaces.drop(url)
