"""Traces like those of snapshots.jsonl, as many as are wanted; the model says what is right.

python -m tests.traces.generate --seed 100 --traces 20 > more.jsonl
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

from tests.traces.blockless import ModelAdapter
from tests.traces.replay import METHODS
from tests.traces.trace import Expected, Trace, digest, snapshot_path

from cairnfs.errors import HdfsError

PLAIN = {
    "mkdir": 19,
    "create": 23,
    "append": 14,
    "truncate": 9,
    "chmod": 10,
    "setrep": 5,
    "delete": 11,
    "rename": 22,
    "read": 2,
}
OF_SNAPSHOTS = {
    "allow": 6,
    "disallow": 2,
    "createSnapshot": 13,
    "deleteSnapshot": 6,
    "renameSnapshot": 3,
    "rollback": 4,
    "diff": 9,
}
"""How often each comes."""

NAMES = "abcdefg"
DEPTH_MAX = 5
FULL_EVERY = 25
BAD_PERCENT = 6  # of snapshots that are named, that there are none of
ODD_PERCENT = 4  # of paths that are changed, in snapshots


class Generator:
    """Chooses operations, and runs them on a model to know what they come to."""

    def __init__(self, seed: int, *, snapshots: bool = True) -> None:
        self._random = random.Random(seed)
        self._adapter = ModelAdapter()
        weights = PLAIN | (OF_SNAPSHOTS if snapshots else {})
        self._operations = [name for name, weight in weights.items() for _ in range(weight)]
        self._numbers = 0
        self._snapshots: dict[str, list[str]] = {}
        self._rollbacks = 0  # so far
        self._taken_at: dict[str, tuple[int, int]] = {}  # by name: when, after how many of them
        self._listing = self._adapter.listing("/")
        self._trace = Trace(seed, [])

    def make(self, operations: int) -> Trace:
        for _ in range(operations):
            self._step()
        return self._trace

    def _step(self) -> None:
        operation = self._random.choice(self._operations)
        arguments = getattr(self, f"_{operation}")()
        method = getattr(self._adapter, METHODS.get(operation, operation))
        result: Any = None
        code = "ok"
        try:
            result = method(*arguments)
        except HdfsError as error:
            code = type(error).__name__
        self._note(operation, arguments, code)
        self._listing = self._adapter.listing("/")
        index = len(self._trace.steps)
        self._trace.steps.append(
            Expected(
                index,
                operation,
                arguments,
                code,
                digest(self._listing),
                {
                    f"{path}|{name}": digest(self._adapter.listing(snapshot_path(path, name)))
                    for path, names in self._snapshots.items()
                    for name in names
                },
                full=self._listing if index % FULL_EVERY == FULL_EVERY - 1 else None,
                text=result.decode() if operation == "read" and code == "ok" else None,
                entries=result if operation == "diff" and code == "ok" else None,
                depends_on_identity=operation == "diff" and self._is_rolled_back_since(arguments),
            )
        )

    def _note(self, operation: str, arguments: list[Any], code: str) -> None:
        """Keep track of the snapshots there are; each has a name of its own, while it has it."""
        if code != "ok":
            return
        self._rollbacks += operation == "rollback"
        if operation in ("createSnapshot", "renameSnapshot"):
            taken = self._taken_at.get(arguments[1], (self._numbers, self._rollbacks))
            self._taken_at[arguments[-1]] = taken
        self._snapshots = {
            path: sorted(names, key=lambda name: self._taken_at[name])
            for path, names in self._adapter.snapshottable().items()
            if names
        }

    def _is_rolled_back_since(self, arguments: list[Any]) -> bool:
        """Whether there was a roll-back, of whatever, after the earlier state of a diff."""
        _, rollbacks = self._taken_at.get(arguments[1], (0, 0))
        return rollbacks < self._rollbacks

    # What each operation is given.

    def _mkdir(self) -> list[Any]:
        return [self._odd_path() or self._new_path()]

    def _create(self) -> list[Any]:
        self._numbers += 1
        text = f"c{self._numbers}-{'x' * self._random.randint(0, 8)}"
        return [self._odd_path() or self._new_path(), text, self._random.random() < 0.4]

    def _append(self) -> list[Any]:
        self._numbers += 1
        return [self._file(), f"+{self._numbers}"]

    def _truncate(self) -> list[Any]:
        path = self._file()
        length = self._listing[path][3] if path in self._listing else 0
        return [path, self._random.randint(0, length + (self._random.random() < 0.1))]

    def _chmod(self) -> list[Any]:
        return [self._path() or "/", self._random.choice((0o700, 0o750, 0o755, 0o644, 0o600))]

    def _setrep(self) -> list[Any]:
        return [self._file(), self._random.randint(1, 5)]

    def _delete(self) -> list[Any]:
        return [self._odd_path() or self._path() or "/a", self._random.random() < 0.9]

    def _rename(self) -> list[Any]:
        target = self._new_path() if self._random.random() < 0.7 else self._path()
        return [self._path() or "/a", target or "/a", self._random.random() < 0.4]

    def _read(self) -> list[Any]:
        snapshots = self._taken()
        if not snapshots or self._random.random() < 0.3:
            return [self._file()]
        top = snapshot_path(*self._random.choice(snapshots))
        files = [path for path, each in self._adapter.listing(top).items() if each[0] == "f"]
        return [top + self._random.choice(files) if files else f"{top}/none"]

    def _allow(self) -> list[Any]:
        return [self._directory()]

    def _disallow(self) -> list[Any]:
        return [self._snapshottable()]

    def _createSnapshot(self) -> list[Any]:
        path = self._snapshottable() if self._random.random() < 0.9 else self._directory()
        taken = self._snapshots.get(path)
        if taken and self._random.random() < 0.05:
            return [path, self._random.choice(taken)]
        return [path, self._name("s")]

    def _deleteSnapshot(self) -> list[Any]:
        return self._one_taken()

    def _renameSnapshot(self) -> list[Any]:
        return [*self._one_taken(), self._name("t")]

    def _rollback(self) -> list[Any]:
        return self._one_taken()

    def _diff(self) -> list[Any]:
        path, name = self._one_taken()
        names = self._snapshots.get(path, [])
        later = names[names.index(name) + 1 :] if name in names else []
        return [
            path,
            name,
            self._random.choice(later) if later and self._random.random() < 0.4 else "",
        ]

    # Paths and names.

    def _path(self) -> str:
        return self._random.choice([path for path in self._listing if path] or [""])

    def _file(self) -> str:
        files = [path for path, each in self._listing.items() if each[0] == "f"]
        return self._random.choice(files or ["/a"])

    def _directory(self) -> str:
        return (
            self._random.choice([p for p, each in self._listing.items() if each[0] == "d"]) or "/"
        )

    def _new_path(self) -> str:
        path = self._directory().rstrip("/")
        while path.count("/") >= DEPTH_MAX:
            path = path.rpartition("/")[0]
        return f"{path}/{self._random.choice(NAMES)}"

    def _odd_path(self) -> str | None:
        """Something in a snapshot, which can't be changed."""
        snapshots = self._taken()
        if not snapshots or self._random.randrange(100) >= ODD_PERCENT:
            return None
        return snapshot_path(*self._random.choice(snapshots)) + self._random.choice(("", "/w"))

    def _snapshottable(self) -> str:
        return self._random.choice(list(self._adapter.snapshottable()) or ["/"])

    def _taken(self) -> list[tuple[str, str]]:
        return [(path, name) for path, names in self._snapshots.items() for name in names]

    def _one_taken(self) -> list[Any]:
        snapshots = self._taken()
        if not snapshots or self._random.randrange(100) < BAD_PERCENT:
            return [self._snapshottable(), "nope"]
        return list(self._random.choice(snapshots))

    def _name(self, begin: str) -> str:
        self._numbers += 1
        return f"{begin}{self._numbers}"


def make_trace(seed: int, operations: int, *, snapshots: bool = True) -> Trace:
    """A trace that is always the same for a seed."""
    return Generator(seed, snapshots=snapshots).make(operations)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make traces of snapshots.")
    parser.add_argument("--seed", type=int, default=0, help="of the first trace")
    parser.add_argument("--traces", type=int, default=10)
    parser.add_argument("--operations", type=int, default=150, help="of each")
    arguments = parser.parse_args()
    for seed in range(arguments.seed, arguments.seed + arguments.traces):
        trace = make_trace(seed, arguments.operations)
        print(json.dumps({"seed": seed, "ops": arguments.operations}))
        for step in trace.steps:
            print(json.dumps(step.fields(seed), separators=(",", ":")))


if __name__ == "__main__":
    main()
