"""CairnProtocol's calls about the balancer: start it, stop it, see how far it is."""

from __future__ import annotations

from cairnfs.blocks.topology import DataNodeView
from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.policy_work import owner_of_moves
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import balancing
from cairnfs.namesystem.balancing import BalancerParameters, Balancing
from cairnfs.wire.proto import cairn_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text

CALLS = Service(CAIRN_PROTOCOL)


@CALLS.handler
def start_balancing(call: IncomingCall, request: pb.StartBalancingRequestProto) -> None:
    call.run(
        balancing.start_balancing,
        lambda started: pb.StartBalancingResponseProto(balancing=_to_balancing(started)),
        _from_parameters(request.parameters),
    )


@CALLS.handler
def stop_balancing(call: IncomingCall, request: pb.StopBalancingRequestProto) -> None:
    call.run(
        balancing.stop_balancing,
        lambda stopped: pb.StopBalancingResponseProto(
            balancing=None if stopped is None else _to_balancing(stopped)
        ),
    )


@CALLS.handler
def get_balancing(call: IncomingCall, request: pb.GetBalancingRequestProto) -> None:
    """Whoever may balance is told; as in HDFS, that is the superuser."""
    check_superuser(call)
    given = _from_parameters(request.parameters) if request.HasField("parameters") else None
    answer_with(call, _describe(call.namenode, given))


async def _describe(
    namenode: NameNode, parameters: BalancerParameters | None
) -> pb.GetBalancingResponseProto:
    known: Balancing | None = await namenode.call(balancing.get_balancing)
    if parameters is None:
        parameters = known.parameters if known is not None else BalancerParameters()
    balancing.check_parameters(parameters)
    plan = namenode.balancer.plan(parameters)
    response = pb.GetBalancingResponseProto(leftBytes=plan.left_bytes)
    if known is not None:
        response.balancing.CopyFrom(_to_balancing(known))
    for type in plan.types:
        for share in type.shares:
            response.shares.add(
                node=_name(namenode, share.node),
                rack=share.node.rack,
                storageType=share.type.name,
                capacityBytes=share.capacity_bytes,
                usedBytes=share.used_bytes,
                level=share.level.name,
                mean=type.mean,
            )
    for exchange in plan.exchanges:
        response.exchanges.add(
            source=_name(namenode, exchange.source),
            target=_name(namenode, exchange.target),
            storageType=exchange.type.name,
            sizeBytes=exchange.size_bytes,
        )
    owner = await owner_of_moves(namenode)
    if owner is not None:
        response.namenode = owner
    return response


def _name(namenode: NameNode, node: DataNodeView) -> str:
    """As people know a DataNode: by its host and port."""
    known = namenode.datanodes.get(node.uuid)
    if known is None:
        return node.address
    return f"{known.record.host_name}:{known.record.transfer_port}"


def _from_parameters(message: pb.BalancerParametersProto) -> BalancerParameters:
    return BalancerParameters(
        message.threshold,
        tuple(map(as_text, message.included)),
        tuple(map(as_text, message.excluded)),
        tuple(map(as_text, message.sources)),
        message.idleIterationsMax,
    )


def _to_balancing(known: Balancing) -> pb.BalancingProto:
    parameters = known.parameters
    return pb.BalancingProto(
        parameters=pb.BalancerParametersProto(
            threshold=parameters.threshold,
            included=parameters.included,
            excluded=parameters.excluded,
            sources=parameters.sources,
            idleIterationsMax=parameters.idle_iterations_max,
        ),
        user=known.user,
        startedMs=known.started_ms,
        state=known.state.name,
        iteration=known.iteration,
        movedBytes=known.moved_bytes,
        movedBlocks=known.moved_blocks,
        leftBytes=known.left_bytes,
        movingBytes=known.moving_bytes,
        endedMs=known.ended_ms or None,
    )
