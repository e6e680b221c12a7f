"""Files and trees between this machine and the file system, several at a time.

Everything is written under a temporary name beside the final one and renamed when it is
complete: whoever sees the final name sees all of it.  A copy that fails removes what it made.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from cairnfs.client.calls import PathLike
from cairnfs.errors import FileAlreadyExistsException, IllegalArgumentException, IOException

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem

_BUFFER_BYTES = 4 << 20
_PART_BYTES = 64 << 20  # of a file, downloaded by one thread
_T = TypeVar("_T")


class Progress(msgspec.Struct, frozen=True):
    """How far a copy is; `path` is what was worked on last."""

    path: str
    files: int
    files_total: int
    bytes: int
    bytes_total: int


ProgressCallback: TypeAlias = Callable[[Progress], object]


class Copied(msgspec.Struct, frozen=True):
    """What a copy has done."""

    files: int
    bytes: int


class _File(msgspec.Struct, frozen=True):
    """One file to be copied; `name` is its path below what is copied, "" if it is that."""

    name: str
    length: int
    id: int = 0  # of its inode, if it is remote


class _Tree(msgspec.Struct, frozen=True):
    """What is to be copied: directories, parents first, and files."""

    directories: list[str]
    files: list[_File]
    is_directory: bool


def upload(
    fs: FileSystem,
    local: PathLike,
    remote: PathLike,
    *,
    threads: int,
    progress: ProgressCallback | None,
    overwrite: bool,
) -> Copied:
    """See `FileSystem.upload`."""
    source = Path(local)
    tree = _scan_local(source)
    target = _name_target(fs.absolute_path(remote), os.fspath(remote), source.resolve().name)
    existing = fs.get_file_info(target)
    if existing is not None and not overwrite:
        raise FileAlreadyExistsException(f"{target} already exists; say overwrite=True")
    if existing is not None and existing.is_directory != tree.is_directory:
        raise FileAlreadyExistsException(
            f"{target} exists and is {'not ' * tree.is_directory}a directory: it is not replaced"
        )
    temporary = posixpath.join(posixpath.dirname(target), _temporary_name())
    work = _Work(tree, threads, progress)

    def copy(file: _File) -> None:
        with (
            _join(source, file.name).open("rb", buffering=0) as reader,
            fs.create(posixpath.join(temporary, file.name).rstrip("/")) as writer,
        ):
            try:
                buffer = memoryview(bytearray(min(_BUFFER_BYTES, max(1, file.length))))
                while count := reader.readinto(buffer):
                    writer.write(buffer[:count])
                    work.advance(file, count)
            except BaseException:
                writer.abort()  # not to be taken for a whole file
                raise
        work.finish(file)

    try:
        for directory in tree.directories:
            fs.mkdirs(posixpath.join(temporary, directory))
        work.run(copy, tree.files)
        if existing is not None and tree.is_directory:
            _merge_remote(fs, tree, temporary, target)
        else:
            fs.rename(temporary, target, overwrite=overwrite)
    finally:
        fs.delete(temporary, recursive=True)  # nothing is there if all went well
    return work.summary()


def download(
    fs: FileSystem,
    remote: PathLike,
    local: PathLike,
    *,
    threads: int,
    progress: ProgressCallback | None,
    overwrite: bool,
) -> Copied:
    """See `FileSystem.download`."""
    source = fs.absolute_path(remote)
    tree = _scan_remote(fs, source)
    target = Path(_name_target(os.fspath(local), os.fspath(local), posixpath.basename(source)))
    if target.exists() and not overwrite:
        raise FileAlreadyExistsException(f"{target} already exists; say overwrite=True")
    if target.exists() and target.is_dir() != tree.is_directory:
        raise FileAlreadyExistsException(
            f"{target} exists and is {'not ' * tree.is_directory}a directory: it is not replaced"
        )
    temporary = target.parent / _temporary_name()
    work = _Work(tree, threads, progress)

    def copy(part: _Part) -> None:
        path = posixpath.join(source, part.file.name).rstrip("/")
        with fs.open(path) as reader:
            reader.seek(part.start)
            with _join(temporary, part.file.name).open("r+b", buffering=0) as writer:
                writer.seek(part.start)
                left = part.length
                buffer = memoryview(bytearray(min(_BUFFER_BYTES, max(1, left))))
                while left and (count := reader.readinto(buffer[: min(left, len(buffer))])):
                    writer.write(buffer[:count])
                    work.advance(part.file, count)
                    left -= count
                if left:
                    raise IOException(f"{path} has become shorter meanwhile")
            is_whole = part.parts == 1 and reader.length == part.length
        if not is_whole:
            _check_same(fs, path, part.file)
        work.finish(part.file, parts=part.parts)

    try:
        for directory in tree.directories:
            (temporary / directory).mkdir(parents=True, exist_ok=True)
        for file in tree.files:
            path = _join(temporary, file.name)
            path.touch()
            os.truncate(path, file.length)
        work.run(copy, _split(tree.files))
        if target.exists() and tree.is_directory:
            _merge_local(tree, temporary, target)
        else:
            temporary.replace(target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
    return work.summary()


class _Part(msgspec.Struct, frozen=True):
    """A range of a file."""

    file: _File
    start: int
    length: int
    parts: int  # that the file has


def _split(files: Iterable[_File]) -> Iterable[_Part]:
    for file in files:
        starts = range(0, file.length, _PART_BYTES) or [0]
        for start in starts:
            length = min(_PART_BYTES, file.length - start)
            yield _Part(file, start, length, len(starts))


class _Work:
    """Threads at work on a tree, and how far they are.  The first failure ends all."""

    def __init__(self, tree: _Tree, threads: int, progress: ProgressCallback | None) -> None:
        if threads < 1:
            raise IllegalArgumentException(f"at least one thread is needed, not {threads}")
        self._threads = threads
        self._progress = progress
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._parts_done: Counter[str] = Counter()
        self._files = self._bytes = 0
        self._files_total = len(tree.files)
        self._bytes_total = sum(file.length for file in tree.files)

    def run(self, copy: Callable[[_T], None], pieces: Iterable[_T]) -> None:
        """Copy every piece; raises what went wrong first."""

        def attempt(piece: _T) -> None:
            if self._failure is not None:
                return
            try:
                copy(piece)
            except BaseException as error:
                self._failure = self._failure or error

        with ThreadPoolExecutor(self._threads, thread_name_prefix="copy") as pool:
            try:
                for _ in pool.map(attempt, pieces):
                    pass
            except BaseException as error:  # Ctrl-C: the threads are to end, too
                self._failure = error
        if self._failure is not None:
            raise self._failure

    def advance(self, file: _File, count: int) -> None:
        """So much more of a file is copied; raises if all is to end."""
        self._report(file, 0, count)
        if self._failure is not None:
            raise IOException("another file could not be copied")

    def finish(self, file: _File, *, parts: int = 1) -> None:
        """One of a file's parts is complete."""
        with self._lock:
            self._parts_done[file.name] += 1
            is_whole = self._parts_done[file.name] == parts
        if is_whole:
            self._report(file, 1, 0)

    def summary(self) -> Copied:
        return Copied(self._files, self._bytes)

    def _report(self, file: _File, files: int, count: int) -> None:
        with self._lock:
            self._files += files
            self._bytes += count
            if self._progress is not None:
                self._progress(
                    Progress(
                        file.name, self._files, self._files_total, self._bytes, self._bytes_total
                    )
                )


def _scan_local(source: Path) -> _Tree:
    if not source.is_dir():
        return _Tree([], [_File("", _check_regular(source).st_size)], is_directory=False)
    directories, files = [""], []
    for folder, folders, names in os.walk(source, onerror=_raise, followlinks=True):
        below = Path(folder).relative_to(source)
        for name in sorted(folders):
            _check_no_loop(source, Path(folder, name))
            directories.append((below / name).as_posix())
        for name in sorted(names):
            length = _check_regular(Path(folder, name)).st_size
            files.append(_File((below / name).as_posix(), length))
    return _Tree(directories, files, is_directory=True)


def _check_no_loop(source: Path, folder: Path) -> None:
    """Links to directories are followed, as Hadoop's client does, but not for ever."""
    if not folder.is_symlink():
        return
    above = folder
    while above != source:
        above = above.parent
        if above.samefile(folder):
            raise IOException(f"{folder} is a symbolic link to {above}, which it is in")


def _check_regular(path: Path) -> os.stat_result:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise IllegalArgumentException(f"{path} is neither a file nor a directory")
    return status


def _raise(error: OSError) -> None:
    raise error


def _scan_remote(fs: FileSystem, source: str) -> _Tree:
    root = fs.get_file_status(source)
    if not root.is_directory:
        return _Tree([], [_File("", root.length_bytes, root.id)], is_directory=False)
    directories, files = [""], []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for found in fs.list_status_iter(posixpath.join(source, below)):
            name = posixpath.join(below, found.name)
            status = fs.get_file_status(found.path) if found.is_symlink else found
            if not status.is_directory:
                files.append(_File(name, status.length_bytes, status.id))
            elif found.is_symlink:
                raise IOException(f"{found.path} is a symbolic link to a directory")
            else:
                directories.append(name)
                waiting.append(name)
    return _Tree(directories, files, is_directory=True)


def _check_same(fs: FileSystem, path: str, file: _File) -> None:
    """What was read so far is of one version: the file that was found at first is still there."""
    if fs.get_file_status(path).id != file.id:
        raise IOException(f"{path} was replaced while it was copied: copy it again")


def _merge_remote(fs: FileSystem, tree: _Tree, temporary: str, target: str) -> None:
    """Move complete files into a directory that exists, in place of those of their names."""
    for directory in tree.directories:
        fs.mkdirs(posixpath.join(target, directory).rstrip("/"))
    for file in tree.files:
        fs.rename(
            posixpath.join(temporary, file.name), posixpath.join(target, file.name), overwrite=True
        )


def _merge_local(tree: _Tree, temporary: Path, target: Path) -> None:
    for directory in tree.directories:
        (target / directory).mkdir(parents=True, exist_ok=True)
    for file in tree.files:
        (temporary / file.name).replace(target / file.name)


def _name_target(target: str, as_given: str, name: str) -> str:
    """`target`, or what is called `name` in it, if it was given with a slash at its end."""
    return os.path.join(target, name) if as_given.endswith("/") else target


def _temporary_name() -> str:
    return f"._COPYING_{uuid.uuid4().hex[:16]}"


def _join(folder: Path, name: str) -> Path:
    return folder / name if name else folder
