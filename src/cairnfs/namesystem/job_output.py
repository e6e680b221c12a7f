"""The output of a job, put in its place by one transaction.

A job writes into a directory of its own, and what is in there is what readers find from one
moment to the next: all of it, or what was there before.  The directory that it goes to stays the
same one, with its attributes and snapshots; only its entries change.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import partial

import msgspec

from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    IOException,
)
from cairnfs.namesystem.delete import check_may_remove, detach
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.layered_children import children_of
from cairnfs.namesystem.layers import child_of, materialize_all, whiteout_key
from cairnfs.namesystem.lookup import (
    Lookup,
    check_ancestor_access,
    check_parent_exists,
    directory_at,
    inode_key,
    resolve_to_create,
    resolve_to_write,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.policy_changes import need_notes
from cairnfs.namesystem.rename import look_inside, move
from cairnfs.namesystem.snapshots import check_without_snapshots
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

ENTRIES_MAX = 10_000  # that are moved and removed by one call, which keeps all others waiting

_PAGE = 1000
_MARKER = (b"_", b".")  # how names begin that no reader of a dataset looks at, as _SUCCESS


class OutputMode(enum.IntEnum):
    """What becomes of what is there already."""

    REPLACE = 0  # all of it goes
    ADD = 1  # it stays, and a name that is taken is an error
    REPLACE_PARTITIONS = 2  # partitions that are in the output go, the others stay


class Committed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many entries have changed their place; a directory counts once, with all below it."""

    moved: int
    removed: int


@operation(stored_reply=Committed)
def commit_output(
    tx: Transaction, caller: Caller, src: FsPath, dst: FsPath, mode: int
) -> Committed:
    """Move what is in one directory into another, at once; the first one is gone then.

    A destination that does not exist is what the first one becomes.
    """
    if mode not in tuple(OutputMode):
        raise IllegalArgumentException(f"{mode} is not a mode of committing output")
    dst.check_length("commitOutput")
    tx.require_alone()
    source = resolve_to_write(tx, caller, src)
    staged = directory_at(source)
    destination = resolve_to_create(tx, caller, dst)
    _check_apart(source, destination)
    check_may_remove(tx, caller, source, with_subtree=True)
    check_without_snapshots(tx, source, staged)
    if destination.target is None:
        check_parent_exists(destination)
        check_ancestor_access(caller, destination, Access.WRITE)
        move(tx, source, destination, staged)
        return Committed(1, 0)
    if not destination.target.is_directory:
        raise FileAlreadyExistsException(
            f"{destination.path} is no directory: the output in {source.path} cannot become its"
            " content"
        )
    exchange = _Exchange(tx, caller, source.path)
    exchange.check_may_change(destination)
    # What is taken out of it then, is counted no more; what stays in it is reclaimed.
    detach(tx, source.ancestors, staged)
    if mode == OutputMode.REPLACE:
        for entry in exchange.entries_of(destination):
            exchange.remove(entry)
    exchange.merge(source, destination, OutputMode(mode))
    return Committed(exchange.moved, exchange.removed)


class _Exchange:
    """The entries that a call takes from one place to another, or away."""

    def __init__(self, tx: Transaction, caller: Caller, staging: FsPath) -> None:
        self._tx = tx
        self._caller = caller
        self._staging = staging
        self.moved = 0
        self.removed = 0

    def check_may_change(self, directory: Lookup) -> None:
        """The caller may put something into a directory that was found."""
        inode = directory.inodes[-1]
        check_access(self._caller, inode, Access.WRITE_EXECUTE, directory.path)

    def merge(self, source: Lookup, destination: Lookup, mode: OutputMode) -> None:
        """Put what is in one directory into another, directories of one name into each other."""
        for entry in self.entries_of(source, into=destination):
            assert entry.target is not None
            place = look_inside(self._tx, destination, entry.path.name)
            if place.target is not None:
                if _goes_on_below(self._tx, entry.target, place.target, mode):
                    self.check_may_change(place)
                    self.merge(entry, place, mode)
                    continue
                if mode is OutputMode.ADD and not entry.path.name.startswith(_MARKER):
                    raise FileAlreadyExistsException(
                        f"{place.path} already exists: nothing of {self._staging} was added"
                    )
                self.remove(place)
                place = look_inside(self._tx, destination, entry.path.name)
            self.moved += 1
            self._check_limit()
            move(self._tx, entry, place, entry.target, from_detached=True)

    def remove(self, entry: Lookup) -> None:
        assert entry.target is not None
        check_may_remove(self._tx, self._caller, entry, with_subtree=True)
        check_without_snapshots(self._tx, entry, entry.target)
        self.removed += 1
        self._check_limit()
        detach(self._tx, entry.ancestors, entry.target)

    def entries_of(self, directory: Lookup, into: Lookup | None = None) -> Iterator[Lookup]:
        """What is in a directory, as it was before this call, to be moved into another one."""
        tx, inode = self._tx, directory.inodes[-1]
        content_id = InodeId(inode.children_id)
        after = b""
        while page := children_of(tx, inode, after, _PAGE):
            after = page[-1].name
            keys = [inode_key(content_id, child.name) for child in page]
            if inode.origin is not None:
                keys += [whiteout_key(content_id, child.name) for child in page]
            tx.need(
                keys,
                totals=[each.id for each in page if each.is_directory and not each.is_virtual],
            )
            materialize_all(tx, inode, page)
            if into is not None:
                there = into.inodes[-1]
                need_notes(tx, directory, page)
                ask_all(partial(child_of, tx, there), [child.name for child in page])
            for child in page:
                yield look_inside(tx, directory, child.name)

    def _check_limit(self) -> None:
        if self.moved + self.removed > ENTRIES_MAX:
            raise IOException(
                f"The output in {self._staging} cannot be committed at once: more than"
                f" {ENTRIES_MAX} entries would be moved or removed; write fewer files, or in"
                " partitions"
            )


def _goes_on_below(tx: Transaction, staged: Inode, there: Inode, mode: OutputMode) -> bool:
    """Whether two directories of one name are merged, or else the first one takes its place."""
    if not staged.is_directory or not there.is_directory:
        return False
    if mode is OutputMode.ADD:
        return True
    # A partition is a directory that has none below it.
    return mode is OutputMode.REPLACE_PARTITIONS and any(
        child.is_directory for child in children_of(tx, staged, b"", _PAGE)
    )


def _check_apart(source: Lookup, destination: Lookup) -> None:
    src, dst = source.path, destination.path
    if src.is_root:
        raise IOException("the root cannot be the output of a job")
    if src == dst or src.is_ancestor_of(dst) or dst.is_ancestor_of(src):
        raise IOException(f"The output in {src} cannot be moved to {dst}: one is in the other")
    if source.missing:
        raise FileNotFoundException(f"Directory does not exist: {src}")
