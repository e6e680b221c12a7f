"""The life of one block on a DataNode, beside a model: its state, stamp, length and content.

Written, flushed, closed, appended to, its pipeline mended, recovered, cut, deleted, and the
DataNode killed at any moment in between.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cairnfs.datanode.replica import Block, Replica, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.storage import Namespace, StorageLocation, StorageType
from cairnfs.datanode.volumes import Volumes
from cairnfs.errors import HdfsError
from cairnfs.wire.checksum import Checksum

ID = 7
NAMESPACE = Namespace(7, "CID-1", "BP-1", 1)
FINALIZED, RBW, RWR, RUR = (
    ReplicaState.FINALIZED,
    ReplicaState.RBW,
    ReplicaState.RWR,
    ReplicaState.RUR,
)


class Client:
    """Whoever writes; it lets go as soon as it is told to."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def stop(self, limit_s: float) -> bool:
        self._replicas.release(self._replicas.get(ID), self)
        return True


@dataclass
class Model:
    """What must be true of the replica."""

    state: ReplicaState
    stamp: int
    data: bytes  # on disk
    acked_bytes: int  # of them, those that a client was told of
    recovery_id: int = 0
    is_finalized: bool = False  # on disk, while it is under recovery


class BlockLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="cairnfs-block-"))
        self.model: Model | None = None
        self.copies: dict[Block, bytes] = {}
        self.stamp = 1000
        self.content = 0
        self._open()

    def _open(self) -> None:
        self.volumes = Volumes(StorageLocation.parse_list(str(self.directory / "data")))
        self.volumes.attach(NAMESPACE)
        self.replicas = Replicas(self.volumes)
        self.replicas.load()

    def teardown(self) -> None:
        self.volumes.close()
        shutil.rmtree(self.directory)

    def next_stamp(self) -> int:
        self.stamp += 1
        return self.stamp

    def replica(self) -> Replica:
        return self.replicas.get(ID)

    @property
    def block(self) -> Block:
        assert self.model is not None
        return Block(ID, self.model.stamp, len(self.model.data))

    def state_is(self, *states: ReplicaState) -> bool:
        return self.model is not None and self.model.state in states

    # What clients do.

    @precondition(lambda self: self.model is None)
    @rule()
    def create(self) -> None:
        stamp = self.next_stamp()
        self.replicas.create_rbw(
            Block(ID, stamp), Checksum(), StorageType.DISK, "", Client(self.replicas)
        )
        self.model = Model(RBW, stamp, b"", 0)

    @precondition(lambda self: self.state_is(RBW))
    @rule(size=st.sampled_from([1, 100, 512, 513, 1500]), is_acked=st.booleans())
    def write(self, size: int, is_acked: bool) -> None:
        assert self.model is not None
        replica = self.replica()
        self.content += 1
        data = bytes((self.content + n) % 251 for n in range(size))
        replica.received_bytes = len(self.model.data) + size
        assert replica.file is not None
        replica.file.write(len(self.model.data), memoryview(data), None)
        self.model.data += data
        if is_acked:
            replica.acked_bytes = self.model.acked_bytes = len(self.model.data)

    @precondition(lambda self: self.state_is(RBW))
    @rule()
    def close(self) -> None:
        assert self.model is not None
        self.replicas.finalize(self.replica())
        self.model.state, self.model.acked_bytes = FINALIZED, len(self.model.data)

    @precondition(lambda self: self.state_is(FINALIZED))
    @rule()
    def append(self) -> None:
        assert self.model is not None
        stamp = self.next_stamp()
        self.replicas.append(self.block, stamp, len(self.model.data), Client(self.replicas))
        self.model.state, self.model.stamp = RBW, stamp

    @precondition(lambda self: self.state_is(RBW))
    @rule()
    def mend_pipeline(self) -> None:
        """Another DataNode failed: go on with what was acknowledged."""
        assert self.model is not None
        stamp = self.next_stamp()
        size = len(self.model.data)
        self.replicas.recover_rbw(
            self.block, stamp, self.model.acked_bytes, size, Client(self.replicas)
        )
        self.model.stamp = stamp
        self.model.data = self.model.data[: self.model.acked_bytes]

    # What NameNodes order.

    @precondition(lambda self: self.state_is(FINALIZED, RBW, RWR, RUR))
    @rule()
    def begin_recovery(self) -> None:
        assert self.model is not None
        recovery_id = self.next_stamp()
        found = self.replicas.init_recovery(self.block, recovery_id)
        assert found is not None
        assert found.on_disk_bytes == len(self.model.data)
        if self.model.state is not RUR:
            self.model.is_finalized = self.model.state is FINALIZED
        self.model.state, self.model.recovery_id = RUR, recovery_id

    @precondition(lambda self: self.state_is(RUR))
    @rule(part=st.floats(0, 1))
    def end_recovery(self, part: float) -> None:
        """All replicas are cut to the same length: never below what was acknowledged."""
        assert self.model is not None
        acked = self.model.acked_bytes
        length = acked + int(part * (len(self.model.data) - acked))
        self.replicas.update_recovered(self.block, self.model.recovery_id, ID, length)
        self.model = Model(FINALIZED, self.model.recovery_id, self.model.data[:length], length)

    @precondition(lambda self: self.state_is(RUR))
    @rule()
    def a_recovery_that_was_overtaken_is_refused(self) -> None:
        assert self.model is not None
        with pytest.raises(HdfsError):
            self.replicas.update_recovered(self.block, self.model.recovery_id - 1, ID, 0)

    @precondition(lambda self: self.state_is(FINALIZED))
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        assert self.model is not None
        recovery_id = self.next_stamp()
        self.replicas.init_recovery(self.block, recovery_id)
        length = int(part * len(self.model.data))
        self.replicas.update_recovered(self.block, recovery_id, ID, length)
        self.model = Model(FINALIZED, recovery_id, self.model.data[:length], length)

    @precondition(lambda self: self.state_is(FINALIZED))
    @rule(part=st.floats(0, 1))
    def copy(self, part: float) -> None:
        """The beginning of it becomes another block; it stays as it was, and so does that."""
        assert self.model is not None
        recovery_id = self.next_stamp()
        self.replicas.init_recovery(self.block, recovery_id)
        length = int(part * len(self.model.data))
        copy = self.replicas.update_recovered(self.block, recovery_id, recovery_id, length)
        assert copy.block == Block(recovery_id, recovery_id, length)
        self.copies[copy.block] = self.model.data[:length]

    @precondition(lambda self: self.state_is(FINALIZED))
    @rule()
    def delete(self) -> None:
        self.replicas.delete(self.block, self.replicas.get(self.block.id).volume)
        self.model = None

    @precondition(lambda self: self.model is not None)
    @rule()
    def an_older_generation_is_not_appended_to(self) -> None:
        assert self.model is not None
        older = Block(ID, self.model.stamp - 1, len(self.model.data))
        with pytest.raises(HdfsError):
            self.replicas.append(older, self.next_stamp(), len(self.model.data), None)

    # What happens to machines.

    @rule()
    def kill(self) -> None:
        """The process is gone; what it had written to its files is there."""
        copy = self.directory / "after"
        shutil.copytree(self.directory / "data", copy)
        self.volumes.close()
        shutil.rmtree(self.directory / "data")
        copy.rename(self.directory / "data")
        self._open()
        if self.model is not None and self.model.state is not FINALIZED:
            if self.model.state is RUR and self.model.is_finalized:
                self.model.state = FINALIZED
            elif self.replicas.find(ID) is None:  # nothing was written yet
                assert not self.model.data
                self.model = None
            else:
                self.model.state = RWR

    @invariant()
    def copies_are_what_they_were(self) -> None:
        for block, data in self.copies.items():
            with self.replicas.open_for_read(block) as reader:
                assert reader.state is FINALIZED
                assert reader.length_bytes == len(data)
            assert self.replicas.get(block.id).data_path.read_bytes() == data

    @invariant()
    def agrees(self) -> None:
        replica = self.replicas.find(ID)
        if self.model is None:
            assert replica is None
            return
        assert replica is not None
        assert replica.state is self.model.state
        assert replica.generation_stamp == self.model.stamp
        assert replica.on_disk_bytes == len(self.model.data)
        assert replica.data_path.read_bytes()[: len(self.model.data)] == self.model.data
        if self.model.state in (FINALIZED, RBW):
            with self.replicas.open_for_read(Block(ID, self.model.stamp)) as reader:
                assert reader.length_bytes >= self.model.acked_bytes
        with pytest.raises(HdfsError):
            self.replicas.open_for_read(Block(ID, self.model.stamp + 1)).close()


TestBlockLife = BlockLife.TestCase
TestBlockLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
