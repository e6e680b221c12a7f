"""That the cluster is to be balanced, as a row: who wants it, how, and how far it is.

There is one row, so there is one balancer at a time, on however many NameNodes.  The NameNode that
gives commands to DataNodes works it off (`namenode.balancer`), and puts down what it has moved.
When it dies, another one measures the cluster anew and goes on: what is in the row is true at any
moment, and nothing else has to be remembered.

Invariant: `moved_bytes` and `moved_blocks` count replicas that have arrived, none of them twice.
(Those that arrive while no NameNode looks are not counted.)
"""

from __future__ import annotations

import enum

import msgspec

from cairnfs.errors import IllegalArgumentException, IOException
from cairnfs.namesystem.permissions import Caller, check_superuser
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import register
from cairnfs.transaction.transaction import Transaction

THRESHOLD = 10.0  # percent, as of HDFS's balancer
THRESHOLD_MIN, THRESHOLD_MAX = 1.0, 100.0
IDLE_ITERATIONS_MAX = 5  # after so many in which nothing could be moved, it ends

BALANCING_KEY: Key = (int(Table.BALANCING), 0, b"")


class BalancingState(enum.IntEnum):
    """How far it is; those after the first are ends, as HDFS's balancer has them."""

    IN_PROGRESS = 0
    BALANCED = 1
    NO_MOVE_BLOCK = 2  # nobody can give anything to anybody
    NO_MOVE_PROGRESS = 3  # nothing was moved for some iterations
    STOPPED = 4  # somebody said so


class BalancerParameters(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is to be balanced.  DataNodes are named by host, address, or either with the port."""

    threshold: float = THRESHOLD
    included: tuple[str, ...] = ()  # none: all
    excluded: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # who may give; none: all
    idle_iterations_max: int = IDLE_ITERATIONS_MAX  # less than 0: it never gives up


class Balancing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A balancing that is under way, or the last one that there was."""

    parameters: BalancerParameters
    user: str
    started_ms: int  # of no two the same
    state: BalancingState = BalancingState.IN_PROGRESS
    iteration: int = 0  # that has begun last
    idle_iterations: int = 0  # at last, one after the other
    moved_bytes: int = 0
    moved_blocks: int = 0
    iteration_bytes: int = 0  # moved in this iteration
    left_bytes: int = 0  # when the iteration began
    moving_bytes: int = 0  # that the iteration is to move
    ended_ms: int = 0

    @property
    def is_running(self) -> bool:
        return self.state is BalancingState.IN_PROGRESS


register(Table.BALANCING, Balancing)


@operation()
def start_balancing(tx: Transaction, caller: Caller, parameters: BalancerParameters) -> Balancing:
    """Have the cluster balanced; who asks for what is under way already is told how far it is."""
    check_superuser(caller, "startBalancing")
    check_parameters(parameters)
    known = _find(tx)
    if known is not None and known.is_running:
        if known.parameters == parameters:
            return known
        raise IOException(
            f"Another balancer is running: {known.user} started it with a threshold of"
            f" {known.parameters.threshold:g}, iteration {known.iteration}; stop it (cairn balancer"
            " --stop), or wait"
        )
    started_ms = tx.now_ms if known is None else max(tx.now_ms, known.started_ms + 1)
    started = Balancing(parameters, caller.user, started_ms)
    tx.put(BALANCING_KEY, started)
    return started


@operation()
def stop_balancing(tx: Transaction, caller: Caller) -> Balancing | None:
    """No further moves are begun; the last balancing, if there was any."""
    check_superuser(caller, "stopBalancing")
    known = _find(tx)
    if known is None or not known.is_running:
        return known
    return _put(tx, known, state=BalancingState.STOPPED, ended_ms=tx.now_ms)


@operation(mutates=False)
def get_balancing(tx: Transaction) -> Balancing | None:
    """The balancing that is under way, or the last one."""
    return _find(tx)


@operation()
def begin_iteration(
    tx: Transaction, started_ms: int, left_bytes: int, moving_bytes: int
) -> Balancing | None:
    """The cluster was measured: another iteration begins, or all is done.  None: it was stopped."""
    known = _running(tx, started_ms)
    if known is None:
        return None
    # An iteration that a NameNode's death has cut short is none in which nothing could be moved.
    state = BalancingState.IN_PROGRESS
    if not left_bytes:
        state = BalancingState.BALANCED
    elif not moving_bytes:
        state = BalancingState.NO_MOVE_BLOCK
    elif 0 <= known.parameters.idle_iterations_max <= known.idle_iterations:
        state = BalancingState.NO_MOVE_PROGRESS
    is_over = state is not BalancingState.IN_PROGRESS
    return _put(
        tx,
        known,
        state=state,
        iteration=known.iteration + (not is_over),
        iteration_bytes=0,
        left_bytes=left_bytes,
        moving_bytes=0 if is_over else moving_bytes,
        ended_ms=tx.now_ms if is_over else 0,
    )


@operation()
def note_moved(tx: Transaction, started_ms: int, blocks: int, size_bytes: int) -> None:
    """So many replicas have arrived; also after it was stopped."""
    known = _find(tx)
    if known is not None and known.started_ms == started_ms:
        _put(
            tx,
            known,
            moved_bytes=known.moved_bytes + size_bytes,
            moved_blocks=known.moved_blocks + blocks,
            iteration_bytes=known.iteration_bytes + size_bytes,
        )


@operation()
def end_iteration(tx: Transaction, started_ms: int) -> None:
    """All that could be moved in this iteration was."""
    known = _running(tx, started_ms)
    if known is not None:
        idle = 0 if known.iteration_bytes else known.idle_iterations + 1
        if idle != known.idle_iterations:
            _put(tx, known, idle_iterations=idle)


def check_parameters(parameters: BalancerParameters) -> None:
    if not THRESHOLD_MIN <= parameters.threshold <= THRESHOLD_MAX:  # NaN is not, either
        raise IllegalArgumentException(
            f"Number out of range: threshold = {parameters.threshold:g}; it is a percentage from"
            f" {THRESHOLD_MIN:g} to {THRESHOLD_MAX:g}"
        )


def _find(tx: Transaction) -> Balancing | None:
    found: Balancing | None = tx.get(BALANCING_KEY)
    return found


def _running(tx: Transaction, started_ms: int) -> Balancing | None:
    """The balancing that the caller means, if it is still under way."""
    known = _find(tx)
    is_meant = known is not None and known.is_running and known.started_ms == started_ms
    return known if is_meant else None


def _put(tx: Transaction, known: Balancing, **changes: object) -> Balancing:
    changed = msgspec.structs.replace(known, **changes)
    tx.put(BALANCING_KEY, changed)
    return changed
