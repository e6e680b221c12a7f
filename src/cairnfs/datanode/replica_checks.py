"""What must be true of a replica before it may change: FsDatasetImpl's rules and texts."""

from __future__ import annotations

from cairnfs.datanode.errors import ReplicaAlreadyExistsException, ReplicaNotFoundException
from cairnfs.datanode.replica import Block, Replica, ReplicaState
from cairnfs.errors import IOException, RecoveryInProgressException


def already_exists(block: Block, old: Replica) -> ReplicaAlreadyExistsException:
    return ReplicaAlreadyExistsException(
        f"Block {block} already exists in state {old.state.name} and thus cannot be created."
    )


def check_appendable(replica: Replica, block: Block, new_stamp: int, expected_bytes: int) -> None:
    """Only what is finalized can be appended to, in the generation the client knows."""
    if new_stamp < block.generation_stamp:
        raise IOException(
            f"The new generation stamp {new_stamp} should be greater than the replica"
            f" {block}'s generation stamp"
        )
    if replica.generation_stamp != block.generation_stamp:
        raise ReplicaNotFoundException(
            "Cannot append to a replica with unexpected generation stamp"
            f" {replica.generation_stamp}"
        )
    if replica.state is not ReplicaState.FINALIZED:
        raise ReplicaNotFoundException(f"Cannot append to an unfinalized replica {block}")
    _check_length(replica, expected_bytes)


def check_recoverable(
    replica: Replica | None, block: Block, new_stamp: int, expected_bytes: int
) -> Replica:
    """An append or close that failed goes on only with all bytes acknowledged."""
    replica = _check_found(replica, block)
    if replica.state not in (ReplicaState.FINALIZED, ReplicaState.RBW):
        raise ReplicaNotFoundException(
            f"Cannot recover append/close to a replica that's not FINALIZED and not RBW {replica}"
        )
    _check_stamp(replica, block, new_stamp)
    if not replica.received_bytes == replica.on_disk_bytes == replica.acked_bytes:
        raise ReplicaAlreadyExistsException(f"bytes of {replica} are not the same")
    _check_length(replica, expected_bytes)
    return replica


def check_rbw_recoverable(
    replica: Replica | None, block: Block, new_stamp: int, min_bytes: int, max_bytes: int
) -> Replica:
    """A pipeline goes on only with replicas that have what the client counts on."""
    replica = _check_found(replica, block)
    if replica.state is not ReplicaState.RBW:
        raise ReplicaNotFoundException(f"Cannot recover a non-RBW replica {replica}")
    _check_stamp(replica, block, new_stamp)
    if replica.acked_bytes < min_bytes or replica.received_bytes > max_bytes:
        raise ReplicaNotFoundException(
            f"Unmatched length replica {replica}: BytesAcked = {replica.acked_bytes}"
            f" BytesRcvd = {replica.received_bytes} are not in the range of"
            f" [{min_bytes}, {max_bytes}]."
        )
    if replica.on_disk_bytes < replica.acked_bytes:
        raise ReplicaNotFoundException(
            f"Found fewer bytesOnDisk than bytesAcked for replica {replica}"
        )
    return replica


def check_convertible(replica: Replica, block: Block, visible_bytes: int) -> None:
    """Only a complete copy can take part in a pipeline."""
    if replica.state is not ReplicaState.TEMPORARY:
        raise ReplicaAlreadyExistsException(f"{replica} is not temporary")
    if replica.generation_stamp != block.generation_stamp:
        raise ReplicaAlreadyExistsException(
            f"{replica} is not of generation {block.generation_stamp}"
        )
    if replica.received_bytes < visible_bytes:
        raise IOException(f"{replica} is shorter than {visible_bytes}")


def check_recovery_may_begin(replica: Replica, block: Block, recovery_id: int) -> None:
    """A recovery overtakes what is older than itself, and nothing else."""
    if replica.on_disk_bytes < replica.visible_bytes:
        raise IOException(f"less is on disk than is visible of {replica}")
    if replica.generation_stamp < block.generation_stamp:
        raise IOException(
            "replica.getGenerationStamp() < block.getGenerationStamp(),"
            f" block={block}, replica={replica}"
        )
    if replica.generation_stamp >= recovery_id:
        raise IOException(
            f"replica.getGenerationStamp() >= recoveryId = {recovery_id},"
            f" block={block}, replica={replica}"
        )
    if replica.state is ReplicaState.RUR and replica.recovery_id >= recovery_id:
        raise RecoveryInProgressException(
            f"rur.getRecoveryID() >= recoveryId = {recovery_id}, block={block}, rur={replica}"
        )


def check_recovery_may_end(
    replica: Replica, block: Block, recovery_id: int, new_bytes: int
) -> None:
    """The result must be of the latest recovery, and of what that has found."""
    if replica.state is not ReplicaState.RUR:
        raise IOException(f"replica.getState() != RUR, replica={replica}")
    if replica.on_disk_bytes != block.length_bytes:
        raise IOException(
            f"replica.getBytesOnDisk() != block.getNumBytes(), block={block}, replica={replica}"
        )
    if replica.recovery_id != recovery_id:
        raise IOException(f"rur.getRecoveryID() != recoveryId = {recovery_id}, rur={replica}")
    if replica.received_bytes < new_bytes:
        raise IOException(f"rur.getNumBytes() < newlength = {new_bytes}, rur={replica}")


def _check_found(replica: Replica | None, block: Block) -> Replica:
    if replica is None:
        raise ReplicaNotFoundException(f"Replica not found for {block}")
    return replica


def _check_length(replica: Replica, expected_bytes: int) -> None:
    if replica.received_bytes != expected_bytes:
        raise IOException(
            f"Corrupted replica {replica} with a length of {replica.received_bytes} expected"
            f" length is {expected_bytes}"
        )


def _check_stamp(replica: Replica, block: Block, new_stamp: int) -> None:
    if not block.generation_stamp <= replica.generation_stamp <= new_stamp:
        raise ReplicaNotFoundException(
            "Cannot append to a replica with unexpected generation stamp"
            f" {replica.generation_stamp}. Expected GS range is [{block.generation_stamp},"
            f" {new_stamp}]."
        )
