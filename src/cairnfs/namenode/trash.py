"""The emptier: what users have put into their trash is kept for a while, and then gone.

To remove a file, Hadoop's clients move it to /user/NAME/.Trash/Current.  Whenever the emptier
interval has passed, as TrashPolicyDefault counts it, `Current` becomes a checkpoint, a directory
that is named for the moment (yyMMddHHmmss), and checkpoints that are older than the trash
interval are deleted.

Every step looks at the trash of a few users, by the operations that anybody would use: one
detaches a directory, whatever is in it, and the reclaim duty works it off.
"""

from __future__ import annotations

import logging

from cairnfs import trash_names
from cairnfs.clock import Clock
from cairnfs.config import TrashSettings
from cairnfs.errors import FileAlreadyExistsException, HdfsError, UnresolvedPathException
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.delete import delete
from cairnfs.namesystem.listings import get_listing
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import RenameOption, rename2
from cairnfs.transaction.calls import Call, Operation, R
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

TRASH = "trash"

HOMES = FsPath.parse("/user")
TRASH_NAME = trash_names.TRASH.encode()
CURRENT = trash_names.CURRENT.encode()
USERS_PAGE = 20  # whose trash is looked at in one step
LISTING_PAGE = 1000


class Trash:
    """See the module's text.  `step` is for `Duties`."""

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        safe_mode: SafeMode,
        settings: TrashSettings,
        caller: Caller,
    ) -> None:
        """`caller` is the superuser: homes are closed to others."""
        assert settings.emptier_interval_ms, "there is no trash"
        self._runner = runner
        self._clock = clock
        self._safe_mode = safe_mode
        self._caller = caller
        self._interval_ms = int(settings.interval_min * 60_000)
        self._emptier_interval_ms = settings.emptier_interval_ms
        self._round = self._round_now()  # the last one that was begun
        self._after: bytes | None = None  # the last user of a round that is under way
        self._began_ms = 0

    async def step(self) -> int:
        """Look at the trash of some users if it is time to; more than 0 if there are more."""
        if self._safe_mode.is_on:
            return 0
        if self._after is None:
            if self._round_now() <= self._round:
                return 0
            self._round, self._began_ms, self._after = self._round_now(), self._clock.now_ms(), b""
        try:
            users = await self._list(HOMES, self._after, USERS_PAGE)
        except UnresolvedPathException as error:  # a link: homes are somewhere else
            log.warning("no trash is emptied: %s is a link to %s", HOMES, error)
            users = []
        for user in users:
            if user.is_directory:
                await self._empty(HOMES.child(user.name).child(TRASH_NAME))
        self._after = users[-1].name if len(users) == USERS_PAGE else None
        return 0 if self._after is None else 1

    async def _empty(self, root: FsPath) -> None:
        """One user's trash; a failure is this user's alone."""
        try:
            entries = await self._list_all(root)
            for entry in entries:
                if entry.name != CURRENT:
                    await self._delete_if_old(root, entry.name)
            if any(entry.name == CURRENT for entry in entries):
                await self._make_checkpoint(root)
        except HdfsError as error:
            log.warning("the trash %s is left as it is: %s", root, error)

    async def _delete_if_old(self, root: FsPath, name: bytes) -> None:
        path = root.child(name)
        made_ms = trash_names.parse_checkpoint(name.decode(errors="replace"))
        if made_ms is None:
            log.warning("%s is no checkpoint: it stays", path)
        elif self._began_ms - self._interval_ms > made_ms:
            await self._run(delete, path, True)
            log.info("%s is deleted", path)

    async def _make_checkpoint(self, root: FsPath) -> None:
        for name in trash_names.checkpoint_names(self._began_ms):
            checkpoint = root.child(name.encode())
            try:
                await self._run(rename2, root.child(CURRENT), checkpoint, RenameOption.NONE)
            except FileAlreadyExistsException:
                continue
            log.info("%s is a checkpoint", checkpoint)
            return
        log.warning("%s has too many checkpoints of one second", root)

    async def _list_all(self, directory: FsPath) -> list[FileStatus]:
        entries: list[FileStatus] = []
        page = await self._list(directory, b"", LISTING_PAGE)
        while page:
            entries += page
            page = (
                await self._list(directory, page[-1].name, LISTING_PAGE)
                if len(page) == LISTING_PAGE
                else []
            )
        return entries

    async def _list(self, directory: FsPath, after: bytes, count: int) -> list[FileStatus]:
        """A page of a directory; nothing if there is none, or it is a file."""
        listing = await self._run(get_listing, directory, after, count)
        return [] if listing is None else [entry for entry in listing.entries if entry.name]

    async def _run(self, operation: Operation[R], *arguments: object) -> R:
        result: R = await run(self._runner, Call(operation, (self._caller, *arguments)))
        return result

    def _round_now(self) -> int:
        """Rounds are counted by the clock on the wall: whoever takes over goes on with them."""
        return self._clock.now_ms() // self._emptier_interval_ms
