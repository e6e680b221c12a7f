"""What a caller passes by mistake, or on purpose, hurts nobody but that caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.compiled.modules import WRONG_TYPE

from cairnfs.config import Control
from cairnfs.errors import HdfsError, StandbyException
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

WRONG: list[Callable[[Any], Any]] = [
    lambda fs: fs.set_times("/f", 1.5, -1),
    lambda fs: fs.set_times("/d", 1.5, -1),
    lambda fs: fs.set_times("/f", -1, 2**70),
    lambda fs: fs.set_replication("/f", Decimal(2)),
    lambda fs: fs.set_replication("/f", 2.5),
    lambda fs: fs.set_quota("/d", 10.5),
    lambda fs: fs.create("/new", replication=2.5),
    lambda fs: fs.create("/new", block_size_bytes=2_000_000.5),
    lambda fs: fs.get_listing("/", b"", 1.5),
]


@pytest.mark.parametrize("control", list(Control), ids=lambda control: control.value)
@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_value_of_the_wrong_type_changes_nothing(
    wrong: Callable[[Any], Any], control: Control, tmp_path: Path
) -> None:
    with scratch_namespace(tmp_path, control) as fs:
        fs.write("/f", 10)
        fs.mkdirs("/d")
        before = fs.dump()
        with pytest.raises(WRONG_TYPE):
            wrong(fs)
        assert fs.dump() == before
        assert fs.names("/") == ["d", "f"]


def test_no_name_is_not_the_superuser(fs: ScratchClient) -> None:
    for user in ("", 5, b"alice", "\ud800"):
        with pytest.raises(WRONG_TYPE):
            fs.namenode.client(user)  # type: ignore[arg-type]
    with pytest.raises(WRONG_TYPE):
        fs.namenode.client("alice", groups="staff")  # type: ignore[arg-type]


def test_a_client_that_is_somebody_else_can_not_write_by_guessing(fs: ScratchClient) -> None:
    fs.mkdirs("/secret", mode=0o700)
    bob = fs.user("bob")
    fs.set_owner("/secret", "bob", "staff")
    file = bob.create("/secret/f")
    alice = fs.user("alice")
    alice.client_name = bob.client_name
    with pytest.raises(HdfsError) as refused:
        alice.add_block("/", None, file.id)
    assert "secret" not in str(refused.value)
    bob.complete("/secret/f")


def test_nobody_waits_for_a_namenode_that_has_stopped(tmp_path: Path) -> None:
    answers: list[str] = []

    def call_until_refused(client: ScratchClient, number: int) -> None:
        for step in range(100_000):
            try:
                client.mkdirs(f"/{number}/{step}")
            except StandbyException:
                answers.append("stopped")
                return

    with scratch_namespace(tmp_path) as fs:
        namenode = fs.namenode
        threads = [
            threading.Thread(target=call_until_refused, args=(fs, number)) for number in range(16)
        ]
        for thread in threads:
            thread.start()
        namenode.stop()
        for thread in threads:
            thread.join(60)
        assert answers == ["stopped"] * len(threads)
        namenode.stop()
        fs.check = lambda: None  # type: ignore[method-assign]
