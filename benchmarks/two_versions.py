"""Two versions of the product on one PostgreSQL server, in turns: what has become faster?

    python -m benchmarks.two_versions SRC [--turns 20] [--seconds 0.5]

`SRC` is the folder `src` of another checkout.  Each version is a process with a namespace of its
own; in a turn each creates files in 64 directories, and then looks at them.  The machine may be
twice as fast in one minute as in the next: what counts is the median of the ratios of neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.callers import Callers, Measured, Request
from benchmarks.core import SPREAD, create_of, open_warm, stat_of
from cairnfs.config import Control
from cairnfs.namenode.opening import format_namespace
from cairnfs.testing.postgres_server import PostgresServer

CALLERS = 32
OPERATIONS = ("create", "stat")


class Figures(NamedTuple):
    """One operation of one version in one turn."""

    per_s: float
    cpu_us: float

    @classmethod
    def of(cls, measured: Measured) -> Figures:
        return cls(measured.per_s, measured.cpu_us)


class Version:
    """A version at work in a process of its own."""

    def __init__(self, source: Path, url: str, seconds: float) -> None:
        arguments = ["--worker", url, "--seconds", str(seconds)]
        path = os.pathsep.join([str(source), str(Path(__file__).parents[1])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.two_versions", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.measured: dict[str, list[Figures]] = {operation: [] for operation in OPERATIONS}

    def measure(self, operation: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(operation, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        self.measured[operation].append(Figures(*map(float, answer.split())))

    def stop(self) -> None:
        self._process.communicate()


class Files:
    """What a version creates, and then looks at."""

    def __init__(self) -> None:
        self._made = 0
        self._first = 0  # of those that are made in this turn

    def begin_turn(self) -> None:
        self._first = self._made

    def create(self, i: int) -> Request:
        self._made = max(self._made, self._first + i + 1)
        return create_of(path_of(self._first + i))

    def stat(self, i: int) -> Request:
        return stat_of(path_of(i % self._made))


async def work(url: str, seconds: float) -> None:
    """What a version does: measure what it is told to, until there is no more to be told."""
    await format_namespace(url)
    namenode = await open_warm(url, Control.OPTIMISTIC, CALLERS)
    callers, files = Callers.of(namenode, CALLERS), Files()
    try:
        while operation := (await asyncio.to_thread(sys.stdin.readline)).strip():
            files.begin_turn()
            measured = await callers.measure(getattr(files, operation), seconds)
            print(*Figures.of(measured), flush=True)
    finally:
        await namenode.stop()


def path_of(number: int) -> str:
    return f"/versions/files/d{number % SPREAD}/f{number:07d}"


def describe(ours: Version, other: Version) -> Iterator[str]:
    yield f"{'':8}{'this/s':>9}{'CPU us':>8}{'other/s':>9}{'CPU us':>8}{'rate':>8}{'CPU':>8}"
    for operation in OPERATIONS:
        these, those = ours.measured[operation], other.measured[operation]
        pairs = list(zip(these, those, strict=True))
        medians = [
            statistics.median(values)
            for values in (
                *zip(*these, strict=True),
                *zip(*those, strict=True),
                [new.per_s / old.per_s for new, old in pairs],
                [new.cpu_us / old.cpu_us for new, old in pairs],
            )
        ]
        rates = "{:9.0f}{:8.1f}{:9.0f}{:8.1f}{:8.2f}{:8.2f}".format(*medians)
        yield f"{operation:8}{rates}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, metavar="SRC")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each operation in a turn")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        asyncio.run(work(arguments.worker, arguments.seconds))
        return
    if arguments.source is None:
        parser.error("name the sources of the other version")
    with PostgresServer(durable=True) as server:
        sources = (Path(__file__).parents[1] / "src", arguments.source.resolve())
        versions = [
            Version(source, server.create_database(f"version{n}"), arguments.seconds)
            for n, source in enumerate(sources)
        ]
        try:
            for turn in range(arguments.turns):
                for operation in OPERATIONS:
                    for version in versions if turn % 2 else reversed(versions):
                        version.measure(operation)
        finally:
            for version in versions:
                version.stop()
    print(*describe(*versions), sep="\n")


if __name__ == "__main__":
    main()
