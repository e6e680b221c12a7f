"""Storage policies: on which types of storage replicas are kept, and how far they are with it."""

from __future__ import annotations

from cairnfs.client.calls import PathLike
from cairnfs.client.messages import decode_storage_policy
from cairnfs.client.records import StoragePolicy, StoragePolicyWork
from cairnfs.client.snapshots import Snapshots
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb


class StoragePolicies(Snapshots):
    """Choosing them, and having replicas moved."""

    def get_storage_policies(self) -> list[StoragePolicy]:
        """All that there are."""
        response = self._namenodes.call(
            "getStoragePolicies",
            pb.GetStoragePoliciesRequestProto(),
            pb.GetStoragePoliciesResponseProto,
        )
        return [decode_storage_policy(policy) for policy in response.policies]

    def get_storage_policy(self, path: PathLike) -> StoragePolicy:
        """The one that holds for a path."""
        request = pb.GetStoragePolicyRequestProto(path=self.absolute_path(path))
        response = self._namenodes.call_path(
            "getStoragePolicy", request, pb.GetStoragePolicyResponseProto, "path"
        )
        return decode_storage_policy(response.storagePolicy)

    def set_storage_policy(self, path: PathLike, name: str) -> None:
        """Choose one for a path, by its name."""
        request = pb.SetStoragePolicyRequestProto(src=self.absolute_path(path), policyName=name)
        self._namenodes.call_path("setStoragePolicy", request, pb.SetStoragePolicyResponseProto)

    def unset_storage_policy(self, path: PathLike) -> None:
        """Let the one of the directory above hold again."""
        request = pb.UnsetStoragePolicyRequestProto(src=self.absolute_path(path))
        self._namenodes.call_path("unsetStoragePolicy", request, pb.UnsetStoragePolicyResponseProto)

    def satisfy_storage_policy(self, path: PathLike) -> None:
        """Have replicas moved to where the policy wants them."""
        request = pb.SatisfyStoragePolicyRequestProto(src=self.absolute_path(path))
        self._namenodes.call_path(
            "satisfyStoragePolicy", request, pb.SatisfyStoragePolicyResponseProto
        )

    def storage_policy_work(self) -> StoragePolicyWork:
        """How far replicas are on their way to where policies want them.  Only on CairnFS."""
        response = self._call_cairn(
            "getPolicyWork",
            cairn_pb2.GetPolicyWorkRequestProto(),
            cairn_pb2.GetPolicyWorkResponseProto,
        )
        return StoragePolicyWork(
            response.subtrees,
            response.blocks,
            response.unsatisfiedBlocks,
            response.bound,
            response.scannedInodes,
            response.queuedBlocks,
            response.placedBlocks,
            {reason.text: reason.blocks for reason in response.reasons},
            response.namenode if response.HasField("namenode") else None,
        )

    def set_balancer_bandwidth(self, bytes_per_s: int) -> None:
        """How fast each DataNode may move replicas, until it is restarted."""
        self._namenodes.call(
            "setBalancerBandwidth",
            pb.SetBalancerBandwidthRequestProto(bandwidth=bytes_per_s),
            pb.SetBalancerBandwidthResponseProto,
        )
