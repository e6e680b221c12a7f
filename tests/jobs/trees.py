"""Trees to back up and mirror, and all that can be seen of them."""

from __future__ import annotations

import random
from typing import Any

import cairnfs
from cairnfs.errors import HdfsError

BLOCK_BYTES = 1 << 20


def read_tree(fs: cairnfs.FileSystem, top: str, *, inherited: bool = True) -> dict[str, Any]:
    """Everything at and below a path, by path from there.

    Links have no times of their own that could be set; the directory itself is touched by taking a
    snapshot.  Without `inherited`, what one cluster may inherit and another not is left out.
    """
    tree = {}
    todo = [""]
    while todo:
        below = todo.pop()
        path = top + below
        status = fs.get_file_link_info(path)
        assert status is not None
        seen: dict[str, object] = {"type": status.type, "target": status.target}
        if not status.is_symlink:
            seen |= {
                "mode": oct(status.mode),
                "owner": (status.owner, status.group),
                "acl": fs.get_acl_status(path).entries,
                "modified": status.mtime_ms if below else 0,
                "xattrs": fs.get_xattrs(path),
            }
            if inherited:
                seen["policy"] = fs.get_storage_policy(path).name
        if status.is_file:
            seen |= {
                "replication": status.replication,
                "block size": status.block_size_bytes,
                "accessed": status.atime_ms if inherited else 0,
                "content": fs.open(path).read(),
            }
        tree[below] = seen
        if status.is_directory:
            todo += [f"{below}/{each.name}" for each in fs.list_status(path)]
    return tree


def write(fs: cairnfs.FileSystem, path: str, content: bytes, **options: Any) -> None:
    with fs.create(path, overwrite=True, **options) as file:
        file.write(content)


def make_varied_tree(fs: cairnfs.FileSystem, top: str) -> None:
    """Something of everything that a backup has to keep."""
    draw = random.Random(7)
    fs.mkdirs(f"{top}/plain/deep/deeper")
    fs.mkdirs(f"{top}/empty", 0o1777)
    fs.mkdirs(f"{top}/listed")
    large = draw.randbytes(3 * BLOCK_BYTES + 5)
    write(fs, f"{top}/plain/several blocks", large, block_size=BLOCK_BYTES)
    write(fs, f"{top}/plain/nothing", b"", replication=2)
    write(fs, f"{top}/plain/deep/ünïcode 'quoted'", b"x" * 100, replication=1)
    for n in range(20):
        write(fs, f"{top}/plain/deep/deeper/{n}", draw.randbytes(n))
    fs.create_symlink("/somewhere/else", f"{top}/plain/link")
    fs.create_symlink("deeper", f"{top}/plain/deep/relative")
    fs.modify_acl_entries(f"{top}/plain/nothing", "user:ada:rw-,group:staff:r--")
    fs.modify_acl_entries(f"{top}/listed", "default:user:bob:rwx,user:eve:---")
    write(fs, f"{top}/listed/inherits a list", b"1")
    fs.set_xattr(f"{top}/plain/nothing", "user.empty", b"")
    fs.set_xattr(f"{top}/plain/nothing", "trusted.bytes", bytes(range(256)))
    fs.set_xattr(f"{top}/empty", "user.of a directory", b"1")
    fs.set_owner(f"{top}/plain/deep", "ada", "staff")
    fs.set_permission(f"{top}/plain/deep/deeper/3", 0o600)
    fs.set_times(f"{top}/plain/deep/deeper/4", 1_000_000_000_123, 1_000_000_000_456)
    fs.set_times(f"{top}/plain/deep", 1_200_000_000_000)
    fs.set_permission(top, 0o751)


def change_at_random(fs: cairnfs.FileSystem, top: str, draw: random.Random, steps: int) -> None:
    """Attributes, which histories of other tests do not touch."""
    for _ in range(steps):
        path = top
        while fs.get_file_status(path).is_directory and draw.random() < 0.8:
            found = [each for each in fs.list_status(path) if not each.is_symlink]
            if not found:
                break
            path = draw.choice(found).path
        name = f"user.{draw.choice('abc')}"
        try:
            if draw.random() < 0.7:
                fs.set_xattr(path, name, draw.randbytes(3))
            else:
                fs.remove_xattr(path, name)
        except HdfsError:
            pass  # there is none to remove
