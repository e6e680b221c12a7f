"""Giving what was written the attributes that it is to have."""

from __future__ import annotations

from collections.abc import Mapping

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.matching import Wanted, match
from cairnfs.client.records import FileStatus
from cairnfs.jobs.entries import FILE, Entry


def set_attributes(
    fs: FileSystem,
    path: str,
    wanted: Entry,
    found: FileStatus | None = None,
    inherited: frozenset[str] = frozenset(),
) -> None:
    """Make owner, mode, list, attributes, replication and times of a file or directory as wanted.

    `found` is what it is now; without it, it is new: it was made with the mode that is wanted, and
    has neither list nor attributes.  Attributes that are `inherited` are left alone.
    """
    is_file = wanted.kind == FILE
    replication = wanted.replication if is_file else None
    attributes = Wanted(wanted.owner, wanted.group, wanted.mode, wanted.acl, replication)
    match(fs, path, found, attributes)
    there = {} if found is None else fs.get_xattrs(path)
    _set_xattrs(fs, path, wanted, there, inherited)
    fs.set_times(path, wanted.modified_ms, wanted.accessed_ms if is_file else None)


def _set_xattrs(
    fs: FileSystem,
    path: str,
    wanted: Entry,
    there: Mapping[str, bytes],
    inherited: frozenset[str],
) -> None:
    values = {each.name: each.value for each in wanted.xattrs if each.name not in inherited}
    for name, value in values.items():
        if there.get(name) != value:
            fs.set_xattr(path, name, value)
    for name in there.keys() - values.keys() - inherited:
        fs.remove_xattr(path, name)
