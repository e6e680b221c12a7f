"""The balancer: how evenly DataNodes are used, and having that changed.  Only on CairnFS."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.client.policies import StoragePolicies
from cairnfs.wire.proto import cairn_pb2 as pb

THRESHOLD = 10.0
IDLE_ITERATIONS_MAX = 5


class BalancerParameters(msgspec.Struct, frozen=True):
    """What is to be balanced.  DataNodes are named by host or address, with the port or without."""

    threshold: float = THRESHOLD  # percent by which a DataNode may differ from the mean
    include: Sequence[str] = ()  # only these
    exclude: Sequence[str] = ()
    source: Sequence[str] = ()  # only these give something away
    idle_iterations: int = IDLE_ITERATIONS_MAX  # it ends after so many; below 0: never


class Balancing(msgspec.Struct, frozen=True):
    """A balancing that is under way, or the last one."""

    parameters: BalancerParameters
    user: str
    started_ms: int
    state: str  # IN_PROGRESS, BALANCED, NO_MOVE_BLOCK, NO_MOVE_PROGRESS or STOPPED
    iteration: int
    moved_bytes: int
    moved_blocks: int
    left_bytes: int  # to move until the cluster is balanced, as the iteration began
    moving_bytes: int  # that the iteration is to move
    ended_ms: int | None

    @property
    def is_running(self) -> bool:
        return self.state == "IN_PROGRESS"


class NodeShare(msgspec.Struct, frozen=True):
    """How much a DataNode has of one storage type."""

    node: str
    rack: str
    storage_type: str
    capacity_bytes: int
    used_bytes: int
    level: str  # OVER_UTILIZED, ABOVE_AVERAGE, BELOW_AVERAGE or UNDER_UTILIZED
    mean: float  # percent, of all DataNodes that have the type

    @property
    def utilisation(self) -> float:
        """In percent."""
        return 100.0 * self.used_bytes / self.capacity_bytes if self.capacity_bytes else 0.0


class Exchange(msgspec.Struct, frozen=True):
    """So many bytes would go from one DataNode to another."""

    source: str
    target: str
    storage_type: str
    size_bytes: int


class BalancerStatus(msgspec.Struct, frozen=True):
    """How full DataNodes are, what would be moved next, and how far a balancing is."""

    balancing: Balancing | None  # None: there never was any
    shares: list[NodeShare]
    exchanges: list[Exchange]
    left_bytes: int  # to move until the cluster is balanced
    namenode: str | None  # which has the duty


class Balancer(StoragePolicies):
    """Starting it, stopping it, and seeing how far it is; for the superuser."""

    def start_balancing(self, parameters: BalancerParameters | None = None) -> Balancing:
        """Have replicas moved from full DataNodes to empty ones, in the background.

        If one with the same parameters is under way, that goes on; if one with others is,
        it is refused.
        """
        request = pb.StartBalancingRequestProto(parameters=_encode(parameters))
        response = self._call_cairn("startBalancing", request, pb.StartBalancingResponseProto)
        return _decode(response.balancing)

    def stop_balancing(self) -> Balancing | None:
        """Begin no further moves; the balancing that was, if there ever was one."""
        response = self._call_cairn(
            "stopBalancing", pb.StopBalancingRequestProto(), pb.StopBalancingResponseProto
        )
        return _decode(response.balancing) if response.HasField("balancing") else None

    def get_balancing(self, parameters: BalancerParameters | None = None) -> BalancerStatus:
        """How full DataNodes are, and what would be moved: by these parameters, or the last."""
        request = pb.GetBalancingRequestProto()
        if parameters is not None:
            request.parameters.CopyFrom(_encode(parameters))
        response = self._call_cairn("getBalancing", request, pb.GetBalancingResponseProto)
        return BalancerStatus(
            _decode(response.balancing) if response.HasField("balancing") else None,
            [
                NodeShare(
                    share.node,
                    share.rack,
                    share.storageType,
                    share.capacityBytes,
                    share.usedBytes,
                    share.level,
                    share.mean,
                )
                for share in response.shares
            ],
            [
                Exchange(each.source, each.target, each.storageType, each.sizeBytes)
                for each in response.exchanges
            ],
            response.leftBytes,
            response.namenode if response.HasField("namenode") else None,
        )


def _encode(parameters: BalancerParameters | None) -> pb.BalancerParametersProto:
    given = parameters or BalancerParameters()
    return pb.BalancerParametersProto(
        threshold=given.threshold,
        included=given.include,
        excluded=given.exclude,
        sources=given.source,
        idleIterationsMax=given.idle_iterations,
    )


def _decode(message: pb.BalancingProto) -> Balancing:
    given = message.parameters
    return Balancing(
        BalancerParameters(
            given.threshold,
            tuple(given.included),
            tuple(given.excluded),
            tuple(given.sources),
            given.idleIterationsMax,
        ),
        message.user,
        message.startedMs,
        message.state,
        message.iteration,
        message.movedBytes,
        message.movedBlocks,
        message.leftBytes,
        message.movingBytes,
        message.endedMs if message.HasField("endedMs") else None,
    )
