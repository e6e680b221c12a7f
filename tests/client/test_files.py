"""Writing and reading files of a healthy cluster."""

from __future__ import annotations

import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.files import CHUNK, MIB, SIZES, content, read, write

import cairnfs
from cairnfs.client.pipeline import Pipeline
from cairnfs.errors import AlreadyBeingCreatedException, FileNotFoundException
from cairnfs.testing.cluster import Cluster


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(fs: cairnfs.FileSystem, folder: str, size: int) -> None:
    data = content(size)
    write(fs, f"{folder}/file", data, replication=3)
    assert read(fs, f"{folder}/file") == data
    status = fs.get_file_status(f"{folder}/file")
    assert (status.length_bytes, status.replication) == (size, 3)
    assert status.block_size_bytes == MIB
    blocks = fs.get_block_locations(f"{folder}/file")
    assert len(blocks) == -(-size // MIB)
    assert all(len(block.datanodes) == 3 for block in blocks)


@pytest.mark.parametrize("piece", [1, 100, 511, 513, 65537, MIB + 1])
def test_written_and_read_in_pieces(fs: cairnfs.FileSystem, folder: str, piece: int) -> None:
    data = content(min(3 * MIB, 5000 * piece))
    with fs.create(f"{folder}/file", replication=1, block_size=MIB) as file:
        for at in range(0, len(data), piece):
            file.write(data[at : at + piece])
            assert file.tell() == min(at + piece, len(data))
    with fs.open(f"{folder}/file") as file:
        parts = list(iter(lambda: file.read(piece), b""))
    assert b"".join(parts) == data
    assert {len(part) for part in parts[:-1]} <= {piece}


def test_any_buffer_can_be_written_and_read_into(fs: cairnfs.FileSystem, folder: str) -> None:
    data = content(200_000)
    buffer = bytearray(data)
    with fs.create(f"{folder}/file") as file:
        file.write(buffer)
        buffer[:] = bytes(len(buffer))  # what was written is the client's own by now
        file.write(memoryview(data).cast("I"))
    target = bytearray(500_000)
    with fs.open(f"{folder}/file") as file:
        assert file.readinto(target) == 400_000
        assert file.readinto(target) == 0
    assert target[:400_000] == data * 2


def test_streams_are_those_of_python(fs: cairnfs.FileSystem, folder: str) -> None:
    with io.TextIOWrapper(fs.create(f"{folder}/text"), encoding="utf-8") as text:
        text.write("Grüße\nzweite Zeile\n")
    with io.TextIOWrapper(fs.open(f"{folder}/text"), encoding="utf-8") as text:
        assert text.read().splitlines() == ["Grüße", "zweite Zeile"]
    with fs.open(f"{folder}/text") as file:
        assert file.readable()
        assert file.seekable()
        assert not file.writable()
        assert list(file) == ["Grüße\n".encode(), b"zweite Zeile\n"]
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"")
    writer = fs.create(f"{folder}/other")
    assert writer.writable()
    assert not writer.readable()
    writer.close()
    writer.close()  # once more is as good as never
    for stream, call in ((file, file.read), (writer, lambda: writer.write(b"x"))):
        assert stream.closed
        with pytest.raises(ValueError, match="closed file"):
            call()


def test_seeking(fs: cairnfs.FileSystem, folder: str) -> None:
    data = content(2 * MIB + 100)
    write(fs, f"{folder}/file", data)
    with fs.open(f"{folder}/file") as file:
        assert file.seek(-10, os.SEEK_END) == len(data) - 10
        assert file.read() == data[-10:]
        assert file.read() == b""
        assert file.seek(MIB - 5) == MIB - 5
        assert file.read(10) == data[MIB - 5 : MIB + 5]
        assert file.seek(-10, os.SEEK_CUR) == MIB - 5
        assert file.read(1) == data[MIB - 5 : MIB - 4]
        assert file.seek(100, os.SEEK_END) == len(data) + 100
        assert file.read(1) == b""
        with pytest.raises(ValueError, match="seek"):
            file.seek(-1)
        file.seek(7)
        assert file.pread(MIB - 3, 6) == data[MIB - 3 : MIB + 3]
        assert file.pread(len(data) - 3, 100) == data[-3:]
        assert file.pread(len(data) + 3, 100) == b""
        assert file.tell() == 7


@pytest.fixture(scope="module")
def known_file(cluster: Cluster) -> bytes:
    data = content(2 * MIB + 12345)
    with cairnfs.connect(cluster.uri) as fs:
        write(fs, "/known", data)
    return data


positions = st.one_of(
    st.integers(0, 2 * MIB + 12400),
    st.builds(lambda at, by: max(0, at * CHUNK + by), st.integers(0, 4200), st.integers(-1, 1)),
    st.sampled_from([0, MIB - 1, MIB, MIB + 1, 2 * MIB]),
)
lengths = st.one_of(st.integers(0, 2000), st.sampled_from([65536, 300_000, MIB, 3 * MIB]))
steps = st.tuples(
    st.sampled_from(["seek", "read", "readinto", "pread", "peek", "skip"]), positions, lengths
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(steps, max_size=20), st.sampled_from([1, 4096, MIB, 8 * MIB]))
def test_reads_and_seeks_are_as_those_of_bytes_in_memory(
    fs: cairnfs.FileSystem,
    known_file: bytes,
    steps: list[tuple[str, int, int]],
    readahead: int,
) -> None:
    model = io.BytesIO(known_file)
    with fs.open("/known", readahead_bytes=readahead) as file:
        for step, position, length in steps:
            match step:
                case "seek":
                    assert file.seek(position) == model.seek(position)
                case "skip":
                    assert file.seek(length, os.SEEK_CUR) == model.seek(length, os.SEEK_CUR)
                case "read":
                    assert file.read(length) == model.read(length)
                case "peek":
                    some = file.peek(length)
                    assert some == known_file[model.tell() : model.tell() + len(some)]
                    assert some or model.tell() >= len(known_file)
                case "readinto":
                    ours, theirs = bytearray(length), bytearray(length)
                    assert file.readinto(ours) == model.readinto(theirs)
                    assert ours == theirs
                case "pread":
                    end = position + length
                    assert file.pread(position, length) == known_file[position:end]
            assert file.tell() == model.tell()


def test_small_reads_use_connections_again(fs: cairnfs.FileSystem, known_file: bytes) -> None:
    """Else every read of a table's footer and columns would cost a connection."""
    with fs.open("/known", readahead_bytes=4096) as file:
        for position in (MIB // 2, 1000, 0, 5000, MIB - 100):
            file.seek(position)
            assert file.read(10) == known_file[position : position + 10]
    kept = fs._streams._connections._idle.values()
    assert [len(idle) for idle in kept] == [1]


# What others see of a file that is being written


def test_flushed_bytes_can_be_read(fs: cairnfs.FileSystem, folder: str) -> None:
    """Also from within chunks, which are sent again when they grow."""
    path = f"{folder}/file"
    written = b""
    with fs.create(path, replication=3, block_size=MIB) as file:
        assert read(fs, path) == b""
        for size in (1, 100, 411, 1, 512, 70_000, 3, 2 * MIB):
            written += content(size)
            file.write(content(size))
            file.flush()
            assert read(fs, path) == written
        file.flush()
        assert file.tell() == len(written)
        assert not fs.is_file_closed(path)
    assert read(fs, path) == written
    assert fs.is_file_closed(path)


def test_hsync_tells_the_length_if_asked(fs: cairnfs.FileSystem, folder: str) -> None:
    path = f"{folder}/file"
    with fs.create(path, replication=1, block_size=MIB) as file:
        file.hsync()
        file.write(content(1000))
        file.hsync()
        file.hsync()  # nothing new, but to disk all the same
        file.write(content(MIB + 500))
        file.hsync(update_length=True)
        last = fs.get_block_locations(path)[-1]
        assert (last.length_bytes, last.is_complete) == (1500, False)
        assert read(fs, path) == content(1000) + content(MIB + 500)
    assert fs.get_file_status(path).length_bytes == MIB + 1500


def test_a_reader_keeps_the_length_it_began_with(fs: cairnfs.FileSystem, folder: str) -> None:
    path = f"{folder}/file"
    with fs.create(path, replication=1) as file:
        file.write(b"first")
        file.flush()
        with fs.open(path) as reader:
            file.write(b"second")
            file.flush()
            assert reader.length == 5
            assert reader.read() == b"first"


def test_one_writer_at_a_time(cluster: Cluster, fs: cairnfs.FileSystem, folder: str) -> None:
    with fs.create(f"{folder}/file") as file:
        file.write(b"mine")
        with (
            cairnfs.connect(cluster.uri) as other,
            pytest.raises(AlreadyBeingCreatedException),
        ):
            other.create(f"{folder}/file")
    assert read(fs, f"{folder}/file") == b"mine"


def test_a_writer_whose_file_was_deleted_is_told(fs: cairnfs.FileSystem, folder: str) -> None:
    file = fs.create(f"{folder}/file", replication=1, block_size=MIB)
    file.write(content(MIB // 2))
    fs.delete(f"{folder}/file")
    with pytest.raises(FileNotFoundException, match="file"):
        file.close()
    assert file.closed
    with pytest.raises(FileNotFoundError):
        fs.open(f"{folder}/file")


def test_close_of_the_file_system_closes_its_files(cluster: Cluster, folder: str) -> None:
    fs = cairnfs.connect(cluster.uri)
    fs.create(f"{folder}/file", replication=1).write(b"not lost")
    fs.close()
    with cairnfs.connect(cluster.uri) as other:
        assert other.is_file_closed(f"{folder}/file")
        assert read(other, f"{folder}/file") == b"not lost"


# Threads and processes


def test_threads_share_a_file_system(fs: cairnfs.FileSystem, folder: str) -> None:
    def work(number: int) -> None:
        data = content(100_000 + number)
        for round in range(5):
            path = f"{folder}/thread{number}-{round}"
            write(fs, path, data)
            assert read(fs, path) == data
            assert fs.rename(path, f"{path}-renamed", overwrite=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(fs.list_status(folder)) == 40


def test_threads_share_a_stream_by_pread(fs: cairnfs.FileSystem, known_file: bytes) -> None:
    with fs.open("/known") as file, ThreadPoolExecutor(8) as pool:

        def check(number: int) -> bool:
            position = number * 31_013 % len(known_file)
            return file.pread(position, 50_000) == known_file[position : position + 50_000]

        assert all(pool.map(check, range(64)))


def test_a_forked_child_is_a_client_of_its_own(fs: cairnfs.FileSystem, folder: str) -> None:
    write(fs, f"{folder}/before", b"before")
    read(fs, f"{folder}/before")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if read(fs, f"{folder}/before") == b"before":
                write(fs, f"{folder}/of-the-child", b"child")
                status = 0
        finally:
            os._exit(status)
    write(fs, f"{folder}/of-the-parent", b"parent")
    assert os.waitpid(child, 0)[1] == 0
    assert read(fs, f"{folder}/of-the-child") == b"child"
    assert read(fs, f"{folder}/of-the-parent") == b"parent"


def test_a_forked_child_lets_go_of_files_that_its_parent_writes(
    fs: cairnfs.FileSystem, folder: str
) -> None:
    with fs.create(f"{folder}/file", replication=1) as file:
        file.write(b"of the parent")
        file.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                file.write(b"of the child")
                file.flush()
            except ValueError:
                file.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        file.write(b", and on")
    assert read(fs, f"{folder}/file") == b"of the parent, and on"


# What is done while a file is open


def watch_calls(fs: cairnfs.FileSystem, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all calls to the NameNode from now on."""
    calls: list[str] = []
    call = fs._namenodes.call

    def watched(name: str, *arguments: Any) -> Any:
        calls.append(name)
        return call(name, *arguments)

    monkeypatch.setattr(fs._namenodes, "call", watched)
    return calls


def test_leases_are_renewed_and_idle_pipelines_kept(
    fs: cairnfs.FileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.client.leases._CHECK_INTERVAL_S", 0.05)
    monkeypatch.setattr("cairnfs.client.leases.RENEWAL_INTERVAL_S", 0.2)
    monkeypatch.setattr("cairnfs.client.writer.IDLE_LIMIT_S", 0.1)
    calls = watch_calls(fs, monkeypatch)
    heartbeats: list[object] = []
    keep_alive = Pipeline.keep_alive

    def watched_keep_alive(pipeline: Pipeline) -> None:
        heartbeats.append(pipeline)
        keep_alive(pipeline)

    monkeypatch.setattr(Pipeline, "keep_alive", watched_keep_alive)
    with fs.create(f"{folder}/file", replication=3) as file:
        file.write(b"first")
        file.flush()
        time.sleep(1.0)
        file.write(b", second")
    assert calls.count("renewLease") >= 2
    assert len(heartbeats) >= 3
    assert read(fs, f"{folder}/file") == b"first, second"


def test_leases_are_renewed_however_many_files_are_opened(
    fs: cairnfs.FileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NameNode that grants a lease does not renew those of other files."""
    monkeypatch.setattr("cairnfs.client.leases._CHECK_INTERVAL_S", 0.05)
    monkeypatch.setattr("cairnfs.client.leases.RENEWAL_INTERVAL_S", 0.4)
    calls = watch_calls(fs, monkeypatch)
    with fs.create(f"{folder}/long"):
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            fs.create(f"{folder}/short", overwrite=True).close()
            time.sleep(0.02)
    assert calls.count("renewLease") >= 2


def test_leases_are_renewed_while_a_pipeline_is_mended(
    fs: cairnfs.FileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.client.leases._CHECK_INTERVAL_S", 0.02)
    monkeypatch.setattr("cairnfs.client.leases.RENEWAL_INTERVAL_S", 0.05)
    monkeypatch.setattr("cairnfs.client.writer.IDLE_LIMIT_S", 0.05)
    begun, is_over = threading.Event(), threading.Event()

    def take_long(pipeline: Pipeline) -> None:
        begun.set()
        assert is_over.wait(60)

    monkeypatch.setattr(Pipeline, "keep_alive", take_long)
    calls = watch_calls(fs, monkeypatch)
    with fs.create(f"{folder}/file", replication=1) as file:
        file.write(b"first")
        file.flush()
        try:
            assert begun.wait(10)
            before = calls.count("renewLease")
            time.sleep(0.5)
            assert calls.count("renewLease") >= before + 3
        finally:
            is_over.set()


def test_the_threads_for_leases_end_with_the_last_file(
    fs: cairnfs.FileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.client.leases._CHECK_INTERVAL_S", 0.05)
    with fs.create(f"{folder}/file"):
        threads = list(fs._streams._leases._threads.values())
        assert [thread.is_alive() for thread in threads] == [True, True]
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_is_left_of_a_file_system_that_nobody_closed(
    fs: cairnfs.FileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.client.leases._CHECK_INTERVAL_S", 0.05)
    dropped: cairnfs.FileSystem = pickle.loads(pickle.dumps(fs))
    write(dropped, f"{folder}/file", b"closed")
    keeper = weakref.ref(dropped._streams._leases)
    namenodes = weakref.ref(dropped._namenodes)
    del dropped
    deadline_s = time.monotonic() + 10
    while keeper() is not None or namenodes() is not None:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
        gc.collect()


def test_files_that_were_not_closed_are_closed_at_the_end(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    script = f"""
import cairnfs
file = cairnfs.connect({cluster.uri!r}).create("{folder}/file", replication=1)
file.write(b"forgotten, not lost")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert fs.is_file_closed(f"{folder}/file")
    assert read(fs, f"{folder}/file") == b"forgotten, not lost"


def test_lines_are_not_read_byte_by_byte(fs: cairnfs.FileSystem, folder: str) -> None:
    lines = [b"%d\n" % number for number in range(50_000)]
    write(fs, f"{folder}/lines", b"".join(lines))
    began_s = time.process_time()
    with fs.open(f"{folder}/lines") as file:
        assert list(file) == lines
        file.seek(0)
        assert file.readline() == b"0\n"
        assert file.peek(1)[:2] == b"1\n"
        assert file.tell() == 2
        assert file.seek(1, os.SEEK_CUR) == 3
        assert file.read(3) == b"\n2\n"
        file.seek(0)
        assert file.read(4) == b"0\n1\n"
    assert time.process_time() - began_s < 2.0
