"""Which calls have a reply already: known without a look into the file, and never wrongly."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled.replacing import CompilableMonkeyPatch

from cairnfs.store import known_calls, sqlite
from cairnfs.store.base import Conflict
from cairnfs.store.batches import Batch, StoredReply
from cairnfs.store.known_calls import KnownCalls
from cairnfs.store.sqlite import SqliteStore, format_file

CLIENTS = (b"one", b"two", b"three")


@given(
    st.lists(
        st.tuples(st.sampled_from(CLIENTS), st.sets(st.integers(0, 60), min_size=1, max_size=5))
    )
)
def test_no_call_that_has_a_reply_is_taken_for_new(replies: list[tuple[bytes, set[int]]]) -> None:
    stored: dict[bytes, set[int]] = {client: set() for client in CLIENTS}
    known = KnownCalls(lambda client: stored[client])
    with CompilableMonkeyPatch.context() as patch:
        patch.setattr(known_calls, "CLIENTS_MAX", 2)
        patch.setattr(known_calls, "KNOWN_MAX", 20)
        patch.setattr(known_calls, "KNOWN_OF_CLIENT_MAX", 8)
        for client, numbers in replies:
            calls = sorted(numbers)
            assert not known.are_new(client, calls) or stored[client].isdisjoint(calls)
            stored[client] |= numbers
            known.note(client, calls)
            assert not known.are_new(client, calls)


def test_nobody_looks_for_calls_that_arrive_nearly_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a client's threads do, which count together."""
    format_file(tmp_path / "namespace", {})

    async def run() -> None:
        store = SqliteStore(tmp_path / "namespace")
        looked: list[object] = []
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "has_stored", lambda *question: looked.append(question))
            for turn in range(0, 4000, 10):
                for call in (turn + 4, turn, turn + 9):
                    await store.commit(_replying_to(call))
        assert looked == []
        for call in (0, 9, 3990, 3994):
            with pytest.raises(Conflict):
                await store.commit(_replying_to(call))
        await store.commit(_replying_to(1))  # in between, but never replied to
        await store.close()

    asyncio.run(run())


def _replying_to(call: int) -> Batch:
    return Batch(size=1, now_ms=0, replies=[StoredReply(CLIENTS[0], (call,), b"reply")])
