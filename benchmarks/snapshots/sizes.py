"""How much of everything."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.snapshots.appending import Log


@dataclass(frozen=True)
class Sizes:
    """Of one run of `make bench-snapshots`."""

    name: str
    files: tuple[int, ...]  # in the large directory; the last one is that of most parts
    repeats: int  # snapshots that are taken of each
    listing_rounds: int
    diff_limit_s: float
    overhead_calls: int  # of each kind, in each round
    overhead_rounds: int
    deleted: int  # files, under the snapshot that is deleted
    quiet_s: float
    log: Log
    covered_files: int
    nested: tuple[int, ...]  # snapshots
    peer_files: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "log": self.log._asdict()}


FULL = Sizes(
    name="full",
    files=(1_000, 10_000, 100_000, 1_000_000),
    repeats=30,
    listing_rounds=9,
    diff_limit_s=120.0,
    overhead_calls=2_000,
    overhead_rounds=5,
    deleted=50_000,
    quiet_s=5.0,
    log=Log(snapshots=(0, 10, 25, 50), transactions=100, first_bytes=16 << 20, rounds=1),
    covered_files=10_000,
    nested=(5, 50, 100),
    peer_files=(1_000, 10_000, 100_000),
)

QUICK = Sizes(
    name="quick",
    files=(1_000, 10_000),
    repeats=5,
    listing_rounds=3,
    diff_limit_s=15.0,
    overhead_calls=300,
    overhead_rounds=2,
    deleted=3_000,
    quiet_s=0.5,
    log=Log(snapshots=(0, 3), transactions=6, first_bytes=1 << 20, rounds=1),
    covered_files=1_000,
    nested=(5, 20),
    peer_files=(100, 1_000),
)
