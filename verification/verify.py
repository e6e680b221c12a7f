"""`make verify`: the rules of inherited attributes, proved as far as machines can.

    TLC         the specification beside this file, with our rules and with wrong ones
    sequences   the rules in Python beside the magician: every sequence up to a bound
    random      the same on random walks, with snapshots, roll-backs and clones

Exits with 1 if anything is not as expected: if our rules fail, or if wrong ones do not.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.attributes.exploring import Bounds, Difference, Tally, explore, wander
from tests.attributes.ruled import RuledTree
from verification.cases import CASES
from verification.tlc import OUR_RULE, Case, Outcome, TlcError, check

from cairnfs.errors import UnsupportedOperationException
from cairnfs.java import find_java

PROGRESS_EVERY_S = 5.0
COMPARISONS = 1_000_000
EVERY_SEQUENCE = Bounds(operations=3)


def main() -> int:
    arguments = parse_arguments()
    chosen = [case for case in CASES if arguments.only in describe(case)]
    if not chosen:
        print(f"verify: the description of no case contains {arguments.only!r}", file=sys.stderr)
        return 2
    try:
        outcomes = check_all(chosen, find_java())
    except (TlcError, UnsupportedOperationException) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 2
    print_table(outcomes)
    is_expected = all(outcome.is_expected for outcome in outcomes)
    if not arguments.only:
        is_expected &= explore_all(arguments.comparisons, arguments.seed)
    print("verify: everything is as expected" if is_expected else "verify: FAILED", flush=True)
    return 0 if is_expected else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check the rules of inherited attributes.")
    parser.add_argument("--only", default="", help="cases of TLC whose description contains this")
    parser.add_argument("--comparisons", type=int, default=COMPARISONS, help="of random walks")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of them")
    return parser.parse_args()


# TLC.


def describe(case: Case) -> str:
    """A line of the table."""
    kind = {"path": "follows path", "data": "stays with data", "local": "local"}[case.kind]
    words = [f"{kind}, {case.inodes} inodes"]
    if case.snapshots:
        words.append(f"{case.snapshots} snapshot{'s' if case.snapshots > 1 else ''}")
    if case.every_name:
        words.append("every name")
    if case.operations_max:
        words.append(f"{case.operations_max} operations")
    if case.rule != OUR_RULE:
        words.append(f"“{case.rule}”")
    return ", ".join(words)


def check_all(cases: list[Case], java: str) -> list[Outcome]:
    """As many at a time as there are processors, since each has one worker."""
    outcomes: dict[Case, Outcome] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(check, case, java): case for case in cases}
        try:
            for done in as_completed(running):
                outcome = outcomes[running[done]] = done.result()
                print(
                    f"{len(outcomes)} of {len(cases)}: {describe(outcome.case)}:"
                    f" {outcome.distinct:,} states, {verdict(outcome)}",
                    flush=True,
                )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [outcomes[case] for case in cases]


def print_table(outcomes: list[Outcome]) -> None:
    print(f"\n{'configuration':62} {'generated':>10} {'distinct':>9} {'depth':>5}  result")
    for each in outcomes:
        print(
            f"{describe(each.case):62} {each.generated:>10,} {each.distinct:>9,} {each.depth:>5}"
            f"  {result(each)}"
        )
    print(flush=True)


def result(outcome: Outcome) -> str:
    """The verdict, and how to come there."""
    if outcome.violated is None:
        return verdict(outcome)
    found = f"after {len(outcome.counterexample)}: {'; '.join(outcome.counterexample)}"
    return f"{verdict(outcome)} {found}"


def verdict(outcome: Outcome) -> str:
    if outcome.violated is None:
        return "NOT CAUGHT" if outcome.case.is_caught else "no error"
    return "caught" if outcome.case.is_caught else f"{outcome.violated} VIOLATED"


# The rules in Python.


def explore_all(comparisons: int, seed: int) -> bool:
    tree = RuledTree()
    runs: dict[str, Callable[[], Tally]] = {
        f"every sequence of {EVERY_SEQUENCE.operations} operations": lambda: explore(
            tree, EVERY_SEQUENCE, on_progress=Progress()
        ),
        f"random walks, seed {seed}": lambda: wander(
            tree, seed, comparisons, on_progress=Progress()
        ),
    }
    is_same = True
    for name, run in runs.items():
        try:
            tally = run()
        except Difference as difference:
            is_same = False
            print(f"{name}: {difference}", flush=True)
        else:
            print(f"{name}: {describe_tally(tally)}, no difference", flush=True)
    return is_same


def describe_tally(tally: Tally) -> str:
    return (
        f"{tally.sequences:,} sequences, {tally.operations:,} operations,"
        f" {tally.comparisons:,} comparisons"
    )


class Progress:
    """A line every few seconds."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + PROGRESS_EVERY_S

    def __call__(self, tally: Tally) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + PROGRESS_EVERY_S
            print(f"  {describe_tally(tally)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
