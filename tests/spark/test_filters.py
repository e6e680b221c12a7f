"""Filters that a session passes on: which directory is read for them, and when all of it is."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import EqualTo, Filter, StringStartsWith

from cairnfs.spark.source import CairnDataSource, FilteringReader, TableReader


def read_for(*filters: Filter, top: str = "/w", **options: str) -> str:
    """The directory that is read."""
    source = CairnDataSource({"path": f"hdfs://nowhere:1{top}", "pushdown": "true", **options})
    reader = source.reader(source.schema())
    if isinstance(reader, FilteringReader):
        assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark applies them, too
    assert isinstance(reader, TableReader)
    return reader._request.top


def starts(text: str) -> Filter:
    return StringStartsWith(("path",), text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/a/b/", "/w/a/b"),
        ("/w/a/b", "/w/a"),
        ("/w/a", "/w"),
        ("/w", "/w"),
        ("/other/a/b", "/w"),
        ("/wide/a/b", "/w"),
        # No row has such a path, though each can be opened or is refused.
        ("/w/a/.snapshot/s/", "/w"),
        ("/w//a/", "/w"),
        ("/w/../a/", "/w"),
        # Rows have it, for a name that is no text: it cannot be opened by that.
        ("/w/caf\ufffd/", "/w"),
    ],
)
def test_the_beginning_of_a_path(text: str, expected: str) -> None:
    assert read_for(starts(text)) == expected


def test_a_parent_and_several_filters() -> None:
    assert read_for(EqualTo(("parent",), "/w/a/b")) == "/w/a/b"
    assert read_for(starts("/w/a/"), EqualTo(("parent",), "/w/a/b")) == "/w/a/b"
    assert read_for(EqualTo(("owner",), "/w/a")) == "/w"


def test_below_the_root_and_in_a_snapshot() -> None:
    assert read_for(starts("/a/b/"), top="/") == "/a/b"
    assert read_for(starts("/w/.snapshot/s/a/"), top="/w/.snapshot/s") == "/w/.snapshot/s/a"


def test_a_view_that_is_given_is_read_as_it_was_opened() -> None:
    assert read_for(starts("/w/a/"), view="7") == "/w"
