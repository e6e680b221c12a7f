"""A test that replaces what compiled code would not notice fails, also on the plain sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cairnfs.namenode import client_sockets, safe_mode
from cairnfs.namenode.server import CALLS_AT_ONCE_MAX, RpcConnection
from cairnfs.namesystem import delete, layered_children, lookup, paths, permissions
from cairnfs.namesystem.paths import FsPath
from cairnfs.store import sqlite_journal
from cairnfs.store.sqlite_file import Folder

UNNOTICED = [
    (lookup, "_walk"),
    (delete, "check_sticky"),  # a function of another compiled module
    (lookup, "FsPath"),
    (paths, "ROOT"),
    ("cairnfs.namenode.server.CALLS_AT_ONCE_MAX",),
    (RpcConnection, "send_reply"),
    ("cairnfs.namenode.server.RpcConnection.send_reply",),
    (FsPath, "parse"),
    (Folder(Path("/tmp/x")), "look"),
]
NOTICED: list[tuple[Any, ...]] = [
    (client_sockets, "ACCEPT_AGAIN_S"),
    ("cairnfs.namenode.safe_mode.COUNT_AGAIN_S",),
    (sqlite_journal, "pwrite"),  # the system's
    (layered_children, "_by_names"),
]


@pytest.mark.parametrize("place", UNNOTICED, ids=range(len(UNNOTICED)))
def test_what_compiled_code_has_in_it_can_not_be_replaced(
    place: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pytest.fail.Exception, match="compiled code would not notice"):
        monkeypatch.setattr(*place, None)
    with (
        monkeypatch.context() as patch,
        pytest.raises(pytest.fail.Exception, match="would not notice"),
    ):
        patch.setattr(*place, None)
    assert permissions.check_sticky is delete.check_sticky
    assert lookup._walk is not None


@pytest.mark.parametrize("place", NOTICED, ids=range(len(NOTICED)))
def test_what_it_looks_up_can(place: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*place, None)
    monkeypatch.undo()
    assert safe_mode.COUNT_AGAIN_S is not None
    assert sqlite_journal.pwrite is not None


@pytest.mark.interpreted
def test_who_is_not_for_compiled_code_may_replace_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookup, "_walk", None)
    assert lookup._walk is None
    monkeypatch.setattr("cairnfs.namenode.server.CALLS_AT_ONCE_MAX", CALLS_AT_ONCE_MAX + 1)
