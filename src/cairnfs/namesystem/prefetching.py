"""What a call is going to read, as far as its paths tell: so that one read brings all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cairnfs.namesystem.inodes import ROOT_ID, InodeId
from cairnfs.namesystem.lookup import ROOT_KEY, Way, inode_key
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_records import Snapshot, snapshot_key
from cairnfs.store.base import Reading
from cairnfs.store.schema import Table
from cairnfs.transaction.hints import HintedInode, Hints

_INODES: Final = int(Table.INODES)


def prefetch_paths(arguments: tuple[object, ...], hints: Hints) -> Reading:
    """The rows that the paths among a call's arguments lead to, as far as is known."""
    reading = Reading(keys=[ROOT_KEY])
    for argument in arguments:  # as `_paths_among`, which would take as long as all the rest
        if type(argument) is FsPath:
            _prefetch_path(argument, hints, reading)
        elif type(argument) is tuple:
            for path in _paths_among(argument):
                _prefetch_path(path, hints, reading)
    return reading


def _prefetch_path(path: FsPath, hints: Hints, reading: Reading) -> None:
    if path.is_reserved:
        path = path.without_raw()
    hint = _prefetch(path, hints, reading)
    if not path.components:
        reading.totals.append(ROOT_ID)
    elif hint is not None and hint.is_directory:
        reading.totals.append(hint.id)


def _prefetch(path: FsPath, hints: Hints, reading: Reading) -> HintedInode | None:
    """The rows along a path, as far as is known, and what is at its end."""
    components = path.components
    if components and path.snapshot_index < 0:
        memo = hints.recall(components[:-1])
        if memo is not None:
            way: Way = memo.value
            key = (_INODES, way[0][-1].children_id, components[-1])
            keys = reading.keys
            keys.extend(memo.reads)
            keys.append(key)
            return hints.get(key)
    hint = hints.get(ROOT_KEY)
    parent_id: int = ROOT_ID if hint is None else hint.children_id
    for depth, name in enumerate(components):
        if depth == path.snapshot_index and hint is not None:
            _prefetch_in_snapshot(hint.id, components[depth + 1 :], hints, reading)
            break
        key = (_INODES, parent_id, name)
        reading.keys.append(key)
        hint = hints.get(key)
        if hint is None:
            break
        parent_id = hint.children_id
    return hint


def _prefetch_in_snapshot(
    inode_id: int, names: tuple[bytes, ...], hints: Hints, reading: Reading
) -> None:
    """The row of a snapshot, and of its root as it was, or of what is right below that."""
    if not names:
        return
    key = snapshot_key(inode_id, names[0])
    reading.keys.append(key)
    snapshot: object = hints.get(key)  # what is kept there is no inode
    if isinstance(snapshot, Snapshot) and snapshot.root.is_directory:
        then = reading.past.setdefault(snapshot.txid, Reading())
        if len(names) > 1:
            then.keys.append(inode_key(InodeId(snapshot.root.children_id), names[1]))
        else:
            then.totals.append(snapshot.root.id)


def _paths_among(arguments: Iterable[object]) -> Iterator[FsPath]:
    for argument in arguments:
        if type(argument) is FsPath:
            yield argument
        elif type(argument) is tuple:
            yield from _paths_among(argument)
