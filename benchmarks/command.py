"""The command behind `make bench`: what to run, progress, tables and JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.bars import judge
from benchmarks.beside_raw import measure_beside_raw
from benchmarks.callers import measure_driver
from benchmarks.core import SPREAD, measure_core
from benchmarks.large import measure_large
from benchmarks.machine import describe_machine
from benchmarks.namespaces import POSTGRES, SQLITE, Namespaces
from benchmarks.raw import measure_raw, summarise_raw
from benchmarks.thesis import measure_contention, measure_throughput
from benchmarks.two_namenodes import measure_two_namenodes
from cairnfs.testing.postgres_server import PostgresServer

PARTS = ("raw", "core", "beside", "large", "thesis", "two")
RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"


@dataclass(frozen=True)
class Sizes:
    """How much of everything; chosen for minutes, not for the last digit."""

    callers: tuple[int, ...] = (1, 8, 32)
    rounds: int = 3
    stage_s: float = 0.45
    raw_s: float = 0.8
    raw_samples: int = 2  # before core, and as many after it
    beside_turns: int = 31
    beside_s: float = 0.4
    large_files: int = 1_000_000
    large_repeats: int = 100
    reclaim_s: float = 10.0
    thesis_repeats: int = 15
    creations: tuple[int, ...] = (1_000, 10_000, 100_000)
    two_s: float = 3.0
    two_rounds: int = 2
    full: bool = False


QUICK = Sizes(
    callers=(1, 32),
    rounds=1,
    stage_s=0.2,
    raw_s=0.3,
    raw_samples=1,
    beside_turns=9,
    beside_s=0.3,
    large_files=20_000,
    large_repeats=30,
    reclaim_s=2.0,
    thesis_repeats=3,
    creations=(1_000,),
    two_s=1.0,
    two_rounds=1,
)


class Progress:
    """One line on a terminal, a line for each step elsewhere; always on stderr."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        line = f"[{time.monotonic() - self._start:5.0f} s] {text}"
        if self._is_terminal:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write down; whether bars were reached is said, not returned."""
    options = _parse(arguments)
    sizes = replace(QUICK if options.quick else Sizes(), full=options.full)
    progress = Progress()
    with _namespaces(options, progress) as namespaces:
        results = asyncio.run(_run(namespaces, options, sizes, progress))
    progress.end()
    bars = judge(results)
    results["bars"] = [bar._asdict() for bar in bars]
    print(tables.render(results, bars))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nAll figures: {options.json}; {results['took_s']:.0f} s")
    return 0


async def _run(
    namespaces: Namespaces, options: argparse.Namespace, sizes: Sizes, progress: Progress
) -> dict[str, Any]:
    start = time.monotonic()
    kinds = [kind for kind in namespaces.kinds if options.store in (kind, "all")]
    results: dict[str, Any] = {
        "machine": describe_machine(namespaces.directory, namespaces.server),
        "sizes": {**asdict(sizes), "quick": options.quick},
        "stores": kinds,
    }
    results["machine"]["callers_own_us_per_call"] = round(await measure_driver(0.5), 1)
    samples: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    for kind in kinds:
        # Before and after what it is compared with: the machine is not the same all the time.
        samples += await _raw(namespaces, kind, options, sizes, progress)
        if "core" in options.only:
            cells += await measure_core(
                namespaces,
                kind,
                callers=sizes.callers,
                rounds=sizes.rounds,
                seconds=sizes.stage_s,
                progress=progress,
            )
            samples += await _raw(namespaces, kind, options, sizes, progress)
    if samples:
        results["raw"] = summarise_raw(samples)
    if cells:
        results["core"] = cells
    if "beside" in options.only and POSTGRES in kinds:
        results["beside_raw"] = await measure_beside_raw(
            namespaces, turns=sizes.beside_turns, seconds=sizes.beside_s, progress=progress
        )
    if "large" in options.only:
        results["large"] = [
            await measure_large(
                namespaces,
                kind,
                files=sizes.large_files,
                repeats=sizes.large_repeats,
                reclaim_s=sizes.reclaim_s,
                progress=progress,
            )
            for kind in kinds
        ]
    if "thesis" in options.only:
        results["thesis"] = await _thesis(namespaces, kinds, sizes, progress)
    if "two" in options.only and POSTGRES in kinds:
        results["two_namenodes"] = await measure_two_namenodes(
            namespaces,
            spread=SPREAD,
            seconds=sizes.two_s,
            rounds=sizes.two_rounds,
            progress=progress,
        )
    results["took_s"] = round(time.monotonic() - start, 1)
    return results


async def _raw(
    namespaces: Namespaces,
    kind: str,
    options: argparse.Namespace,
    sizes: Sizes,
    progress: Progress,
) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = []
    for sample in range(sizes.raw_samples if "raw" in options.only else 0):
        progress(f"raw, {kind}: sample {sample + 1}")
        samples += await measure_raw(namespaces, kind, spread=SPREAD, seconds=sizes.raw_s)
    return samples


async def _thesis(
    namespaces: Namespaces, kinds: list[str], sizes: Sizes, progress: Progress
) -> dict[str, Any]:
    results: dict[str, Any] = {"table_4_1": [], "table_4_2": []}
    for kind in kinds:
        results["table_4_1"] += await measure_throughput(
            namespaces, kind, repeats=sizes.thesis_repeats, progress=progress
        )
        results["table_4_2"] += await measure_contention(
            namespaces, kind, counts=sizes.creations, full=sizes.full, progress=progress
        )
    return results


@contextlib.contextmanager
def _namespaces(options: argparse.Namespace, progress: Progress) -> Iterator[Namespaces]:
    with contextlib.ExitStack() as stack:
        prefix = "cairn-bench-"
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=prefix, dir=options.directory)
        )
        server = None
        if options.store != SQLITE:
            progress("starting a PostgreSQL server")
            server = stack.enter_context(PostgresServer(durable=True))
        yield Namespaces(Path(directory), server)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench ARGS=...", description="Benchmarks of CairnFS; see benchmarks/README.md."
    )
    parser.add_argument(
        "--quick", action="store_true", help="a look in two minutes: fewer, shorter"
    )
    parser.add_argument(
        "--full", action="store_true", help="also the slow cells: 100,000 creations under locks"
    )
    parser.add_argument(
        "--only",
        type=_parts,
        default=PARTS,
        metavar="PARTS",
        help=f"parts to run, with commas: {','.join(PARTS)}",
    )
    parser.add_argument("--store", choices=(SQLITE, POSTGRES, "all"), default="all")
    parser.add_argument(
        "--json", type=Path, default=RESULTS, metavar="FILE", help="where all figures go"
    )
    parser.add_argument(
        "--directory", type=Path, help="where SQLite files are made; on the disk that is meant"
    )
    return parser.parse_args(arguments)


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"{part} is none of {', '.join(PARTS)}")
    return parts
