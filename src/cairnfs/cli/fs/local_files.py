"""The files of this machine, with the calls that a cluster has."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress

from cairnfs.cli.fs.files import Sink, Source
from cairnfs.client.records import FileStatus, FileType

BLOCK_BYTES = 32 << 20  # what Hadoop says of local files


class LocalFiles:
    """`file:///`."""

    url = "file://"

    @property
    def home_directory(self) -> str:
        """Where paths without a slash in front begin: here, where we are."""
        return os.getcwd()

    def get_file_info(self, path: str, /) -> FileStatus | None:
        try:
            return _status(path, os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list_status_iter(self, path: str, /) -> Iterator[FileStatus]:
        for name in sorted(os.listdir(path)):
            child = os.path.join(path, name)
            with suppress(FileNotFoundError):  # gone since, or a link to nothing
                yield _status(child, os.stat(child))

    def open(self, path: str, /) -> Source:
        return open(path, "rb", buffering=0)

    def create(self, path: str, /, *, overwrite: bool = False) -> Sink:
        return open(path, "wb" if overwrite else "xb", buffering=0)

    def mkdirs(self, path: str, /) -> bool:
        os.makedirs(path, exist_ok=True)
        return True

    def rename(self, src: str, dst: str, /, *, overwrite: bool | None = None) -> bool:
        os.rename(src, dst)
        return True

    def delete(self, path: str, /, recursive: bool = False) -> bool:
        if not os.path.isdir(path) or os.path.islink(path):
            os.unlink(path)
        elif recursive:
            import shutil  # which brings all compressors along

            shutil.rmtree(path)
        else:
            os.rmdir(path)
        return True

    def set_times(self, path: str, /, mtime_ms: int, atime_ms: int) -> None:
        os.utime(path, ns=(atime_ms * 1_000_000, mtime_ms * 1_000_000))

    def set_owner(self, path: str, /, owner: str, group: str) -> None:
        import shutil

        try:
            shutil.chown(path, owner, group)
        except LookupError as error:
            raise OSError(f"changing ownership of '{path}': {error}") from None

    def set_permission(self, path: str, /, mode: int) -> None:
        os.chmod(path, mode)


def _status(path: str, found: os.stat_result) -> FileStatus:
    is_directory = stat.S_ISDIR(found.st_mode)
    return FileStatus(
        path=path,
        type=FileType.DIRECTORY if is_directory else FileType.FILE,
        length_bytes=found.st_size,
        mode=stat.S_IMODE(found.st_mode) & 0o1777,
        owner=_user_name(found.st_uid),
        group=_group_name(found.st_gid),
        mtime_ms=found.st_mtime_ns // 1_000_000,
        atime_ms=found.st_atime_ns // 1_000_000,
        replication=0 if is_directory else 1,
        block_size_bytes=BLOCK_BYTES,
        id=found.st_ino,
        children=None,
        target=None,
        has_acl=False,
        is_encrypted=False,
        is_erasure_coded=False,
        is_snapshottable=False,
        storage_policy=0,
    )


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
