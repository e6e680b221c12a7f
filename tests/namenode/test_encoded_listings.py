"""Listings that were encoded before: as if they were encoded anew, and not too many."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.namenode.messages import EncodedPages, encode_listing
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.listings import Listing, Page, describe_page
from cairnfs.store.base import NO_TOTALS, Count, Totals

ENTRIES_MAX = 20


def inode(number: int, mode: int = 0o644, kind: Kind = Kind.FILE) -> Inode:
    return Inode(
        id=InodeId(number),
        parent_id=InodeId(1),
        name=b"%03d" % number,
        kind=kind,
        mode=mode,
        owner="ada",
        group="users",
        mtime_ms=1,
        atime_ms=1,
    )


def with_children(count: int) -> Totals:
    counts = list(NO_TOTALS.counts)
    counts[Count.CHILDREN] = count
    return NO_TOTALS._replace(counts=tuple(counts))


@given(st.integers())
def test_whatever_was_encoded_before(seed: int) -> None:
    chance = random.Random(seed)
    files = [inode(number) for number in range(12)]
    directories = {number: chance.randrange(3) for number in range(12, 16)}
    pages = EncodedPages(ENTRIES_MAX)
    for _ in range(30):
        number = chance.randrange(len(files))
        match chance.randrange(4):
            case 0:
                files[number] = msgspec.structs.replace(files[number], mode=chance.randrange(8))
            case 1:
                files[number] = msgspec.structs.replace(files[number])  # as if read once more
            case 2:
                directories[chance.choice(list(directories))] += 1
        first = chance.randrange(3)
        below = [inode(id, kind=Kind.DIRECTORY) for id in directories]
        shown = [*files[first : chance.choice([4, 8, 12])], *below][: chance.randrange(12)]
        totals = {
            each.name: with_children(directories[each.id])
            for each in shown
            if each.kind is Kind.DIRECTORY
        }
        page = Page(shown, totals, chance.randrange(3))
        expected = encode_listing(Listing(describe_page(page), page.remaining))
        for _ in range(2):
            assert pages.encode(page) == expected
        assert pages._count == sum(len(known.inodes) for known, _ in pages._known.values())
        assert pages._count <= ENTRIES_MAX
