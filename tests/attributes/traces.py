"""Traces of attributes: sequences of operations, with the value of everything after each.

tests/traces/README.md describes the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tests.attributes.operations import Kinds, Operation, System, Values

from cairnfs.namesystem.attribute_rules import AttributeKind

Shown: TypeAlias = tuple[str, str | None, dict[str, Values]]
"""A path, one of its snapshots or None, and what is to be seen there."""

FOLDER = Path(__file__).parents[1] / "traces"
FILES = (FOLDER / "attributes.jsonl", FOLDER / "attributes_in_snapshots.jsonl")

KINDS = {
    "RA": AttributeKind.FOLLOWS_PATH,
    "NRI": AttributeKind.STAYS_WITH_DATA,
    "LOC": AttributeKind.LOCAL,
}
OPERATIONS = {"setfattr": "set", "removefattr": "remove", "snapshot": "create_snapshot"}


@dataclass(frozen=True)
class Trace:
    """A header and its lines; attributes of a kind that we do not have are left out."""

    header: dict[str, Any]
    lines: list[dict[str, Any]]

    @property
    def kinds(self) -> Kinds:
        kinds: dict[str, str] = self.header["attrs"]
        return {name: KINDS[kinds[name]] for name in self.header["order"] if kinds[name] in KINDS}

    def operation(self, line: dict[str, Any]) -> Operation | None:
        """None if it concerns an attribute that is left out."""
        arguments = list(line["a"])
        if line["op"] in ("setfattr", "removefattr") and arguments[1] not in self.kinds:
            return None
        if line["op"] == "setfattr":
            arguments[2] = self.header["values"][arguments[2]]
        return Operation(OPERATIONS.get(line["op"], line["op"]), tuple(arguments))

    def values(self, codes: dict[str, str]) -> dict[str, Values]:
        """What a line says of each path, with the root as "", as a system says it."""
        order: list[str] = self.header["order"]
        ours = [order.index(name) for name in self.kinds]
        meaning = self.header["values"]
        return {
            "" if path == "/" else path: tuple(meaning[each[index]] for index in ours)
            for path, each in codes.items()
        }


def read_traces(path: Path) -> list[Trace]:
    """All traces of a file."""
    traces: list[Trace] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(text)
        if "op" in fields:
            traces[-1].lines.append(fields)
        else:
            traces.append(Trace(fields, []))
    return traces


def replay(system: System, trace: Trace) -> str | None:
    """The first difference, in words."""
    system.begin(trace.kinds)
    taken: dict[tuple[str, str], dict[str, Values]] = {}
    for line in trace.lines:
        where = f"trace {trace.header['seed']}, operation {line['i']}, {line['op']} {line['a']}"
        operation = trace.operation(line)
        if operation is not None:
            outcome = operation.apply(system)
            if (outcome is None) != (line["r"] == "ok"):
                return f"{where}: expected {line['r']}, found {outcome or 'ok'}"
        if "sx" in line:
            path, name = line["a"]
            taken[path, name] = trace.values(line["sx"])
        if "x" in line:
            expected: list[Shown] = [("/", None, trace.values(line["x"]))]
            expected += [(path, name, values) for (path, name), values in taken.items()]
            for difference in _differences(system, expected):
                return f"{where}: {difference}"
    return None


def _differences(system: System, expected: list[Shown]) -> Iterable[str]:
    for path, snapshot, wanted in expected:
        found = system.values(path, snapshot)
        if found != wanted:
            place = path if snapshot is None else f"{path}, snapshot {snapshot}"
            yield f"{place}: expected {wanted}, found {found}"
