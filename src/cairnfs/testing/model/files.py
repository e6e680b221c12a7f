"""Calls on files of the model: writing them block by block, reading, joining them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cairnfs.errors import (
    AlreadyBeingCreatedException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    LeaseExpiredException,
)
from cairnfs.namesystem import acls
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import Kind
from cairnfs.testing.model.names import (
    check_not_a_link,
    check_parent,
    existing_file,
    implied_mode,
    parse,
)
from cairnfs.testing.model.nodes import Found, ModelBlock, Node, User, status_of, walk_with_names
from cairnfs.testing.model.permissions import READ, WRITE, check_access, check_ancestor
from cairnfs.testing.model.tree import ModelTree

SOFT_LIMIT_MS = 60_000
BLOCK_SIZE_MIN_BYTES = 1024 * 1024
ACCESS_TIME_PRECISION_MS = 3_600_000


class WriterGone(HdfsError):
    """The file is to be released first; then the call is made again."""

    def __init__(self, file_id: int) -> None:
        super().__init__("its writer is gone")
        self.file_id = file_id


class FileCalls(ModelTree):
    """What writes and reads files, and who holds the lease on them."""

    def create(
        self,
        user: User,
        path: str,
        mode: int = 0o644,
        *,
        overwrite: bool = False,
        create_parents: bool = True,
        replication: int = 3,
        block_size_bytes: int = 128 * 1024 * 1024,
    ) -> FileStatus:
        names = parse(path)
        if ":" in path or (names[:1] == (b".reserved",) and names[1:2] != (b".inodes",)):
            raise InvalidPathException(path)
        found = self._find_to_create(user, path)
        existing = found.target
        check_not_a_link(found)
        check_ancestor(user, found)
        if existing is not None:
            if existing.is_directory:
                raise FileAlreadyExistsException(path)
            if overwrite:
                check_access(user, existing, WRITE)
        elif not create_parents:
            check_parent(found)
        if block_size_bytes < BLOCK_SIZE_MIN_BYTES:
            raise IOException("block size")
        _check_replication(replication)
        if existing is not None:
            if not overwrite:
                raise self._exists_already(user, existing)
            self._check_no_snapshots(existing)
            self._unlink(found)
        else:
            implied = implied_mode(found.nearest.mode)
            for name in found.missing[:-1]:
                made = self._new_directory(user, found.nodes[-1], implied)
                self._add(found, name, made)
                found.nodes.append(made)
        now = self._now()
        parent = found.nodes[-1] if existing is None else found.nodes[-2]
        mode, acl = acls.inherit_default(parent.acl, mode, None, is_directory=False)
        file = Node(self._new_id(), Kind.FILE, mode, user.name, parent.group, now, now, acl)
        file.replication, file.block_size_bytes = replication, block_size_bytes
        file.holder, file.granted_ms = user.holder, now
        above = Found(found.names, found.above)
        self._add(above, found.names[-1], file, inodes=0 if existing else 1)
        return status_of(file)

    def add_block(
        self, user: User, path: str, previous: ModelBlock | None = None, file_id: int = 0
    ) -> tuple[ModelBlock, int]:
        """The block, and where in the file it begins."""
        found, file = self._open_file(user, path, file_id)
        last = file.blocks[-1] if file.blocks else None
        before_last = file.blocks[-2] if len(file.blocks) > 1 else None
        if not _same_block(previous, last):
            after_full = (
                previous is None
                and last is not None
                and not last.is_open
                and last.length_bytes >= file.block_size_bytes
            )
            if not after_full:
                if last is None or not _same_block(previous, before_last):
                    raise IOException("previous does not match")
                if last.length_bytes:
                    raise IOException("not a retry")
                return replace(last), file.length_bytes
        before_bytes = file.space_bytes
        self._finish_last(file, previous)
        given_back_bytes = before_bytes - file.space_bytes
        id = self._new_id()
        block = ModelBlock(id, data=id)
        taken_bytes = file.block_size_bytes * file.replication
        if taken_bytes > given_back_bytes:
            self._check_quotas(found.above, 0, taken_bytes)
        file.blocks.append(block)
        return replace(block), file.length_bytes

    def abandon_block(self, user: User, path: str, block: ModelBlock, file_id: int = 0) -> None:
        _, file = self._open_file(user, path, file_id)
        if file.blocks and file.blocks[-1].is_open and _same_block(block, file.blocks[-1]):
            if file.blocks[-1].length_bytes or file.blocks[-1].is_flushed:
                raise IOException("acknowledged data")
            file.blocks.pop()

    def complete(
        self, user: User, path: str, last: ModelBlock | None = None, file_id: int = 0
    ) -> bool:
        file = self._find_by_id(user, path, file_id).target
        if file is not None and file.is_file and file.holder is None:
            its_last = file.blocks[-1] if file.blocks else None
            if _same_block(last, its_last):
                return True
        _, file = self._open_file(user, path, file_id)
        if file.blocks and file.blocks[-1].is_open and last is None:
            return False
        self._finish_last(file, last)
        file.holder = None
        file.mtime_ms = self._now()
        return True

    def set_replication(self, user: User, path: str, replication: int) -> bool:
        _check_replication(replication)
        found = self._find_following(user, path)
        file = found.target
        if file is not None:
            check_access(user, file, WRITE)
        if file is None or not file.is_file:
            return False
        before = file.space_bytes
        file.replication, old = replication, file.replication
        difference = file.space_bytes - before
        file.replication = old
        self._check_quotas(found.above, 0, difference)
        file.replication = replication
        return True

    def renew_lease(self, user: User) -> None:
        self.renewed[user.holder] = self._now()

    def concat(self, user: User, target: str, sources: list[str]) -> None:
        if not sources:
            raise IllegalArgumentException("no sources")
        for path in (target, *sources):
            if parse(path)[:2] in ((b".reserved", b".inodes"), (b".reserved", b"raw")):
                raise IOException(path)
        found = self._find_following(user, target)
        if found.target is not None:
            check_access(user, found.target, WRITE)
        file = existing_file(found)
        if file.holder is not None:
            raise HadoopIllegalArgumentException("being written")
        parent = found.above[-1]
        moved: list[Node] = []
        for path in sources:
            source_found = self._find_following(user, path)
            if source_found.target is not None:
                check_access(user, source_found.target, READ)
            self._check_may_remove(user, source_found, with_subtree=False)
            source = existing_file(source_found)
            self._check_no_snapshots(source)
            if (
                source_found.above[-1] is not parent
                or source is file
                or source.holder is not None
                or not source.blocks
                or source.block_size_bytes > file.block_size_bytes
            ):
                raise HadoopIllegalArgumentException("not a good source")
            moved.append(source)
        if len({source.id for source in moved}) < len(moved):
            raise HadoopIllegalArgumentException("twice the same")
        more_bytes = sum(
            source.length_bytes * (file.replication - source.replication) for source in moved
        )
        self._check_quotas(found.above, 0, more_bytes)
        for name, node in list(parent.children.items()):
            if any(node is source for source in moved):
                del parent.children[name]
        for source in moved:
            file.blocks += source.blocks
        file.mtime_ms = parent.mtime_ms = self._now()

    def is_file_closed(self, user: User, path: str) -> bool:
        return existing_file(self._find_following(user, path)).holder is None

    def get_block_locations(
        self, user: User, path: str, offset_bytes: int = 0, length_bytes: int = 2**62
    ) -> tuple[Any, ...]:
        """Id, length, whether being written, blocks with offsets, whether the last is complete."""
        if offset_bytes < 0 or length_bytes < 0:
            raise IllegalArgumentException("negative")
        found = self._locate(path)
        self._traverse(user, found, creating=False)
        check_not_a_link(found)
        file = existing_file(found)
        check_access(user, file, READ)
        if found.in_snapshot:  # nobody writes it there
            file = file.copy()
            file.close()
            file.blocks = [block for block in file.blocks if block.length_bytes]
        offsets, end_bytes = [], 0
        for block in file.blocks:
            offsets.append(end_bytes)
            end_bytes += 0 if block.is_open else block.length_bytes
        located = list(zip(file.blocks, offsets, strict=True))
        first = 0
        if file.blocks and file.blocks[0].length_bytes:  # as HDFS, which expects no empty ones
            while first < len(located):
                block, offset = located[first]
                if offset + block.length_bytes > offset_bytes:
                    break
                first += 1
        chosen = located[first : first + 1] + [
            (block, offset)
            for block, offset in located[first + 1 :]
            if offset < offset_bytes + length_bytes
        ]
        answer = (
            file.id,
            file.length_bytes,
            file.holder is not None,
            [(block.id, block.length_bytes, offset) for block, offset in chosen],
            bool(file.blocks) and not file.blocks[-1].is_open,
        )
        if self._now() > file.atime_ms + ACCESS_TIME_PRECISION_MS:
            file.atime_ms = self._now()
        return answer

    def _find_by_id(self, user: User, path: str, file_id: int) -> Found:
        """Who knows the id of a file needs neither its path nor a permission."""
        if not file_id:
            return self._find_following(user, path)
        self._locate(path)
        for names, node in walk_with_names(self.root, ()):
            if node.id == file_id:
                return self._find_names(names)
        return Found((b"gone",), [self.root])

    def _open_file(self, user: User, path: str, file_id: int) -> tuple[Found, Node]:
        found = self._find_by_id(user, path, file_id)
        file = found.target
        if file is None:
            raise FileNotFoundException(path)
        if not file.is_file or file.holder is None or file.holder != user.holder:
            raise LeaseExpiredException(path)
        return found, file

    def _exists_already(self, user: User, file: Node) -> HdfsError:
        if file.holder is None:
            return FileAlreadyExistsException("exists")
        self._check_writer_is_there(user, file)
        return AlreadyBeingCreatedException("being written")

    def _check_writer_is_there(self, user: User, file: Node) -> None:
        """Raise WriterGone if it is not, and another client wants the file."""
        assert file.holder is not None
        heard_ms = max(file.granted_ms, self.renewed.get(file.holder, 0))
        if file.holder != user.holder and self._now() - heard_ms > SOFT_LIMIT_MS:
            raise WriterGone(file.id)

    def _finish_last(self, file: Node, reported: ModelBlock | None) -> None:
        if not file.blocks or not file.blocks[-1].is_open:
            return
        last = file.blocks[-1]
        if not _same_block(reported, last):
            raise IOException("another block")
        length = reported.length_bytes if reported is not None else 0
        if not last.length_bytes <= length <= file.block_size_bytes:
            raise IOException(f"a block of {length} bytes")
        self._extend(last, length)
        last.is_open = last.is_flushed = False

    def _extend(self, block: ModelBlock, length_bytes: int) -> None:
        block.length_bytes = length_bytes
        self.written[block.data] = max(length_bytes, self.written.get(block.data, 0))

    def release(self, file: Node) -> None:
        """Close a file without its writer; a block that nothing is known of goes."""
        if file.blocks and file.blocks[-1].is_open:
            last = file.blocks[-1]
            last.is_open = False
            if not last.length_bytes:
                file.blocks.pop()
        file.holder = None
        file.mtime_ms = self._now()


def _check_replication(replication: int) -> None:
    if not 1 <= replication <= 512:
        raise IOException(f"replication {replication}")


def _same_block(a: ModelBlock | None, b: ModelBlock | None) -> bool:
    return a is b if a is None or b is None else a.id == b.id
