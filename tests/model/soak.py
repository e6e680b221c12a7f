"""`make soak`: many random steps beside the model, on every configuration.

    python tests/model/soak.py --steps 100000 --config all --seed 1

Exits with 1 if anything diverged, after printing the shortest trace it found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.model.product import CONFIGURATIONS, Configuration
from tests.model.walk import Walk, open_on_server, shrink, walk

from cairnfs.testing.postgres_server import PostgresServer

PROGRESS_EVERY_S = 5.0


class Progress:
    """A line every few seconds."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._next_s = time.monotonic() + PROGRESS_EVERY_S

    def __call__(self, done: Walk) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + PROGRESS_EVERY_S
            print(
                f"{done.configuration.name:28} {done.steps:>8} of {self._steps} steps"
                f" {done.steps / done.seconds:>7.0f}/s {done.conflicts:>6} conflicts",
                flush=True,
            )


def main() -> int:
    arguments = parse_arguments()
    chosen = [
        configuration
        for name, configuration in CONFIGURATIONS.items()
        if arguments.config in ("all", name)
    ]
    seed = arguments.seed if arguments.seed is not None else random.randrange(2**32)
    steps = -(-arguments.steps // len(chosen))
    print(f"seed {seed}, {steps} steps on each of {len(chosen)} configurations", flush=True)
    server = None
    if any(configuration.store == "postgres" for configuration in chosen):
        server = PostgresServer(durable=False)
        server.start()
    try:
        walks = [
            run(configuration, server, seed, steps, with_snapshots=arguments.snapshots)
            for configuration in chosen
        ]
    finally:
        if server is not None:
            server.close()
    return report(walks)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Random steps beside the model.")
    parser.add_argument("--steps", type=int, default=100_000, help="in all; default 100000")
    parser.add_argument("--config", choices=("all", *CONFIGURATIONS), default="all")
    parser.add_argument("--snapshots", action="store_true", help="with calls of snapshots")
    parser.add_argument("--seed", type=int, help="of the choices; by default a new one")
    return parser.parse_args()


def run(
    configuration: Configuration,
    server: PostgresServer | None,
    seed: int,
    steps: int,
    *,
    with_snapshots: bool,
) -> Walk:
    with open_on_server(configuration, server, "soak") as product:
        done = walk(
            product, seed, steps, on_progress=Progress(steps), with_snapshots=with_snapshots
        )
    if done.divergence is not None:
        show(done, server, with_snapshots=with_snapshots)
    return done


def show(done: Walk, server: PostgresServer | None, *, with_snapshots: bool) -> None:
    print(f"\n{done.configuration.name} diverged after {done.steps} steps:", flush=True)
    print(done.divergence)
    trace, divergence = shrink(
        lambda: open_on_server(done.configuration, server, "shrink"),
        done.trace,
        with_snapshots=with_snapshots,
    )
    if divergence is None:
        print("it did not diverge again when replayed; the whole trace:")
    else:
        print(f"the shortest trace found, of {len(trace)} steps:")
    for step in trace:
        print(f"  {step}")
    if divergence is not None:
        print(divergence)
    print(flush=True)


def report(walks: list[Walk]) -> int:
    print(
        f"\n{'configuration':28} {'steps':>8} {'steps/s':>8} {'conflicts':>9} {'undecided':>9}"
        f" {'divergences':>11}"
    )
    for done in walks:
        rate = done.steps / done.seconds if done.seconds else 0
        found = int(done.divergence is not None)
        name = done.configuration.name
        print(
            f"{name:28} {done.steps:>8} {rate:>8.0f} {done.conflicts:>9} {done.undecided:>9}"
            f" {found:>11}"
        )
    total = sum(done.steps for done in walks)
    divergences = sum(done.divergence is not None for done in walks)
    print(f"{'in all':28} {total:>8} {'':>8} {'':>9} {'':>9} {divergences:>11}")
    return 1 if divergences else 0


if __name__ == "__main__":
    sys.exit(main())
