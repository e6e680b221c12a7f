"""Traces, replayed: every operation, and after each the live tree and every snapshot.

    python -m tests.traces.replay FILE --through client --store postgres

Exits with 1 at the first difference, after showing it.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.traces.adapter import Adapter, Version
from tests.traces.blockless import ModelAdapter
from tests.traces.diffs import contradiction, explain_difference
from tests.traces.systems import STORES, SYSTEMS, open_adapter
from tests.traces.trace import Expected, Listing, Trace, digest, read_traces, snapshot_path

from cairnfs.errors import HdfsError

METHODS = {
    "createSnapshot": "create_snapshot",
    "deleteSnapshot": "delete_snapshot",
    "renameSnapshot": "rename_snapshot",
}
READ_AGAIN_EVERY = 10


@dataclass(frozen=True)
class Difference:
    """The first thing that was not as a trace wants it."""

    trace: Trace
    step: Expected
    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return (
            f"trace {self.trace.seed}, operation {self.step.index}, {self.step}: {self.what}\n"
            f"  expected: {self.expected}\n"
            f"  found:    {self.found}"
        )


class Replay:
    """One trace on one file system, which it finds empty."""

    def __init__(self, adapter: Adapter, trace: Trace) -> None:
        self._adapter = adapter
        self._trace = trace
        self._contents: dict[Version, str] = {}  # digests of what was read

    def run(self) -> Difference | None:
        """All of it, or until something is different."""
        before: dict[str, str] = {}
        for step in self._trace.steps:
            if step.index % READ_AGAIN_EVERY == 0 or step is self._trace.steps[-1]:
                self._contents.clear()
            try:
                self._run(step)
                self._check_trees(step, before)
            except _Different as different:
                return Difference(self._trace, step, *different.args)
            before = step.snapshots
        return None

    def _run(self, step: Expected) -> None:
        result: Any = None
        error: HdfsError | None = None
        method = getattr(self._adapter, METHODS.get(step.operation, step.operation))
        try:
            result = method(*step.arguments)
        except HdfsError as refused:
            error = refused
        if (error is None) != (step.result == "ok"):
            found = "ok" if error is None else f"{type(error).__name__}: {error}"
            raise _Different("the result", step.result, found)
        if error is not None:
            return
        if step.text is not None and result != step.text.encode():
            raise _Different("the content", step.text, result)
        if step.entries is not None:
            self._check_diff(step, result)

    def _check_diff(self, step: Expected, found: set[tuple[str, ...]]) -> None:
        assert step.entries is not None
        path, *names = step.arguments
        base = path.rstrip("/")
        states = [self._listing(f"{base}|{name}" if name else base or "/") for name in names]
        wrong = contradiction(*states, found)
        if wrong is None and not step.depends_on_identity:
            wrong = explain_difference(step.entries, step.optional, found)
        if wrong is not None:
            raise _Different(f"the diff: {wrong}", sorted(step.entries), sorted(found))

    def _check_trees(self, step: Expected, before: dict[str, str]) -> None:
        live = self._listing("/")
        if digest(live) != step.live:
            raise self._explain(step, "the live tree", "/", step.live, live)
        if step.full is not None and live != step.full:
            raise _Different("the full listing", step.full, live)
        for name, expected in step.snapshots.items():
            listing = self._listing(name)
            if digest(listing) != expected:
                raise self._explain(step, f"snapshot {name}", name, expected, listing)
        for name in before.keys() - step.snapshots.keys():
            try:
                found = self._listing(name)
            except HdfsError:
                continue
            raise _Different(f"snapshot {name}, which is gone", None, found)

    def _listing(self, name: str) -> Listing:
        """Of a directory, or of a snapshot; contents are read again now and then."""
        directory, is_snapshot, snapshot = name.partition("|")
        path = snapshot_path(directory, snapshot) if is_snapshot else name
        return self._adapter.listing(path, self._contents)

    def _explain(
        self, step: Expected, what: str, name: str, expected: str, found: Listing
    ) -> _Different:
        """What is different, path by path, beside what the model makes of the same trace."""
        model = Replay(ModelAdapter(), self._trace)
        for each in self._trace.steps[: self._trace.steps.index(step) + 1]:
            model._run(each)
        right = model._listing(name)
        if digest(right) != expected:
            return _Different(what, f"digest {expected}", found)
        paths = {path for path in {*right, *found} if right.get(path) != found.get(path)}
        return _Different(
            what,
            {path or "/": right.get(path) for path in sorted(paths)},
            {path or "/": found.get(path) for path in sorted(paths)},
        )


class _Different(Exception):
    """What is different, what was expected, and what was found."""


def replay(adapter: Adapter, trace: Trace) -> Difference | None:
    """Replay a trace on a file system that it may empty first; the first difference."""
    adapter.begin()
    return Replay(adapter, trace).run()


def main() -> int:
    arguments = parse_arguments()
    try:
        traces = read_traces(arguments.file)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [each for each in traces if arguments.seed in (None, each.seed)]
    operations = 0
    started_s = time.monotonic()
    with open_adapter(arguments.through, arguments.store) as adapter:
        for trace in chosen:
            difference = replay(adapter, trace)
            if difference is not None:
                print(difference)
                return 1
            operations += len(trace.steps)
            print(f"trace {trace.seed}: {len(trace.steps)} operations, no difference", flush=True)
    seconds = time.monotonic() - started_s
    print(f"{len(chosen)} traces, {operations} operations in {seconds:.0f} s: no difference")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Replay traces of snapshots.")
    parser.add_argument("file", type=Path, help="JSON lines; see README.md beside this")
    parser.add_argument("--through", choices=SYSTEMS, default="client")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--seed", type=int, help="of the only trace to replay; else all")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
