"""`cairn job rollback`, `reclaim` and `satisfy`: their options, and what they say."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cairnfs.jobs import ReclaimResult, RollbackResult, SatisfyResult


def add_options(rollback: argparse.ArgumentParser, satisfy: argparse.ArgumentParser) -> None:
    rollback.add_argument("directory", metavar="PATH", help="a directory, or a file")
    rollback.add_argument("snapshot", metavar="SNAPSHOT", help="one of its snapshots")
    rollback.add_argument(
        "--safety", metavar="NAME", help="of the snapshot of what is given up (made up)"
    )
    satisfy.add_argument(
        "path", metavar="PATH", nargs="?", help="to look through, whatever its policy was before"
    )
    satisfy.add_argument(
        "--no-wait", action="store_true", help="do not wait until replicas are moved"
    )


def describe_rollback(done: RollbackResult) -> str:
    was = f"{done.directory} was rolled back to {done.snapshot} by a run that was ended"
    now = f"Rolled {done.directory} back to {done.snapshot}"
    return (
        f"{was if done.was_done else now}; {_work(done)}"
        f"\nto undo that: cairn snapshot rollback {done.directory} {done.safety_snapshot}"
    )


def describe_reclaim(done: ReclaimResult) -> str:
    if not done.rounds:
        return "Nothing was left to be reclaimed"
    return f"Reclaimed what was deleted; {_work(done)}"


def describe_satisfy(done: SatisfyResult) -> str:
    lines = [
        f"Looked through {done.items:,} subtrees; {done.placed_blocks:,} blocks were found or"
        f" brought to where they belong, in {done.seconds:.1f} s"
    ]
    if done.waiting_blocks:
        lines.append(f"{done.waiting_blocks:,} blocks are still to be moved")
    if done.unsatisfied_blocks:
        lines.append(
            f"{done.unsatisfied_blocks:,} blocks cannot be where the policy wants; what cannot be"
            " moved stays where it is, and is tried again:"
        )
        lines += [f"  {blocks:,}: {reason}" for reason, blocks in done.reasons.items()]
    return "\n".join(lines)


def _work(done: RollbackResult | ReclaimResult) -> str:
    rounds = "1 round" if done.rounds == 1 else f"{done.rounds:,} rounds"
    return f"looked at {done.rows:,} rows in {rounds}, {done.seconds:.1f} s"
