"""Giving what was written the attributes that it is to have."""

from __future__ import annotations

from collections.abc import Mapping

from cairnfs.acl_text import full_entries
from cairnfs.client.filesystem import FileSystem
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
    if found is None or (found.owner, found.group) != (wanted.owner, wanted.group):
        fs.set_owner(path, wanted.owner, wanted.group)
    if found is not None and found.has_acl and not wanted.acl:
        fs.remove_acl(path)
    if found is not None and (found.mode != wanted.mode or found.has_acl):
        fs.set_permission(path, wanted.mode)
    if wanted.acl:
        fs.set_acl(path, full_entries(wanted.mode, wanted.acl))
    there = {} if found is None else fs.get_xattrs(path)
    _set_xattrs(fs, path, wanted, there, inherited)
    if found is not None and wanted.kind == FILE and found.replication != wanted.replication:
        fs.set_replication(path, wanted.replication)
    fs.set_times(path, wanted.modified_ms, wanted.accessed_ms if wanted.kind == FILE else None)


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
