"""The connection breaks while a commit is under way: the runner finds out, callers wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.opening import format_namespace
from cairnfs.store.base import CommitUnknown
from cairnfs.store.batches import Batch
from cairnfs.testing.faults import COMMIT, COMMITTED, SteppedStore
from cairnfs.testing.invariants import check_invariants
from cairnfs.testing.peers import LocalPeer


class ForgetfulStore(SteppedStore):
    """Once, at a step of a commit, it does not know what has become of it."""

    forget_at: str | None = None
    forgotten = 0

    async def step(self, name: str, batch: Batch | None = None) -> None:
        if name == self.forget_at:
            self.forget_at = None
            self.forgotten += 1
            raise CommitUnknown("the line is dead")


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def peer(request: pytest.FixtureRequest, postgres_dsn: str) -> Iterator[LocalPeer]:
    asyncio.run(format_namespace(postgres_dsn))
    settings = NameNodeSettings(postgres_dsn, control=request.param, duties=False)
    with LocalPeer(settings, ForgetfulStore) as peer:
        yield peer


@pytest.mark.parametrize("step", [COMMIT, COMMITTED])
def test_an_unknown_outcome_is_settled(peer: LocalPeer, step: str) -> None:
    """Whether it had taken place or not, it has then, once."""
    calls = [
        ("mkdirs", ("/d",), True),
        ("create", ("/d/f",), None),
        ("renew_lease", (), None),  # relies on nothing that is there
        ("rename", ("/d/f", "/d/g"), True),
        ("rename", ("/d", "/e"), True),
        ("delete", ("/e", True), True),
    ]
    for number, (method, arguments, expected) in enumerate(calls, 1):
        peer.store.forget_at = step
        options = {"recursive": True} if method == "delete" else {}
        result = peer.call(method, *arguments[: 2 - len(options)], **options)
        assert peer.store.forgotten == number
        if expected is not None:
            assert result is expected
        peer.thread.wait(check_invariants(peer.store.inner))
    assert peer.call("get_content_summary", "/").inodes == 1
