"""What jobs are made of, without Spark: places, tables, packs, errors of tasks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from cairnfs.client.namenode import NameNodeUnreachable
from cairnfs.errors import (
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    IOException,
)

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

from cairnfs.jobs.entries import DIRECTORY, FILE, Entry, XAttr, from_table, to_table
from cairnfs.jobs.failures import explain
from cairnfs.jobs.packs import PackSource, PackWriter
from cairnfs.jobs.places import Place
from cairnfs.jobs.records import TableFile, read_table, write_table


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(f"file://{tmp_path}/deep/place")


def test_a_place_is_made_when_something_is_written(place: Place, tmp_path: Path) -> None:
    assert not place.exists()
    assert place.sizes() == {}
    place.remove()
    with pytest.raises(FileNotFoundException, match="deep/place/a does not exist"):
        place.read("a")
    place.write("a", b"one")
    place.write("a", b"other")
    (place / "b").write("c", b"")
    assert place.sizes() == {"a": 5, "b": None}  # and nothing temporary
    again = pickle.loads(pickle.dumps(place))
    assert again.read("a") == b"other"
    assert place.free_bytes() == pytest.approx(again.free_bytes(), rel=0.5)
    place.remove()
    assert not (tmp_path / "deep" / "place").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("/backups", "'/backups' does not say on which file system: write file:///backups or"),
        ("backups", "'backups' is no URL such as"),
        ("nothing://x", "nothing://x: Protocol not known"),
    ],
)
def test_a_place_that_cannot_be(url: str, said: str) -> None:
    with pytest.raises(IllegalArgumentException, match=said):
        Place(url).exists()


def test_entries_are_what_they_were(place: Place) -> None:
    written = [
        Entry(".", DIRECTORY, owner="ada", mode=0o1777, acl=["user:bob:rwx"], policy="COLD"),
        Entry("a/ü", FILE, 5, xattrs=[XAttr("user.a", b"\0\xff"), XAttr("user.b", b"")]),
    ]
    sha256 = write_table(place, "table", to_table(written))
    assert list(from_table(read_table(place, TableFile("table", sha256)))) == written
    place.write("table", place.read("table") + b" ")
    with pytest.raises(IOException, match="was changed or is damaged"):
        read_table(place, TableFile("table", sha256))


def test_a_pack_is_read_as_it_was_written(place: Place) -> None:
    place.make()
    contents = [b"first", b"second" * 1000, b"third"]
    entries = []
    with place.create("pack") as stream:
        pack = PackWriter(stream)
        for index, content in enumerate(contents):
            offset, sha256 = pack.add([content[:3], content[3:]])
            entries.append(
                Entry(str(index), FILE, len(content), pack="pack", offset=offset, sha256=sha256)
            )
    with PackSource(place).open() as reader:
        for entry, content in reversed(list(zip(entries, contents, strict=True))):
            assert b"".join(reader.chunks(entry)) == content
    data = place.read("pack")
    place.write("pack", data[:-1] + b"!")
    with (
        PackSource(place).open() as reader,
        pytest.raises(IOException, match="the content of 2 is not what was backed up"),
    ):
        list(reader.chunks(entries[2]))
    place.write("pack", data[:-1])
    with (
        PackSource(place).open() as reader,
        pytest.raises(IOException, match="is too short for the content of 2"),
    ):
        list(reader.chunks(entries[2]))


TRACE = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed
Traceback (most recent call last):
  File "a.py", line 1, in f
    raise KeyError("x")
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "worker.py", line 2, in main
    process()
{raised}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException
Caused by: java.lang.Exception: something: else
"""


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (
            "cairnfs.errors.FileNotFoundException: /a: b does not exist",
            FileNotFoundException,
            "/a: b does not exist",
        ),
        (
            "cairnfs.client.namenode.NameNodeRefused: nobody answers",
            NameNodeUnreachable,
            "nobody answers",
        ),
        ("OSError: [Errno 28] No space left", IOException, "[Errno 28] No space left"),
        ("ZeroDivisionError: division by zero", IOException, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_a_task_raised_is_told(raised: str, kind: type[HdfsError], said: str) -> None:
    error = explain(TRACE.replace("{raised}", raised))
    assert type(error) is kind
    assert str(error) == said


def test_what_spark_cannot_do_is_told() -> None:
    error = explain("Job 3 cancelled because SparkContext was shut down\n\tat x")
    assert str(error) == (
        "Spark could not run the job: Job 3 cancelled because SparkContext was shut down"
    )
