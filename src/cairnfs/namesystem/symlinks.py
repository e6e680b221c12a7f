"""Symbolic links.

The namespace never follows one: a call that meets a link on its way is
answered with UnresolvedPathException, and the client goes where it points.
HDFS has these calls, but leaves them disabled; here they work.
"""

from __future__ import annotations

from types import NoneType

from cairnfs.errors import (
    FileNotFoundException,
    InvalidPathException,
    IOException,
    UnresolvedPathException,
)
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.directories import (
    add_directories,
    add_inode,
    get_file_link_info,
    implied_mode,
)
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.lookup import (
    check_ancestor_access,
    check_parent_exists,
    resolve_link_to_write,
    with_own_rows,
)
from cairnfs.namesystem.paths import PATH_LENGTH_MAX, FsPath, check_text
from cairnfs.namesystem.permissions import Access, Caller
from cairnfs.namesystem.quotas import ONE_SYMLINK, add_entry
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation(stored_reply=NoneType)
def create_symlink(
    tx: Transaction, caller: Caller, target: str, link: FsPath, create_parents: bool
) -> None:
    """Make a link to `target`, which need not exist and may be relative or a URI."""
    if link.is_too_long:
        raise IOException(f"Symlink path exceeds {PATH_LENGTH_MAX} character limit")
    if ":" in link.text:
        raise InvalidPathException(f"Invalid path name Invalid link name: {link}")
    if not target or target == "/.reserved" or target.startswith("/.reserved/"):
        raise InvalidPathException(f"Invalid path name Invalid target name: {target}")
    check_text(target, "link target", PATH_LENGTH_MAX)
    lookup = resolve_link_to_write(tx, caller, link)
    if not create_parents:
        check_parent_exists(lookup)
    if lookup.target is not None:
        raise IOException(
            f"failed to create link {lookup.path} either because the filename is invalid or"
            " the file exists"
        )
    check_ancestor_access(caller, lookup, Access.WRITE)

    lookup = with_own_rows(tx, lookup)
    parents = add_directories(tx, caller, lookup, implied_mode(lookup.deepest.mode), None)
    inode = Inode(
        id=InodeId(tx.next_inode_id()),
        parent_id=InodeId(parents[-1].children_id),
        name=lookup.path.name,
        kind=Kind.SYMLINK,
        mode=0o777,
        owner=caller.user,
        group=parents[-1].group,
        mtime_ms=tx.now_ms,
        atime_ms=tx.now_ms,
        target=target,
    )
    add_inode(tx, lookup.path, parents, inode)
    add_entry(tx, lookup.path, parents, ONE_SYMLINK)


@operation(mutates=False)
def get_link_target(tx: Transaction, caller: Caller, path: FsPath) -> str:
    """Where a link points; of a path through a link, where to go on."""
    try:
        status: FileStatus | None = get_file_link_info.function(tx, caller, path)
    except UnresolvedPathException as elsewhere:
        return str(elsewhere)
    if status is None:
        raise FileNotFoundException(f"File does not exist: {path}")
    if status.target is None:
        raise IOException(f"Path {path} is not a symbolic link")
    return status.target
