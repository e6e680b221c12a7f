"""Storage policies: Hadoop's calls about them, and ours that tells how far the satisfier is."""

from __future__ import annotations

from cairnfs.blocks.policies import DEFAULT, POLICIES, policy_by_id
from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.messages import to_storage_policy
from cairnfs.namenode.policy_work import measure_policy_work
from cairnfs.namenode.responses import NOTHING, encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import storage_policies
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL, CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)
CAIRN_CALLS = Service(CAIRN_PROTOCOL)

_parse = FsPath.parse


@CALLS.handler
def get_storage_policies(
    call: IncomingCall, request: pb.GetStoragePoliciesRequestProto
) -> pb.GetStoragePoliciesResponseProto:
    return pb.GetStoragePoliciesResponseProto(policies=map(to_storage_policy, POLICIES))


@CALLS.handler
def get_storage_policy(call: IncomingCall, request: pb.GetStoragePolicyRequestProto) -> None:
    def encode(id: int) -> pb.GetStoragePolicyResponseProto:
        policy = policy_by_id(id) or DEFAULT
        return pb.GetStoragePolicyResponseProto(storagePolicy=to_storage_policy(policy))

    call.run(storage_policies.get_storage_policy, encode, _parse(request.path))


@CALLS.handler
def set_storage_policy(call: IncomingCall, request: pb.SetStoragePolicyRequestProto) -> None:
    call.run(
        storage_policies.set_storage_policy,
        encode_nothing,
        _parse(request.src),
        as_text(request.policyName),
    )


@CALLS.handler
def unset_storage_policy(call: IncomingCall, request: pb.UnsetStoragePolicyRequestProto) -> None:
    call.run(storage_policies.unset_storage_policy, encode_nothing, _parse(request.src))


@CALLS.handler
def satisfy_storage_policy(
    call: IncomingCall, request: pb.SatisfyStoragePolicyRequestProto
) -> None:
    call.run(storage_policies.satisfy_storage_policy, encode_nothing, _parse(request.src))


@CALLS.handler
def set_balancer_bandwidth(
    call: IncomingCall, request: pb.SetBalancerBandwidthRequestProto
) -> bytes:
    """DataNodes are told with their next heartbeat; as in HDFS, until they are restarted."""
    check_superuser(call)
    if request.bandwidth <= 0:
        raise IllegalArgumentException(
            f"Bandwidth {request.bandwidth} is not a number of bytes per second above 0"
        )
    for node in call.namenode.datanodes:
        node.bandwidth_bytes_per_s = request.bandwidth
    return NOTHING


@CAIRN_CALLS.handler
def get_policy_work(call: IncomingCall, request: cairn_pb2.GetPolicyWorkRequestProto) -> None:
    answer_with(call, measure_policy_work(call.namenode))
