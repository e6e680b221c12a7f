"""One file and its snapshots beside a model that copies bytes: appended to, cut, written on.

A NameNode and DataNodes in this process, read by the Python client.  After each step the file
and every snapshot of it are what the model has, to the byte; in the end, when all snapshots are
gone and everything is reclaimed, no replica is left but those of the file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.snapshots.local_cluster import LocalCluster

import cairnfs
from cairnfs.client.writer import OutputStream

BLOCK_BYTES = 1 << 20
SIZES = st.sampled_from([1, 3, 511, 512, 513, 5000, 70_000, BLOCK_BYTES - 1, BLOCK_BYTES + 7])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("one-file")) as cluster:
        yield cluster


class OneFile(RuleBasedStateMachine):
    """What users do to one file."""

    made = 0

    def __init__(self, cluster: LocalCluster, fs: cairnfs.FileSystem) -> None:
        super().__init__()
        self.cluster = cluster
        self.fs = fs
        OneFile.made += 1
        self.directory = f"/{OneFile.made}"
        self.path = f"{self.directory}/f"
        self.data = b""
        self.exists = False
        self.writer: OutputStream | None = None
        self.snapshots: dict[str, bytes | None] = {}
        self.taken = 0
        self.chooser = random.Random(OneFile.made)
        fs.mkdirs(self.directory)
        cluster.calls.allow_snapshot(self.directory)

    def is_closed(self) -> bool:
        return self.exists and self.writer is None

    # The file.

    @precondition(lambda self: not self.exists)
    @rule(size=SIZES)
    def create(self, size: int) -> None:
        self.data = self.chooser.randbytes(size)
        with self.fs.create(self.path, block_size=BLOCK_BYTES, replication=3) as file:
            file.write(self.data)
        self.exists = True

    @precondition(lambda self: self.is_closed())
    @rule(size=SIZES)
    def append(self, size: int) -> None:
        more = self.chooser.randbytes(size)
        with self.fs.append(self.path) as file:
            file.write(more)
        self.data += more

    @precondition(lambda self: self.is_closed())
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        self._truncate(int(part * len(self.data)))

    @precondition(lambda self: self.is_closed() and len(self.data) > 1)
    @rule(less=st.sampled_from([1, 2, 600]))
    def truncate_a_little(self, less: int) -> None:
        self._truncate(max(0, len(self.data) - less))

    def _truncate(self, length: int) -> None:
        self.fs.truncate(self.path, length)
        self.cluster.wait_until(lambda: self.fs.is_file_closed(self.path), "it is cut")
        self.data = self.data[:length]

    @precondition(lambda self: self.is_closed())
    @rule()
    def delete(self) -> None:
        self.fs.delete(self.path)
        self.exists, self.data = False, b""

    # Somebody who writes it all the time.

    @precondition(lambda self: self.is_closed())
    @rule()
    def open(self) -> None:
        self.writer = self.fs.append(self.path)

    @precondition(lambda self: self.writer is not None)
    @rule(size=SIZES)
    def write(self, size: int) -> None:
        assert self.writer is not None
        more = self.chooser.randbytes(size)
        self.writer.write(more)
        self.writer.hsync()
        self.data += more

    @precondition(lambda self: self.writer is not None)
    @rule()
    def close(self) -> None:
        assert self.writer is not None
        self.writer.close()
        self.writer = None

    @precondition(lambda self: self.writer is not None)
    @rule()
    def lose_writer(self) -> None:
        assert self.writer is not None
        self.writer.abort()
        self.writer = None
        self.fs.recover_lease(self.path)
        self.cluster.wait_until(lambda: self.fs.is_file_closed(self.path), "it is recovered")

    @precondition(lambda self: self.writer is not None)
    @rule()
    def delete_under_its_writer(self) -> None:
        assert self.writer is not None
        self.fs.delete(self.path)
        self.writer.abort()
        self.writer = None
        self.exists, self.data = False, b""

    # Snapshots.

    @rule()
    def snapshot(self) -> None:
        self.taken += 1
        name = f"s{self.taken}"
        self.cluster.calls.create_snapshot(self.directory, name)
        self.snapshots[name] = self.data if self.exists else None

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def delete_snapshot(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.snapshots)))
        self.cluster.calls.delete_snapshot(self.directory, name)
        del self.snapshots[name]
        self.cluster.reclaim()

    @invariant()
    def everything_is_as_it_was(self) -> None:
        if self.exists:
            assert self.read(self.path) == self.data
        for name, expected in self.snapshots.items():
            path = f"{self.directory}/.snapshot/{name}/f"
            assert self.fs.exists(path) == (expected is not None)
            if expected is not None:
                assert self.fs.get_file_status(path).length_bytes == len(expected)
                assert self.read(path) == expected

    def read(self, path: str) -> bytes:
        with self.fs.open(path) as file:
            data: bytes = file.read()
        return data

    def teardown(self) -> None:
        if self.writer is not None:
            self.writer.close()
        for name in self.snapshots:
            self.cluster.calls.delete_snapshot(self.directory, name)
        self.cluster.reclaim()
        blocks = self.cluster.blocks_of(self.path) if self.exists else []
        self.cluster.wait_for_replicas({block.id: [block.replica_bytes] * 3 for block in blocks})
        self.cluster.check()
        self.fs.delete(self.directory, recursive=True)
        self.cluster.reclaim()
        self.cluster.wait_for_replicas({})


def test_snapshots_are_what_they_were(cluster: LocalCluster) -> None:
    with cairnfs.connect(cluster.uri) as fs:
        run_state_machine_as_test(
            lambda: OneFile(cluster, fs),
            settings=settings(
                max_examples=12,
                stateful_step_count=30,
                deadline=None,
                phases=[Phase.generate],  # to make a failure smaller would take minutes
                suppress_health_check=list(HealthCheck),
            ),
        )
