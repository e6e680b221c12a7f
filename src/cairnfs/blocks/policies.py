"""Storage policies: on which types of storage the replicas of a block belong.

The eight policies, their ids and their fallbacks are HDFS's
(BlockStoragePolicySuite); so are the rules below (BlockStoragePolicy).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from cairnfs.blocks.records import StorageType

UNSPECIFIED_ID = 0  # of a file or directory that has no policy of its own
T = StorageType  # for the table below


class StoragePolicy(msgspec.Struct, frozen=True, gc=False):
    """The types for the replicas, in order: all further ones are on the last.

    A fallback replaces a type that is unavailable: one when a block is made,
    the other when a lost replica is.
    """

    id: int
    name: str
    storage_types: tuple[StorageType, ...]
    creation_fallbacks: tuple[StorageType, ...]
    replication_fallbacks: tuple[StorageType, ...]
    copy_on_create_file: bool = False  # a file takes it from its directory, then keeps it


LAZY_PERSIST = StoragePolicy(
    15, "LAZY_PERSIST", (T.RAM_DISK, T.DISK), (T.DISK,), (T.DISK,), copy_on_create_file=True
)
ALL_NVDIMM = StoragePolicy(14, "ALL_NVDIMM", (T.NVDIMM,), (T.DISK,), (T.DISK,))
ALL_SSD = StoragePolicy(12, "ALL_SSD", (T.SSD,), (T.DISK,), (T.DISK,))
ONE_SSD = StoragePolicy(10, "ONE_SSD", (T.SSD, T.DISK), (T.SSD, T.DISK), (T.SSD, T.DISK))
HOT = StoragePolicy(7, "HOT", (T.DISK,), (), (T.ARCHIVE,))
WARM = StoragePolicy(5, "WARM", (T.DISK, T.ARCHIVE), (T.DISK, T.ARCHIVE), (T.DISK, T.ARCHIVE))
COLD = StoragePolicy(2, "COLD", (T.ARCHIVE,), (), ())
PROVIDED = StoragePolicy(
    1, "PROVIDED", (T.PROVIDED, T.DISK), (T.PROVIDED, T.DISK), (T.PROVIDED, T.DISK)
)

DEFAULT = HOT
POLICIES = (PROVIDED, COLD, WARM, HOT, ONE_SSD, ALL_SSD, ALL_NVDIMM, LAZY_PERSIST)

_TRANSIENT = frozenset((T.RAM_DISK,))
_BY_ID = {policy.id: policy for policy in POLICIES} | {UNSPECIFIED_ID: DEFAULT}
_BY_NAME = {policy.name: policy for policy in POLICIES}


def policy_by_id(id: int) -> StoragePolicy | None:
    """The policy with this id; that of an inode without one is the default."""
    return _BY_ID.get(id)


def policy_by_name(name: str) -> StoragePolicy | None:
    """The policy of this name, whatever its case."""
    return _BY_NAME.get(name.upper())


def choose_storage_types(
    policy: StoragePolicy,
    replication: int,
    existing: Iterable[StorageType] = (),
    unavailable: Collection[StorageType] = (),
    *,
    is_new_block: bool,
) -> list[StorageType]:
    """The types for the replicas that are still to be made, in the policy's order.

    An unavailable type is replaced by the first fallback that is available, or
    left out: then there are fewer types than replicas to make.
    """
    types, excess = _subtract(_wanted_types(policy, replication), existing)
    fallbacks = policy.creation_fallbacks if is_new_block else policy.replication_fallbacks
    fallback = next((type for type in fallbacks if type not in unavailable), None)
    chosen = [fallback if type in unavailable else type for type in types]
    # An existing replica of a type that was not wanted stands for one on that fallback.
    return _subtract([type for type in chosen if type is not None], excess)[0]


def choose_excess_types(
    policy: StoragePolicy, replication: int, existing: Iterable[StorageType]
) -> list[StorageType]:
    """The types of existing replicas, one for each replica, that the policy does not ask for."""
    return _subtract(_wanted_types(policy, replication), existing)[1]


def _wanted_types(policy: StoragePolicy, replication: int) -> list[StorageType]:
    # Never transient ones: a client asks for memory when it writes, and the
    # DataNode moves the replica to disk.
    lasting = [type for type in policy.storage_types if type not in _TRANSIENT]
    return lasting[:replication] + lasting[-1:] * (replication - len(lasting))


def _subtract(
    types: list[StorageType], taken: Iterable[StorageType]
) -> tuple[list[StorageType], list[StorageType]]:
    """The types that are not taken, and those taken that were not among the types."""
    rest = list(types)
    excess = []
    for type in taken:
        if type in rest:
            rest.remove(type)
        else:
            excess.append(type)
    return rest, excess
