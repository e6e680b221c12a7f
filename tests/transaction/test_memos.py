"""A memo lives until one of its rows changes, and leaves nothing behind."""

from __future__ import annotations

import pytest

from cairnfs.store.schema import Key
from cairnfs.transaction import memos as memos_module
from cairnfs.transaction.memos import Memo, Memos

A: Key = (0, 1, b"a")
B: Key = (0, 1, b"b")
C: Key = (0, 2, b"c")


def memo(value: str, *keys: Key) -> Memo:
    return Memo(value, dict.fromkeys(keys))


def test_a_memo_is_gone_when_one_of_its_rows_changes() -> None:
    memos = Memos()
    memos.note("ab", memo("of a and b", A, B))
    memos.note("bc", memo("of b and c", B, C))
    memos.rows_changed([A])
    assert memos.find("ab") is None
    assert memos.find("bc") == memo("of b and c", B, C)
    memos.rows_changed([C, B])
    assert memos.find("bc") is None
    assert not memos._by_key


def test_a_newer_memo_takes_the_place_of_an_older_one() -> None:
    memos = Memos()
    memos.note("x", memo("old", A))
    memos.note("x", memo("new", B))
    memos.rows_changed([A])
    assert memos.find("x") == memo("new", B)


def test_there_are_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos_module, "MEMOS_MAX", 3)
    memos = Memos()
    for number in range(10):
        memos.note(number, memo("", (0, number, b""), A))
        assert len(memos._memos) <= 3
        assert len(memos._by_key) <= 4
    assert memos.find(9) is not None
