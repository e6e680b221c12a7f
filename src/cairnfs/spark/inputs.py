"""Which data a result came from, written down beside it, so that it can be made again.

inputs = pin_inputs({"orders": "hdfs://namenode/lake/orders"}, "model-7")
model = train(spark.read.parquet(inputs["orders"].url))
record_inputs("hdfs://namenode/models/7", inputs, learning_rate=0.1)
...
spark.read.parquet(recorded_inputs("hdfs://namenode/models/7")["orders"].url)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

import cairnfs
from cairnfs.errors import FileNotFoundException, IOException, SnapshotException

RECORD_NAME = "_cairn_inputs.json"


class Input(msgspec.Struct, frozen=True):
    """A directory at one moment, which nothing changes any more."""

    url: str  # where to read it: in its snapshot
    directory: str
    snapshot: str
    snapshot_id: int | None  # two of the same name, one after another, differ by it
    inode_id: int
    taken_ms: int


class Record(msgspec.Struct, frozen=True):
    """What is written down: the inputs by name, and whatever else made the result what it is."""

    inputs: dict[str, Input]
    facts: dict[str, Any]


def pin_inputs(urls: Mapping[str, str], name: str) -> dict[str, Input]:
    """Take a snapshot of that name of each directory, all of one moment."""
    first = next(iter(urls.values()))
    with cairnfs.connect(first) as fs:
        fs.create_snapshots(list(urls.values()), name)
    return {key: find_input(url, name) for key, url in urls.items()}


def find_input(url: str, snapshot: str) -> Input:
    """A directory as it is in a snapshot that was taken already."""
    with cairnfs.connect(url) as fs:
        path = fs.absolute_path(url)
        found = fs.find_snapshot(path, snapshot)
    if found is None:
        raise SnapshotException(f"{path} has no snapshot {snapshot}")
    return Input(
        url=f"{url.rstrip('/')}/.snapshot/{snapshot}",
        directory=path,
        snapshot=snapshot,
        snapshot_id=found.id,
        inode_id=found.status.id,
        taken_ms=found.status.mtime_ms,
    )


def record_inputs(result: str, inputs: Mapping[str, Input], **facts: Any) -> None:
    """Write beside a result, a directory, what it came from."""
    record = msgspec.json.format(msgspec.json.encode(Record(dict(inputs), facts)))
    with (
        cairnfs.connect(result) as fs,
        fs.create(_record_path(result), overwrite=True) as file,
    ):
        file.write(record)


def recorded_inputs(result: str) -> dict[str, Input]:
    """The inputs of a result, each of which is there as it was; it is an error if one is not."""
    record = read_record(result)
    for name, recorded in record.inputs.items():
        directory_url = recorded.url.removesuffix(f"/.snapshot/{recorded.snapshot}")
        if find_input(directory_url, recorded.snapshot) != recorded:
            raise SnapshotException(
                f"{name}, an input of {result}, is there no more: the snapshot"
                f" {recorded.snapshot} of {recorded.directory} is another one now"
            )
    return record.inputs


def read_record(result: str) -> Record:
    """All that was written down of a result."""
    try:
        with cairnfs.connect(result) as fs, fs.open(_record_path(result)) as file:
            return msgspec.json.decode(file.read(), type=Record)
    except FileNotFoundError:
        raise FileNotFoundException(
            f"{result} does not say what it came from: there is no {RECORD_NAME} in it"
        ) from None
    except msgspec.MsgspecError as error:
        raise IOException(f"{_record_path(result)} is damaged: {error}") from None


def _record_path(result: str) -> str:
    return f"{result.rstrip('/')}/{RECORD_NAME}"
