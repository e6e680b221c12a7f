"""The command behind `make bench-snapshots`: what to run, progress, tables and JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command import Progress
from benchmarks.machine import describe_machine
from benchmarks.namespaces import POSTGRES, SQLITE, Namespaces
from benchmarks.snapshots.appending import measure_append
from benchmarks.snapshots.bars import judge
from benchmarks.snapshots.bench import Row, Shelf
from benchmarks.snapshots.comparing import measure_diff
from benchmarks.snapshots.coverage import measure_coverage
from benchmarks.snapshots.creating import measure_create
from benchmarks.snapshots.deleting import measure_delete
from benchmarks.snapshots.holding import measure_memory
from benchmarks.snapshots.listing import measure_listing
from benchmarks.snapshots.overhead import measure_overhead
from benchmarks.snapshots.peer import is_installed, measure_peer
from benchmarks.snapshots.published import LISTING_FILES, ROLLBACK
from benchmarks.snapshots.rolling_back import measure_rollback
from benchmarks.snapshots.sizes import FULL, QUICK, Sizes
from benchmarks.snapshots.tables import show_bars, show_part
from cairnfs.testing.postgres_server import PostgresServer

RESULTS = Path(__file__).resolve().parents[1] / "results"
PEER_HOME = Path.home() / ".cache" / "hdfs-peer"
PEER = "peer"


@dataclass(frozen=True)
class Run:
    """What every part is given."""

    shelf: Shelf
    sizes: Sizes
    progress: Progress

    @property
    def namespaces(self) -> Namespaces:
        return self.shelf.namespaces


async def _append(run: Run, kind: str) -> list[Row]:
    return await asyncio.to_thread(
        measure_append, run.namespaces, kind, run.sizes.log, run.progress
    )


Part = Callable[[Run, str], Coroutine[Any, Any, list[Row]]]
PARTS: dict[str, Part] = {
    "create": lambda run, kind: measure_create(
        run.shelf, kind, run.sizes.files, run.sizes.repeats, run.progress
    ),
    "memory": lambda run, kind: measure_memory(run.shelf, kind, run.sizes.files, run.progress),
    "listing": lambda run, kind: measure_listing(
        run.shelf, kind, run.sizes.files[-1], run.sizes.listing_rounds, run.progress
    ),
    "rollback": lambda run, kind: measure_rollback(
        run.shelf,
        kind,
        [row.scaled(run.sizes.files[-1] / LISTING_FILES) for row in ROLLBACK],
        run.progress,
    ),
    "diff": lambda run, kind: measure_diff(
        run.shelf, kind, run.sizes.files[-1], (0.01, 0.1), run.sizes.diff_limit_s, run.progress
    ),
    "overhead": lambda run, kind: measure_overhead(
        run.shelf, kind, run.sizes.overhead_calls, run.sizes.overhead_rounds, run.progress
    ),
    "delete": lambda run, kind: measure_delete(
        run.shelf, kind, run.sizes.deleted, run.sizes.quiet_s, run.progress
    ),
    "append": _append,
    "coverage": lambda run, kind: measure_coverage(
        run.namespaces, kind, run.sizes.covered_files, run.sizes.nested, run.progress
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write down; whether bars were reached is said, not returned."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with everything that was started
    name = "snapshots-quick.json" if options.quick else "snapshots.json"
    run_parts(
        options.part or [*PARTS, PEER],
        _sizes(options),
        stores=(SQLITE, POSTGRES) if options.store == "all" else (options.store,),
        json_file=options.json or RESULTS / name,
        peer_home=options.peer_home,
        directory=options.directory,
    )
    return 0


def run_parts(
    parts: Sequence[str],
    sizes: Sizes,
    *,
    stores: Sequence[str],
    json_file: Path,
    peer_home: Path,
    directory: Path | None = None,
) -> dict[str, Any]:
    """Run these parts; what a file has of the others stays as it is."""
    progress = Progress()
    start = time.monotonic()
    results = _read(json_file, sizes)
    with _namespaces(stores, directory, progress) as namespaces:
        run = Run(Shelf(namespaces, progress), sizes, progress)
        machine = describe_machine(namespaces.directory, namespaces.server)
        for part in parts:
            for kind, rows in _run_part(run, part, stores, peer_home):
                results["stores"].setdefault(kind, {})[part] = rows
                results["machines"][f"{kind} {part}"] = machine
                results["bars"] = [bar._asdict() for bar in judge(results)]
                json_file.parent.mkdir(parents=True, exist_ok=True)
                json_file.write_text(json.dumps(results, indent=1) + "\n")
                progress.end()
                print(f"\n{show_part(part, kind, rows)}\n", flush=True)
    print(show_bars(judge(results)))
    print(f"\nAll figures: {json_file}; {time.monotonic() - start:.0f} s")
    return results


def _run_part(
    run: Run, part: str, stores: Sequence[str], peer_home: Path
) -> Iterator[tuple[str, list[Row]]]:
    if part == PEER:
        if not is_installed(peer_home):
            run.progress.end()
            print(
                f"\npeer: left out, since there is no HDFS at {peer_home}: `make bench-peer`"
                " installs one there, --peer-home names another",
                flush=True,
            )
            return
        sizes = run.sizes.peer_files
        work = measure_peer(run.shelf, peer_home, sizes, run.sizes.repeats, run.progress)
        yield SQLITE, asyncio.run(work)
        return
    for kind in stores:
        yield kind, asyncio.run(PARTS[part](run, kind))


def _sizes(options: argparse.Namespace) -> Sizes:
    if options.quick or options.peer_files is None:
        return QUICK if options.quick else FULL
    wanted = [size for size in FULL.files if size < options.peer_files]
    return replace(FULL, peer_files=(*wanted, options.peer_files))


def _read(json_file: Path, sizes: Sizes) -> dict[str, Any]:
    """What was measured before, in the same sizes."""
    empty: dict[str, Any] = {"sizes": sizes.as_dict(), "stores": {}, "machines": {}, "bars": []}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(json_file.read_text())
        wanted = json.loads(json.dumps(sizes.as_dict()))
        if all(found["sizes"][name] == wanted[name] for name in wanted if name != "peer_files"):
            return dict(found)
    return empty


@contextlib.contextmanager
def _namespaces(
    stores: Sequence[str], directory: Path | None, progress: Progress
) -> Iterator[Namespaces]:
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="cairn-bench-", dir=directory)
        )
        server = None
        if POSTGRES in stores:
            progress("starting a PostgreSQL server")
            server = stack.enter_context(PostgresServer(durable=True))
        yield Namespaces(Path(made), server)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench-snapshots ARGS=...",
        description="Snapshots of CairnFS beside thesis 000 and paper 003; benchmarks/README.md.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="see that it works: figures of this mean nothing"
    )
    parser.add_argument(
        "--part",
        action="append",
        choices=[*PARTS, PEER],
        help="only this part; may be given several times",
    )
    parser.add_argument("--store", choices=(SQLITE, POSTGRES, "all"), default="all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    parser.add_argument(
        "--directory", type=Path, help="where files are made; on the disk that is meant"
    )
    parser.add_argument(
        "--peer-home", type=Path, default=PEER_HOME, help="where a real HDFS is installed"
    )
    parser.add_argument(
        "--peer-files", type=int, metavar="N", help="the most files to make there (100,000)"
    )
    return parser.parse_args(arguments)
