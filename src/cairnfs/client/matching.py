"""Owner, mode, access control list and replication of a copy, made what they are to be."""

from __future__ import annotations

import msgspec

from cairnfs.acl_text import full_entries
from cairnfs.client.namespace import Namespace
from cairnfs.client.records import FileStatus


class Wanted(msgspec.Struct, frozen=True):
    """What a file or directory is to have."""

    owner: str
    group: str
    mode: int
    acl: list[str]  # without what the mode says
    replication: int | None  # of files


def match(fs: Namespace, path: str, found: FileStatus | None, wanted: Wanted) -> None:
    """Set what is different.

    `found` is what is there now; without it, it is new: it was made with the mode and replication
    that are wanted, and has no list.
    """
    if found is None or (found.owner, found.group) != (wanted.owner, wanted.group):
        fs.set_owner(path, wanted.owner, wanted.group)
    if found is not None and found.has_acl and not wanted.acl:
        fs.remove_acl(path)
    if found is not None and (found.mode != wanted.mode or found.has_acl):
        fs.set_permission(path, wanted.mode)
    if wanted.acl:
        fs.set_acl(path, full_entries(wanted.mode, wanted.acl))
    if (
        found is not None
        and wanted.replication is not None
        and wanted.replication != found.replication
    ):
        fs.set_replication(path, wanted.replication)
