"""Sequence files that Hadoop has written are shown as Hadoop shows them."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.cairn_shell import run_cairn
from tests.compatibility.shell import FsShell, why_not

from cairnfs.client.filesystem import connect
from cairnfs.testing.cluster import Cluster

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

NAME = getpass.getuser()
RECORDS = 3000  # so many that there are several blocks, and marks between records


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("sequence") / "cluster"
    with Cluster(directory, datanodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shell(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FsShell]:
    with FsShell(cluster.uri, NAME, tmp_path_factory.mktemp("shell")) as shell:
        yield shell


def write_sequence_file(shell: FsShell, path: str, kind: str, codec: str) -> None:
    gateway = shell._gateway
    io = gateway.jvm.org.apache.hadoop.io
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration()
    conf.set("io.seqfile.compress.blocksize", "8000")
    writer_class = io.SequenceFile.Writer
    options = [
        writer_class.file(gateway.jvm.org.apache.hadoop.fs.Path(shell.uri + path)),
        writer_class.keyClass(gateway.jvm.Class.forName("org.apache.hadoop.io.LongWritable")),
        writer_class.valueClass(gateway.jvm.Class.forName("org.apache.hadoop.io.Text")),
        writer_class.compression(
            getattr(io.SequenceFile.CompressionType, kind), _codec(gateway, codec, conf)
        ),
    ]
    array = gateway.new_array(io.SequenceFile.Writer.Option, len(options))
    for index, option in enumerate(options):
        array[index] = option
    writer = io.SequenceFile.createWriter(conf, array)
    key, value = io.LongWritable(), io.Text()
    for number in range(RECORDS):
        key.set(number * 7919 - 5)
        value.set(f"value {number} " + "ü" * (number % 40))
        writer.append(key, value)
    writer.close()


def _codec(gateway: Any, name: str, conf: Any) -> Any:
    codec = getattr(gateway.jvm.org.apache.hadoop.io.compress, name)()
    codec.setConf(conf)
    return codec


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        ("NONE", "DefaultCodec"),
        ("RECORD", "DefaultCodec"),
        ("BLOCK", "DefaultCodec"),
        ("BLOCK", "BZip2Codec"),
    ],
)
def test_records_are_shown_as_hadoop_shows_them(
    cluster: Cluster, shell: FsShell, kind: str, codec: str
) -> None:
    path = f"/{kind}-{codec}"
    write_sequence_file(shell, path, kind, codec)
    theirs = shell.run("-text", path)
    ours = run_cairn(cluster.uri, NAME, ["text", path])
    assert theirs.out.count("\n") == RECORDS
    assert (ours.out, ours.code) == (theirs.out, 0), ours.err


def test_what_is_damaged_or_unknown_is_said(cluster: Cluster, shell: FsShell) -> None:
    write_sequence_file(shell, "/whole", "NONE", "DefaultCodec")
    with connect(cluster.uri) as fs:
        with fs.open("/whole") as file:
            data = file.read()
        for path, changed in {
            "/cut": data[:-3],
            "/class": data.replace(b"LongWritable", b"LongNonsense"),
            "/old": data.replace(b"SEQ\x06", b"SEQ\x04"),
        }.items():
            with fs.create(path) as file_to_write:
                file_to_write.write(changed)
    for path, problem in {
        "/cut": "is a damaged sequence file",
        "/class": "holds org.apache.hadoop.io.LongNonsense",
        "/old": "of version 4",
    }.items():
        outcome = run_cairn(cluster.uri, NAME, ["text", path])
        assert outcome.code == 1
        assert outcome.err.startswith(f"text: `{path}': ")
        assert problem in outcome.err
