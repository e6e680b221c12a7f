"""Long random walks, reproducible by their seed, and shrinking what one of them finds."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.comparison import Divergence
from tests.model.driver import Pair
from tests.model.nested_calls import make_nested_steps
from tests.model.product import Configuration, Product, temporary_directory
from tests.model.scenes import make_step
from tests.model.steps import Batch, RandomChoose, Step

from cairnfs.clock import ManualClock
from cairnfs.testing.postgres_server import PostgresServer

EPISODE_STEPS = 250
PATHS_MAX = 60
CHECK_EVERY = 20
NESTED_EPISODE_STEPS = 120
NESTED_CHECK_EVERY = 5  # what is lost of a snapshot shows only where it is read
NESTED_IN_10 = 4  # episodes
REPLAYS_OF_CONCURRENT = 8

Trace = list[Step | Batch]


@dataclass
class Walk:
    """How far a walk has come, and what it found."""

    configuration: Configuration
    seed: int
    steps: int = 0
    conflicts: int = 0
    undecided: int = 0  # steps after which both began anew
    seconds: float = 0.0
    trace: Trace = field(default_factory=list)  # since the tree was last empty
    divergence: Divergence | None = None


@contextlib.contextmanager
def open_product(
    configuration: Configuration, postgres_url: str | None = None
) -> Iterator[Product]:
    """NameNodes on a namespace of their own."""
    directory = None
    url = postgres_url
    if configuration.store == "sqlite":
        directory = temporary_directory()
        url = f"sqlite://{directory}/namespace.db"
    assert url is not None, f"{configuration.name} needs a database"
    try:
        product = Product(configuration, url, ManualClock())
        try:
            yield product
        finally:
            product.close()
    finally:
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def open_on_server(
    configuration: Configuration, server: PostgresServer | None, database: str
) -> Iterator[Product]:
    """As `open_product`, in a new database if it needs one."""
    if configuration.store == "sqlite" or server is None:
        with open_product(configuration) as product:
            yield product
        return
    url = server.create_database(database)
    try:
        with open_product(configuration, url) as product:
            yield product
    finally:
        server.drop_database(database)


def walk(
    product: Product,
    seed: int,
    steps: int,
    *,
    on_progress: Callable[[Walk], None] | None = None,
    batches_percent: int = 20,
    scenes: tuple[Any, ...] = (),
    with_snapshots: bool = False,
    nested_in_10: int = NESTED_IN_10,
) -> Walk:
    """Take random steps until there were enough, or until one diverges.

    With snapshots, some of the times that it begins with an empty tree, nearly all steps are those
    of `nested_calls`.
    """
    namenodes = product.configuration.namenodes
    done = Walk(product.configuration, seed)
    choose = RandomChoose(random.Random(seed))
    product.delays.reseed(seed)
    started_s = time.monotonic()
    try:
        pair = Pair(product, with_snapshots=with_snapshots)
        is_nested = with_snapshots and choose.number(1, 10) <= nested_in_10
        while done.steps < steps:
            world = pair.world()
            episode_steps = NESTED_EPISODE_STEPS if is_nested else EPISODE_STEPS
            if len(done.trace) >= episode_steps or len(world.paths) > PATHS_MAX:
                pair.check_tree(0)
                pair.check_invariants()
                pair.begin()
                done.trace = []
                world = pair.world()
                is_nested = with_snapshots and choose.number(1, 10) <= nested_in_10
            world.scenes = scenes
            for step in (
                make_nested_steps(choose, world, namenodes)
                if is_nested
                else (make_step(choose, world, namenodes, batches_percent),)
            ):
                done.trace.append(step)
                if pair.run(step):
                    done.undecided += 1
                    done.trace = []
                    break
                if len(done.trace) % (NESTED_CHECK_EVERY if is_nested else CHECK_EVERY) == 0:
                    done.trace.append(Step("check", namenode=len(done.trace) % namenodes))
                    pair.run(done.trace[-1])
            done.steps = pair.steps
            done.conflicts = product.conflicts
            done.seconds = time.monotonic() - started_s
            if on_progress is not None:
                on_progress(done)
        pair.check_tree(0)
        pair.check_invariants()
    except Divergence as divergence:
        done.divergence = divergence
    return done


def replay(product: Product, trace: Trace, *, with_snapshots: bool = False) -> Divergence | None:
    """Run a trace from an empty tree; concurrent ones several times."""
    concurrent = any(isinstance(step, Batch) for step in trace)
    for _ in range(REPLAYS_OF_CONCURRENT if concurrent else 1):
        try:
            pair = Pair(product, with_snapshots=with_snapshots)
            for step in trace:
                pair.run(step)
            pair.check_tree(0)
            pair.check_invariants()
        except Divergence as divergence:
            return divergence
    return None


def shrink(
    open_fresh: Callable[[], AbstractContextManager[Product]],
    trace: Trace,
    *,
    budget_s: float = 60.0,
    with_snapshots: bool = False,
) -> tuple[Trace, Divergence | None]:
    """A shorter trace that diverges too, by leaving out ever smaller pieces.

    Each is replayed on a namespace of its own: what one has broken must not show in the next.
    """
    deadline_s = time.monotonic() + budget_s

    def diverges(candidate: Trace) -> Divergence | None:
        if time.monotonic() >= deadline_s or not candidate:
            return None
        with open_fresh() as product:
            return replay(product, candidate, with_snapshots=with_snapshots)

    best, divergence = trace, diverges(trace)
    if divergence is None:
        return trace, None  # it needs luck: the whole trace is all there is to show
    in_order = [each for step in trace for each in _one_after_the_other(step)]
    found = diverges(in_order) if in_order != trace else None
    if found is not None:
        best, divergence = in_order, found
    size = max(1, len(best) // 2)
    while time.monotonic() < deadline_s:
        position = 0
        shorter = False
        while position < len(best) and time.monotonic() < deadline_s:
            candidates = [best[:position] + best[position + size :]]
            if size == 1:
                rest = best[:position], best[position + 1 :]
                candidates += [[*rest[0], *parts, *rest[1]] for parts in _simpler(best[position])]
            for candidate in candidates:
                found = diverges(candidate)
                if found is not None:
                    best, divergence, shorter = candidate, found, True
                    break
            else:
                position += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return best, divergence


def _one_after_the_other(step: Step | Batch) -> Trace:
    return [*step.before, *step.steps] if isinstance(step, Batch) else [step]


def _simpler(step: Step | Batch) -> Iterator[Trace]:
    """A batch as calls one after the other, or with one call less."""
    if isinstance(step, Batch):
        yield _one_after_the_other(step)
        for index in range(len(step.steps) if len(step.steps) > 1 else 0):
            yield [replace(step, steps=step.steps[:index] + step.steps[index + 1 :])]
        for index in range(len(step.before)):
            yield [replace(step, before=step.before[:index] + step.before[index + 1 :])]
