"""The balancer: replicas go from full DataNodes to empty ones, when somebody has asked for it.

It is part of the redundancy duty, as the satisfier is, and moves replicas as that does.  The row of
`namesystem.balancing` says whether there is anything to do.  An *iteration* measures the cluster
and pairs DataNodes (`blocks.balancing`); then, for each that is to give something, it looks
through the replicas on its volumes, a page at a time, and has those moved that may go to one of its
takers.  Of a replica that has arrived the old one is too many, and is deleted as any.  When all of
them are gone, and DataNodes have said how full they are now, the next iteration begins.

An iteration is in memory.  When the NameNode ends, the next one begins an iteration of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cairnfs.blocks.balancing import BalancePlan, Exchange, choose_move, plan_balance
from cairnfs.blocks.records import (
    BlockId,
    CheckQueue,
    DataNode,
    Replica,
    StorageNumber,
    StorageType,
)
from cairnfs.blocks.relocation import Move
from cairnfs.blocks.topology import DataNodeView
from cairnfs.namenode.moves import BLOCKS_PAGE, Mover, MovingDuty, Outcome
from cairnfs.namesystem.balancing import (
    BALANCING_KEY,
    BalancerParameters,
    Balancing,
    begin_iteration,
    end_iteration,
    note_moved,
)
from cairnfs.namesystem.redundancy import BlockFacts, inspect_blocks
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import run

log = logging.getLogger(__name__)

REPLICAS_PAGE = 200  # rows of a volume looked at in one step
CHECKS_PAGE = 500
LARGE_BYTES = 10 << 20  # those come first, and others if they don't suffice
ENOUGH = 0.05  # an exchange that lacks no more than this part is done
ITERATION_LIMIT_S = 1200.0  # dfs.balancer.max-iteration-time
SETTLING_LIMIT_S = 60.0  # for old replicas to be deleted
IDLE_PAUSE_S = 2.0  # after an iteration in which nothing could be moved


@dataclass(slots=True)
class _Giver:
    """What a DataNode is to give of one type, and how far its volumes were looked through."""

    node: DataNodeView
    type: StorageType
    wanted: dict[str, int]  # bytes, by the DataNode that takes them
    left: dict[str, int]
    volumes: list[StorageNumber]
    volume: int = 0
    after: bytes = b""
    size_min_bytes: int = LARGE_BYTES

    @property
    def is_done(self) -> bool:
        return self.volume >= len(self.volumes) or not any(self.takers())

    def takers(self) -> Iterator[str]:
        """Those that still want something."""
        for uuid, left_bytes in self.left.items():
            if left_bytes > self.wanted[uuid] * ENOUGH:
                yield uuid

    def advance(self, after: bytes) -> None:
        """A page was looked at: go on there, or with the next volume, or once more with all."""
        self.after = after
        if after:
            return
        self.volume += 1
        if self.volume == len(self.volumes) and self.size_min_bytes > 0:
            self.volume = self.size_min_bytes = 0


@dataclass(slots=True)
class _Iteration:
    """One iteration, from measuring to where everything has settled."""

    started_ms: int  # of the balancing that it is part of
    began_s: float
    givers: list[_Giver]
    leaving: dict[BlockId, None] = field(default_factory=dict)  # arrived: an old one has to go
    moved_bytes: int = 0
    changed_s: float = 0.0  # when the last replica arrived or went


@dataclass(eq=False)
class Balancer(MovingDuty):
    """See the module's text.  `step` is part of a duty."""

    _iteration: _Iteration | None = None
    _pause_until_s: float = 0.0
    _followed_ms: int = 0  # the balancing that we have seen all of, or from a quiet moment on
    _unsettled_s: float | None = None  # when old replicas were last seen to be left
    _waiting_s: float = 0.0  # since when that is waited for

    def forget(self) -> None:
        """It is for another NameNode to give commands."""
        self._iteration = None
        self._followed_ms, self._unsettled_s = 0, None

    def plan(self, parameters: BalancerParameters) -> BalancePlan:
        """How the cluster is, and what would be moved next."""
        taking_part, sources = [], set()
        for node in self._datanodes.cluster.nodes:
            known = self._datanodes.get(node.uuid)
            if known is None or not _takes_part(known.record, parameters):
                continue
            taking_part.append(node)
            if not parameters.sources or _is_named(known.record, parameters.sources):
                sources.add(node.uuid)
        return plan_balance(taking_part, parameters.threshold, sources)

    async def step(self) -> int:
        """Some of it; more than 0 if there is more to do at once."""
        if self._safe_mode.is_on:
            return 0
        found = (await self._store.read(Reading(keys=[BALANCING_KEY]))).rows.get(BALANCING_KEY)
        balancing: Balancing | None = None if found is None else decode(Table.BALANCING, found.data)
        if self._moves.of(Mover.BALANCER) and balancing is not None:
            await self._follow(balancing)
        if balancing is None or not balancing.is_running:
            self._iteration = None
            return 0
        if self._iteration is not None and self._iteration.started_ms != balancing.started_ms:
            self._iteration = None
        if self._iteration is None:
            return await self._begin(balancing)
        given = 0 if self._is_late(self._iteration) else await self._give(self._iteration)
        await self._see_leaving(self._iteration)
        if self._is_over(self._iteration):
            await self._end(self._iteration)
        return given

    # Iterations.

    async def _begin(self, balancing: Balancing) -> int:
        if self._datanodes.now_s() < self._pause_until_s or not self._knows_all():
            return 0
        is_another = balancing.iteration > 0 and self._followed_ms != balancing.started_ms
        if is_another and not await self._has_settled():
            return 0
        self._followed_ms, self._unsettled_s = balancing.started_ms, None
        plan = self.plan(balancing.parameters)
        call = Call(begin_iteration, (balancing.started_ms, plan.left_bytes, plan.moving_bytes))
        begun: Balancing | None = await run(self._runner, call)
        if begun is None:
            return 0
        if not begun.is_running:
            log.info("balancer: %s after %d iterations", begun.state.name, begun.iteration)
            return 0
        log.info(
            "balancer: iteration %d moves %d bytes, %d are left to move",
            begun.iteration,
            plan.moving_bytes,
            plan.left_bytes,
        )
        now_s = self._datanodes.now_s()
        self._iteration = _Iteration(
            balancing.started_ms, now_s, self._givers(plan.exchanges), changed_s=now_s
        )
        return 1

    def _knows_all(self) -> bool:
        """Whether all DataNodes were heard of, but for those that are away: who has just begun
        would take the first that comes for the whole cluster."""
        return all(node.is_heard or self._datanodes.is_stale(node) for node in self._datanodes)

    async def _has_settled(self) -> bool:
        """Whether what another NameNode has moved is gone from where it was, as far as it can be.

        Until then DataNodes are fuller than they will be, and would give too much.
        """
        now_s = self._datanodes.now_s()
        if self._unsettled_s is None:
            self._unsettled_s = self._waiting_s = now_s
        checks = Scan(Table.CHECKS, CheckQueue.NEW, b"", CHECKS_PAGE)
        orders = [
            Scan(Table.INVALIDATIONS, storage.number, b"", 1)
            for node in self._datanodes
            if self._datanodes.is_alive(node)
            for storage in node.record.storages
        ]
        found = (await self._store.read(Reading(scans=[checks, *orders]))).scans
        hinted = any(decode(Table.CHECKS, row.data).delete_hint for row in found[checks])
        if hinted or any(found[scan] for scan in orders):
            self._unsettled_s = now_s
        is_late = now_s - self._waiting_s > SETTLING_LIMIT_S
        return is_late or self._all_heard_since(self._unsettled_s)

    def _all_heard_since(self, moment_s: float) -> bool:
        """Whether DataNodes have said how full they are since then; who is silent is left out."""
        return all(
            node.heard_s > moment_s
            or not self._datanodes.is_alive(node)
            or self._datanodes.is_stale(node)
            for node in self._datanodes
        )

    def _givers(self, exchanges: Sequence[Exchange]) -> list[_Giver]:
        givers: dict[tuple[str, StorageType], _Giver] = {}
        for exchange in exchanges:
            key = exchange.source.uuid, exchange.type
            if key not in givers:
                volumes = [
                    storage.storage_id
                    for storage in exchange.source.storages
                    if storage.type is exchange.type
                ]
                numbers = [self._datanodes.number_of(key[0], id) for id in volumes]
                found = [number for number in numbers if number is not None]
                givers[key] = _Giver(exchange.source, exchange.type, {}, {}, found)
            giver = givers[key]
            giver.wanted[exchange.target.uuid] = exchange.size_bytes
            giver.left[exchange.target.uuid] = exchange.size_bytes
        return list(givers.values())

    def _is_late(self, iteration: _Iteration) -> bool:
        return self._datanodes.now_s() - iteration.began_s > ITERATION_LIMIT_S

    def _is_over(self, iteration: _Iteration) -> bool:
        is_giving = not self._is_late(iteration) and any(
            not giver.is_done for giver in iteration.givers
        )
        if is_giving or self._moves.of(Mover.BALANCER):
            return False
        if iteration.leaving:
            return self._datanodes.now_s() - iteration.changed_s > SETTLING_LIMIT_S
        return self._all_heard_since(iteration.changed_s)

    async def _end(self, iteration: _Iteration) -> None:
        await run(self._runner, Call(end_iteration, (iteration.started_ms,)))
        if not iteration.moved_bytes:
            self._pause_until_s = self._datanodes.now_s() + IDLE_PAUSE_S
        self._iteration = None

    # Giving.

    async def _give(self, iteration: _Iteration) -> int:
        """Look at a page of each that has time for it; how many there were."""
        looked_at = 0
        for giver in iteration.givers:
            if not giver.is_done:
                looked_at += await self._give_from(giver)
        return looked_at

    async def _give_from(self, giver: _Giver) -> bool:
        """Have replicas of a page moved; True if all of it was looked at."""
        takers = [uuid for uuid in giver.takers() if self._moves.free(uuid) > 0]
        if self._moves.free(giver.node.uuid) <= 0 or not takers:
            return False
        scan = Scan(Table.REPLICAS, giver.volumes[giver.volume], giver.after, REPLICAS_PAGE)
        rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        replicas: list[Replica] = [decode(Table.REPLICAS, row.data) for row in rows]
        size_max_bytes = 2 * max(giver.left[uuid] for uuid in takers)
        fitting = [
            replica.block_id
            for replica in replicas
            if giver.size_min_bytes <= replica.length_bytes <= size_max_bytes
            and replica.block_id not in self._moves
        ]
        found = await run(self._runner, Call(inspect_blocks, (fitting,))) if fitting else []
        for facts in found:
            if self._moves.free(giver.node.uuid) <= 0:  # the rest of the page is for later
                return False
            move = None if facts is None else self._choose(facts, giver)
            if (
                facts is not None
                and move is not None
                and self._moves.order(Mover.BALANCER, facts.block, [move])
            ):
                giver.left[move.target.node.uuid] -= facts.block.replica_bytes
        giver.advance(rows[-1].key[2] if len(rows) == REPLICAS_PAGE else b"")
        return True

    def _choose(self, facts: BlockFacts, giver: _Giver) -> Move | None:
        """Where a block is to go, if it may go at all."""
        if (
            facts.news is not None
            or facts.placement is not None  # the satisfier's
            or facts.is_being_written
            or facts.block.id in self._moves
        ):
            return None
        view = self._redundancy.view_of(facts)
        for uuid in giver.takers():
            node = self._datanodes.cluster.node(uuid)
            if node is None or self._moves.free(uuid) <= 0:
                continue
            exchange = Exchange(giver.node, node, giver.type, giver.left[uuid])
            move = choose_move(view, self._datanodes.cluster, exchange)
            if move is not None:
                return move
        return None

    # Following.

    async def _follow(self, balancing: Balancing) -> None:
        """See which replicas have arrived; also those of a balancing that was stopped."""
        arrived: list[BlockFacts] = []
        for page in self._moves.of(Mover.BALANCER):
            found = await run(self._runner, Call(inspect_blocks, (page,)))
            for block_id, facts in zip(page, found, strict=True):
                if facts is None:
                    self._moves.forget(block_id)
                elif self._moves.settle(facts) is Outcome.ARRIVED:
                    arrived.append(facts)
        if not arrived:
            return
        size_bytes = sum(facts.block.replica_bytes for facts in arrived)
        call = Call(note_moved, (balancing.started_ms, len(arrived), size_bytes))
        await run(self._runner, call)
        if self._iteration is not None:
            self._iteration.leaving.update(dict.fromkeys(facts.block.id for facts in arrived))
            self._iteration.moved_bytes += size_bytes
            self._iteration.changed_s = self._datanodes.now_s()

    async def _see_leaving(self, iteration: _Iteration) -> None:
        """See which of the old replicas are gone: then the block is not looked at any more."""
        page = list(iteration.leaving)[:BLOCKS_PAGE]
        if not page:
            return
        found = await run(self._runner, Call(inspect_blocks, (page,)))
        for block_id, facts in zip(page, found, strict=True):
            del iteration.leaving[block_id]
            if facts is not None and (facts.news is not None or self._redundancy.deleting(facts)):
                iteration.leaving[block_id] = None  # behind the others
            else:
                iteration.changed_s = self._datanodes.now_s()


def _takes_part(node: DataNode, parameters: BalancerParameters) -> bool:
    is_included = not parameters.included or _is_named(node, parameters.included)
    return is_included and not _is_named(node, parameters.excluded)


def _is_named(node: DataNode, names: Sequence[str]) -> bool:
    """By host or address, with the port or without."""
    hosts = (node.ip_address, node.host_name)
    own = {*hosts, *(f"{host}:{node.transfer_port}" for host in hosts)}
    return not own.isdisjoint(names)
