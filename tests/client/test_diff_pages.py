"""Pages of a diff become entries, whatever is on which page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from cairnfs.client.records import DiffEntry
from cairnfs.client.snapshot_messages import DiffPages
from cairnfs.wire.proto.hdfs_pb2 import (
    SnapshotDiffReportCursorProto,
    SnapshotDiffReportListingEntryProto,
    SnapshotDiffReportListingProto,
)


def entry(
    path: bytes, file_id: int = 0, target: bytes | None = None, *, is_reference: bool = False
) -> SnapshotDiffReportListingEntryProto:
    return SnapshotDiffReportListingEntryProto(
        fullpath=path, dirId=1, fileId=file_id, isReference=is_reference, targetPath=target
    )


# A file that was renamed, one that came from elsewhere, one that is new and one that is gone.
MODIFIED = [entry(b"", is_reference=True)]
CREATED = [entry(b"there", 5, is_reference=True), entry(b"in", 6, is_reference=True), entry(b"new")]
DELETED = [entry(b"here", 5, b"there", is_reference=True), entry(b"gone")]
FORWARD = {
    DiffEntry("M", "."),
    DiffEntry("R", "here", "there"),
    DiffEntry("+", "in"),
    DiffEntry("+", "new"),
    DiffEntry("-", "gone"),
}
BACKWARD = {
    DiffEntry("M", "."),
    DiffEntry("R", "there", "here"),
    DiffEntry("-", "in"),
    DiffEntry("-", "new"),
    DiffEntry("+", "gone"),
}


def pages_of_one_entry(order: tuple[int, ...], *, forward: bool) -> Iterator[object]:
    found = [
        *(("modifiedEntries", each) for each in MODIFIED),
        *(("createdEntries", each) for each in CREATED),
        *(("deletedEntries", each) for each in DELETED),
    ]
    for number, index in enumerate(order):
        field, each = found[index]
        is_last = number == len(order) - 1
        cursor = SnapshotDiffReportCursorProto(
            startPath=b"" if is_last else b"somewhere", index=-1 if is_last else number
        )
        page = SnapshotDiffReportListingProto(isFromEarlier=forward, cursor=cursor)
        getattr(page, field).append(each)
        yield page


@pytest.mark.parametrize(("forward", "expected"), [(True, FORWARD), (False, BACKWARD)])
def test_the_order_of_pages_does_not_matter(forward: bool, expected: set[DiffEntry]) -> None:
    for order in itertools.permutations(range(6)):
        pages = DiffPages()
        entries: list[DiffEntry] = []
        for page in pages_of_one_entry(order, forward=forward):
            assert not pages.is_complete
            assert isinstance(page, SnapshotDiffReportListingProto)
            entries += pages.read(page)
        assert pages.is_complete
        assert len(entries) == len(expected)
        assert set(entries) == expected
