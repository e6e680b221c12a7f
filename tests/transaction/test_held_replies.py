"""Nothing is told that is not committed: neither what is new, nor that something is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.transaction.playing import play

from cairnfs.config import Control
from cairnfs.errors import StoreUnavailableException
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem import files
from cairnfs.namesystem.delete import delete
from cairnfs.namesystem.directories import get_file_info, mkdirs
from cairnfs.namesystem.listings import get_listing
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import rename
from cairnfs.store.batches import Batch
from cairnfs.transaction.calls import Call, Operation

NAMES = [b"a", b"b", b"c", b"d", b"e"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    if request.param == "sqlite":
        return tmp_path
    dsn: str = request.getfixturevalue("postgres_dsn")
    return dsn


def ask(namenode: NameNode, operation: Operation[Any], *arguments: Any) -> asyncio.Future[Any]:
    answer = asyncio.get_running_loop().create_future()

    def tell(result: Any, error: BaseException | None) -> None:
        answer.set_result(result if error is None else error)

    namenode.runner.submit(Call(operation, arguments, tell))
    return answer


async def refuse(batch: Batch) -> int:
    await asyncio.sleep(0)
    raise StoreUnavailableException("the disk is full; nothing was changed")


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
@pytest.mark.parametrize("is_moved", [False, True], ids=["deleted", "moved"])
def test_who_misses_something_hears_of_it_once_that_is_committed(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, turns: int, is_moved: bool
) -> None:
    async def scenario(namenode: NameNode, caller: Caller) -> None:
        top = FsPath.parse("/d")
        await namenode.call(mkdirs, caller, FsPath.parse("/other"), 0o755, None, True)
        for name in NAMES:
            path = FsPath.parse(f"/d/{name.decode()}")
            flags = files.CreateFlag.CREATE.value
            await namenode.call(
                files.create, caller, path, 0o644, None, "me", flags, True, 3, 1 << 20
            )
        status = await namenode.call(get_file_info, caller, FsPath.parse("/d/a"))
        by_id = FsPath.parse(f"/.reserved/.inodes/{status.id}")
        with monkeypatch.context() as context:
            context.setattr(namenode.runner._store, "commit", refuse)  # type: ignore[attr-defined]
            changes = []
            for name in NAMES[:4]:
                path = FsPath.parse(f"/d/{name.decode()}")
                if is_moved:
                    to = FsPath.parse(f"/other/{name.decode()}")
                    changes.append(ask(namenode, rename, caller, path, to))
                else:
                    changes.append(ask(namenode, delete, caller, path, True))
            for _ in range(turns):
                await asyncio.sleep(0)
            listed = ask(namenode, get_listing, caller, top, b"")
            found = ask(namenode, get_file_info, caller, by_id)
            for change in changes:
                assert isinstance(await change, StoreUnavailableException)
            listing, info = await listed, await found
        if not isinstance(listing, StoreUnavailableException):
            assert [entry.name for entry in listing.entries] == NAMES
        if not isinstance(info, StoreUnavailableException):
            assert info is not None
            assert info.id == status.id

    play(place, Control.OPTIMISTIC, scenario)
