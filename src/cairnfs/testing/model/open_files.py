"""Calls of the model on files that were closed, or whose writers are gone."""

from __future__ import annotations

from cairnfs.errors import (
    AlreadyBeingCreatedException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
)
from cairnfs.namesystem.answers import FileStatus
from cairnfs.testing.model.files import FileCalls
from cairnfs.testing.model.names import existing_file
from cairnfs.testing.model.nodes import ModelBlock, Node, User, status_of
from cairnfs.testing.model.permissions import WRITE, check_access


class OpenFileCalls(FileCalls):
    """Append, flush, truncate, and taking files from their writers."""

    def append(
        self, user: User, path: str, *, to_new_block: bool = False
    ) -> tuple[ModelBlock | None, int, FileStatus]:
        """The last block, if there is something to know of it, where it begins, the file."""
        found = self._find_following(user, path)
        file = found.target
        if file is None:
            raise FileNotFoundException(path)
        if file.is_directory:
            raise FileAlreadyExistsException(path)
        check_access(user, file, WRITE)
        self._check_closed(user, file)
        last = file.blocks[-1] if file.blocks else None
        told = None
        if last is not None and (to_new_block or last.length_bytes < file.block_size_bytes):
            told = last
        if told is not None and not to_new_block:
            room_bytes = file.block_size_bytes - told.length_bytes
            self._check_quotas(found.above, 0, room_bytes * file.replication)
            told.is_open = True
            if told.length_bytes < self.written.get(told.data, 0):
                told.data = self._new_id()  # what came after is needed elsewhere: a copy goes on
        file.holder, file.granted_ms = user.holder, self._now()
        begin = file.visible_bytes - told.length_bytes if told is not None else 0
        return told, begin, status_of(file)

    def truncate(self, user: User, path: str, new_length_bytes: int) -> bool:
        if new_length_bytes < 0:
            raise HadoopIllegalArgumentException("negative")
        found = self._find_following(user, path)
        if found.target is not None:
            check_access(user, found.target, WRITE)
        file = existing_file(found)
        self._check_closed(user, file)
        if new_length_bytes == file.length_bytes:
            return True
        if new_length_bytes > file.length_bytes:
            raise HadoopIllegalArgumentException("larger")
        kept: list[ModelBlock] = []
        left_bytes = new_length_bytes
        for block in file.blocks:
            if not left_bytes:
                break
            if block.length_bytes > left_bytes:  # under a new stamp
                id = self._new_id()
                block = ModelBlock(id, left_bytes, is_open=False, data=block.data)
            kept.append(block)
            left_bytes -= block.length_bytes
        file.blocks = kept
        file.mtime_ms = self._now()
        return True

    def fsync(self, user: User, path: str, length_bytes: int = -1, file_id: int = 0) -> None:
        _, file = self._open_file(user, path, file_id)
        if file.blocks and file.blocks[-1].is_open:
            last = file.blocks[-1]
            last.is_flushed = True
            if last.length_bytes < length_bytes <= file.block_size_bytes:
                self._extend(last, length_bytes)

    def recover_lease(self, user: User, path: str) -> bool:
        file = existing_file(self._find_following(user, path))
        if file.holder is not None:
            check_access(user, file, WRITE)
            self.release(file)
        return True

    def _check_closed(self, user: User, file: Node) -> None:
        if file.holder is None:
            return
        self._check_writer_is_there(user, file)
        raise AlreadyBeingCreatedException("being written")
