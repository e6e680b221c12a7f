"""What is wrong with a block of a file, if anything is: in the words of `fsck`."""

from __future__ import annotations

from dataclasses import dataclass

from cairnfs.client.records import BlockLocation

MISSING, CORRUPT, UNREADABLE = "missing", "corrupt", "unreadable"
UNDER_REPLICATED, OVER_REPLICATED = "under-replicated", "over-replicated"

DAMAGE = (MISSING, CORRUPT, UNREADABLE)


@dataclass(slots=True)
class Problem:
    """A block that is not as it should be, or a file that could not be looked at."""

    path: str
    kind: str
    block: str
    offset_bytes: int
    replicas: int
    wanted: int
    detail: str = ""

    @property
    def is_damage(self) -> bool:
        return self.kind in DAMAGE


def judge(path: str, replication: int, location: BlockLocation) -> Problem | None:
    """What is wrong with a block, if anything is.

    Replicas on DataNodes that are leaving can be read, but do not count as lasting ones.  A
    block that is being written has as many as its pipeline.
    """
    lasting = sum(node.state == "NORMAL" for node in location.datanodes)
    if not location.is_complete:
        return None
    if location.is_corrupt:
        kind = CORRUPT
    elif not location.datanodes:
        kind = MISSING
    elif lasting < replication:
        kind = UNDER_REPLICATED
    elif lasting > replication:
        kind = OVER_REPLICATED
    else:
        return None
    block = f"blk_{location.block_id}_{location.generation_stamp}"
    return Problem(path, kind, block, location.offset_bytes, lasting, replication)
