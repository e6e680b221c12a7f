"""Traces as they are in their files: operations, and what must be true after each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Listing: TypeAlias = dict[str, list[Any]]
"""Relative path -> [type, permission, replication, length, digest of the content]."""

Entries: TypeAlias = set[tuple[str, ...]]
"""Of a diff: ("M", path), ("+", path), ("-", path), ("R", path, new path)."""

SNAPSHOTS = Path(__file__).with_name("snapshots.jsonl")


@dataclass(frozen=True)
class Expected:
    """One operation, and what must be true after it."""

    index: int
    operation: str
    arguments: list[Any]
    result: str
    live: str
    snapshots: dict[str, str]  # digests of all there are, by "/dir|name"
    full: Listing | None = None
    text: str | None = None
    entries: Entries | None = None
    optional: Entries = field(default_factory=set)
    depends_on_identity: bool = False

    def __str__(self) -> str:
        return f"{self.operation}({', '.join(map(repr, self.arguments))})"

    def fields(self, seed: int) -> dict[str, Any]:
        """As a line of a file says it."""
        fields = {
            **{"s": seed, "i": self.index, "op": self.operation, "a": self.arguments},
            **{"r": self.result, "live": self.live, "snaps": self.snapshots},
            **{"full": self.full, "text": self.text},
            "diff": None if self.entries is None else sorted(self.entries),
            "idsens": self.depends_on_identity or None,
        }
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Trace:
    """A sequence of operations from an empty root."""

    seed: int
    steps: list[Expected]


def read_traces(path: Path = SNAPSHOTS) -> list[Trace]:
    """All traces of a file; ValueError says which line is none of a trace."""
    traces: list[Trace] = []
    snapshots: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            if "op" not in fields:
                traces.append(Trace(fields["seed"], []))
                snapshots = {}
                continue
            snapshots = fields.get("snaps", snapshots)
            traces[-1].steps.append(_expected(fields, snapshots))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ValueError(f"{path}:{number} is no line of a trace: {error!r}") from error
    return traces


def digest(listing: Listing) -> str:
    """What a trace says of a whole tree."""
    text = json.dumps(sorted(listing.items()), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def snapshot_path(path: str, name: str) -> str:
    """Where a snapshot of a directory is read."""
    return f"{path.rstrip('/')}/.snapshot/{name}"


def content_digest(content: bytes) -> str:
    """What a listing says of the content of a file."""
    return hashlib.sha256(content).hexdigest()[:12]


def _expected(fields: dict[str, Any], snapshots: dict[str, str]) -> Expected:
    return Expected(
        fields["i"],
        fields["op"],
        fields["a"],
        fields["r"],
        fields["live"],
        snapshots,
        fields.get("full"),
        fields.get("text"),
        _entries(fields["diff"]) if "diff" in fields else None,
        _entries(fields.get("opt", ())),
        fields.get("idsens", False),
    )


def _entries(entries: list[list[str]]) -> Entries:
    return {tuple(entry) for entry in entries}
