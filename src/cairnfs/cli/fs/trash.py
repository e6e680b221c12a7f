"""The trash of Hadoop's shell: what is removed goes to ~/.Trash/Current first.

`expunge` gives what is there a name by the time, and deletes what has had one for longer than
the server's trash interval.
"""

from __future__ import annotations

import posixpath
import time
from typing import TYPE_CHECKING

from cairnfs.errors import FileAlreadyExistsException, HdfsError, IOException
from cairnfs.trash_names import CURRENT, TRASH, checkpoint_names, parse_checkpoint

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem

MODE = 0o700


class Trash:
    """The trash of the user in whose name a file system is open."""

    def __init__(self, fs: FileSystem, interval_minutes: int = 0) -> None:
        """The interval is the server's; the one given is for servers that have none."""
        self._fs = fs
        interval_minutes = fs.get_server_defaults().trash_interval_minutes or interval_minutes
        self._interval_ms = interval_minutes * 60_000
        self.root = posixpath.join(fs.home_directory, TRASH)

    def move(self, path: str) -> str | None:
        """Put something into the trash; where it is then, None if it is not for the trash."""
        if self._interval_ms <= 0 or f"{path}/".startswith(f"{self.root}/"):
            return None
        if f"{posixpath.dirname(self.root)}/".startswith(f"{path.rstrip('/')}/"):
            raise IOException(
                f'Cannot move "{self._fs.url}{path}" to the trash, as it contains the trash.'
                " Consider using -skipTrash option"
            )
        target = f"{self.root}/{CURRENT}{path}"
        try:
            target = self._make_room(target)
            while self._fs.exists(target):
                target += str(time.time_ns() // 1_000_000)
            self._fs.rename(path, target, overwrite=False, to_trash=True)
        except FileNotFoundError:
            raise
        except HdfsError as error:
            raise IOException(
                f"Failed to move {path} to trash {target}: {error}."
                " Consider using -skipTrash option"
            ) from None
        return target

    def _make_room(self, target: str) -> str:
        """Make the directory for `target`, beside a file that is in the way if need be."""
        while True:
            parent, name = posixpath.split(target)
            try:
                self._fs.mkdirs(parent, MODE)
            except (FileAlreadyExistsException, NotADirectoryError):
                obstacle = parent
                while not self._fs.exists(obstacle):
                    obstacle = posixpath.dirname(obstacle)
                stamp = str(time.time_ns() // 1_000_000)
                target = posixpath.join(parent.replace(obstacle, obstacle + stamp, 1), name)
                continue
            return target

    def checkpoint(self) -> None:
        """Give what is in the trash a name by the time."""
        current = f"{self.root}/{CURRENT}"
        if not self._fs.exists(current):
            return
        names = checkpoint_names(time.time_ns() // 1_000_000)
        for name in names:
            try:
                self._fs.rename(current, f"{self.root}/{name}", overwrite=False)
            except FileAlreadyExistsException:
                continue
            return
        raise IOException(f"Failed to checkpoint trash: {self.root}/{names[0]}")

    def expunge(self, *, immediately: bool = False) -> None:
        """Delete what was given a name longer ago than the interval, or all that was."""
        if not self._fs.exists(self.root):
            return
        now_ms = time.time() * 1000
        for status in self._fs.list_status(self.root):
            made_ms = parse_checkpoint(status.name)
            if made_ms is None:
                continue
            if immediately or now_ms - self._interval_ms > made_ms:
                self._fs.delete(status.path, recursive=True)
