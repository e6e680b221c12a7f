"""Listing a directory at a snapshot, after more and more changes (thesis 000, figure 4.1)."""

from __future__ import annotations

from benchmarks.callers import Request
from benchmarks.command import Progress
from benchmarks.snapshots.bench import (
    ELSEWHERE,
    FILES,
    Bench,
    Row,
    Shelf,
    creation,
    move,
    path_of,
    removal,
)
from benchmarks.snapshots.published import LISTING_FILES, MIX, THESIS_LISTING_S


async def measure_listing(
    shelf: Shelf, kind: str, files: int, rounds: int, progress: Progress
) -> list[Row]:
    """Seconds for the snapshot and for the present, after each round of changes."""
    rows: list[Row] = []
    async with shelf.open(kind, files) as bench:
        await bench.snapshot("s")
        changes = Changes(files)
        for number in range(rounds + 1):
            if number:
                progress(f"listing, {kind}: round {number} of {rounds}, changes")
                for requests in changes.next_round():
                    await bench.run(requests)
            progress(f"listing, {kind}: round {number} of {rounds}, after {changes.made:,} changes")
            now_s, then_s = await _list_both(bench, files, is_odd=bool(number % 2))
            is_full = files == LISTING_FILES and 1 <= number <= len(THESIS_LISTING_S)
            rows.append(
                {
                    "changes": changes.made,
                    "now_s": now_s,
                    "snapshot_s": then_s,
                    "ratio": then_s / now_s,
                    "thesis_s": THESIS_LISTING_S[number - 1] if is_full else None,
                }
            )
    return rows


async def _list_both(bench: Bench, files: int, *, is_odd: bool) -> tuple[float, float]:
    """The seconds for the present and for the snapshot; each round begins with the other one."""
    took: dict[str, float] = {}
    paths = [FILES, f"{FILES}/.snapshot/s"]
    for path in paths if is_odd else reversed(paths):
        count, took[path] = await bench.list_all(path)
        assert path == FILES or count == files, f"{count:,} entries at the snapshot of {files:,}"
    return took[paths[0]], took[paths[1]]


class Changes:
    """The mix of figure 4.1, each change of a file that none before has touched."""

    def __init__(self, files: int) -> None:
        part = files / LISTING_FILES
        self._sizes = {name: max(1, int(size * part)) for name, size in MIX.items()}
        self._next = 0  # the first file that is as it was
        self._round = 0
        self.made = 0

    def next_round(self) -> tuple[list[Request], list[Request]]:
        """Changes that may be made in any order, and then those that need them: back in."""
        self._round += 1
        new = 10_000_000 * self._round
        requests = [creation(path_of(new + n)) for n in range(self._sizes["add"])]
        requests += [removal(path_of(n)) for n in self._take("delete")]
        requests += [move(path_of(n), path_of(100_000_000 + n)) for n in self._take("rename")]
        out = self._take("move")
        requests += [move(path_of(n), path_of(n, ELSEWHERE)) for n in out]
        some = out[: self._sizes["move in"]]
        back = [move(path_of(n, ELSEWHERE), path_of(n)) for n in some]
        self.made += len(requests) + len(back)
        return requests, back

    def _take(self, name: str) -> range:
        first = self._next
        self._next += self._sizes[name]
        return range(first, self._next)
