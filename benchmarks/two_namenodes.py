"""One NameNode process against two on the same PostgreSQL database.

Run as a program it is one such NameNode: it opens the store, says so on its
output, waits for a line on its input, and prints what it measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.callers import Callers, Request
from benchmarks.core import Progress, create_of, mkdirs_of, open_warm
from benchmarks.machine import ServerCpu
from benchmarks.namespaces import POSTGRES, Namespaces, open_namenode
from cairnfs.config import Control
from cairnfs.namenode.namenode import NameNode

ROOT = Path(__file__).resolve().parent.parent
CALLERS = 32  # of each NameNode


async def measure_two_namenodes(
    namespaces: Namespaces, *, spread: int, seconds: float, rounds: int, progress: Progress
) -> list[dict[str, Any]]:
    """Totals of all NameNodes, for one and two of them, in many directories and in one."""
    results = []
    for directories in (spread, 1):
        for round in range(rounds):
            for count in (1, 2):
                progress(
                    f"two NameNodes: {count}, {directories} directories, round {round + 1}"
                    f" of {rounds}"
                )
                cpu = namespaces.server_cpu(POSTGRES)
                assert cpu is not None
                url = await namespaces.fresh(POSTGRES)
                await _make_directories(url, directories)
                figures = await _run(url, count, directories, seconds, cpu)
                results.append({"namenodes": count, "directories": directories, **figures})
                namespaces.drop(url)
    return results


async def _make_directories(url: str, directories: int) -> None:
    namenode = await open_namenode(url, Control.OPTIMISTIC)
    try:
        caller = namenode.caller(namenode.superuser)
        for i in range(directories):
            request = mkdirs_of(f"/bench/shared/d{i}")
            await namenode.call(request.operation, caller, *request.arguments)
    finally:
        await namenode.stop()


async def _run(
    url: str, count: int, directories: int, seconds: float, server: ServerCpu
) -> dict[str, Any]:
    workers = [await _start(url, f"nn{n}", directories, seconds) for n in range(count)]
    for worker in workers:
        assert worker.stdout is not None
        assert (await worker.stdout.readline()).strip() == b"ready"
    before = server.sample()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
    lines = await asyncio.gather(*(worker.stdout.readline() for worker in workers if worker.stdout))
    used_s = server.between(before, server.sample())
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
    codes = [await worker.wait() for worker in workers]
    if any(codes):
        raise RuntimeError(f"a NameNode process ended with {codes}")
    parts = [json.loads(line) for line in lines]
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    return {
        "per_s": round(total["per_s"], 1),
        "cpu_us": round(total["cpu_s"] / total["operations"] * 1e6, 1),
        # Of the whole run, warm-up included.
        "server_us": round(used_s / total["calls"] * 1e6, 1),
        "p99_ms": round(max(part["p99_ms"] for part in parts), 3),
        "calls": total["calls"],
        "commits": total["commits"],
        "conflicts": total["conflicts"],
        "ran_alone": total["ran_alone"],
    }


async def _start(url: str, name: str, directories: int, seconds: float) -> Any:
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.two_namenodes"),
        *(url, name, str(directories), str(seconds)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


async def _work(url: str, name: str, directories: int, seconds: float) -> None:
    namenode = await open_warm(url, Control.OPTIMISTIC, CALLERS)
    try:

        def work(i: int) -> Request:
            return create_of(f"/bench/shared/d{i % directories}/{name}_{i:07d}")

        before = _counted(namenode)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        measured = await Callers.of(namenode, CALLERS).measure(work, seconds)
        report = {
            "operations": measured.operations,
            "per_s": measured.per_s,
            "cpu_s": measured.cpu_s,
            "p99_ms": measured.latency_ms(0.99),
            **{name: count - before[name] for name, count in _counted(namenode).items()},
        }
        print(json.dumps(report), flush=True)
        # The others are measured to their end with this one's connections still there.
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await namenode.stop()


def _counted(namenode: NameNode) -> dict[str, int]:
    statistics = namenode.statistics
    return {
        "calls": statistics.calls,
        "commits": statistics.commits,
        "conflicts": statistics.conflicts.total(),
        "ran_alone": statistics.ran_alone,
    }


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
