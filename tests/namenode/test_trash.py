"""The emptier: checkpoints are made and deleted in time, by one NameNode, in small steps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cairnfs.clock import ManualClock
from cairnfs.config import FormatSettings, NameNodeSettings, TrashSettings
from cairnfs.namenode import trash as trash_module
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace, sqlite_url
from cairnfs.namenode.trash import TRASH, Trash
from cairnfs.testing.scratch import SUPERUSER, ScratchClient
from cairnfs.trash_names import checkpoint_names

MINUTE_MS = 60_000
SETTINGS = TrashSettings(interval_min=60, checkpoint_interval_min=20)


class Emptied(ScratchClient):
    """A namespace with an emptier that is driven by hand."""

    trash: Trash

    def empty(self) -> int:
        """Let it do all that is due; how many steps it took."""
        steps = 1
        while self.namenode.wait(self.trash.step()):
            steps += 1
        return steps

    def pass_minutes(self, minutes: float) -> None:
        self.clock.advance(int(minutes * MINUTE_MS))
        self.empty()

    def put(self, user: str, name: str) -> None:
        """As a client removes something."""
        self.mkdirs(f"/user/{user}/.Trash/Current", 0o700)
        self.write(f"/user/{user}/.Trash/Current/{name}")


@contextmanager
def emptied(directory: Path, settings: TrashSettings = SETTINGS) -> Iterator[Emptied]:
    clock = ManualClock(1_700_000_400_000)  # a multiple of twenty minutes
    assert clock.now_ms() % (20 * MINUTE_MS) == 0
    url = sqlite_url(directory / "namespace")
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    with NameNodeThread(NameNodeSettings(url, duties=False, trash=settings), clock) as thread:
        namenode = thread.namenode
        client = Emptied(thread, namenode.caller(SUPERUSER, (), "127.0.0.1"), clock)
        client.trash = Trash(
            namenode.runner, clock, namenode.safe_mode, settings, namenode.caller(SUPERUSER)
        )
        yield client
        client.check()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Emptied]:
    with emptied(tmp_path) as made:
        yield made


def test_current_becomes_a_checkpoint_and_goes_after_the_interval(client: Emptied) -> None:
    client.put("ada", "first")
    client.pass_minutes(19)
    assert client.names("/user/ada/.Trash") == ["Current"]
    client.pass_minutes(1)
    checkpoint = checkpoint_names(client.clock.now_ms())[0]
    assert client.names("/user/ada/.Trash") == [checkpoint]
    assert client.names(f"/user/ada/.Trash/{checkpoint}") == ["first"]
    client.put("ada", "second")
    client.pass_minutes(20)
    assert len(client.names("/user/ada/.Trash")) == 2
    client.pass_minutes(40)  # the first is 60 minutes old: not more
    assert checkpoint in client.names("/user/ada/.Trash")
    client.pass_minutes(20)
    (second,) = client.names("/user/ada/.Trash")
    assert client.names(f"/user/ada/.Trash/{second}") == ["second"]
    client.pass_minutes(20)
    assert client.names("/user/ada/.Trash") == []


def test_nothing_is_done_twice_in_one_interval(client: Emptied) -> None:
    client.put("ada", "file")
    client.pass_minutes(20)
    client.put("ada", "later")
    client.empty()
    client.pass_minutes(19)
    assert "Current" in client.names("/user/ada/.Trash")


def test_checkpoints_of_one_second_get_a_number(client: Emptied) -> None:
    client.put("ada", "file")
    client.clock.advance(20 * MINUTE_MS)
    taken = checkpoint_names(client.clock.now_ms())[0]
    client.mkdirs(f"/user/ada/.Trash/{taken}")
    client.mkdirs(f"/user/ada/.Trash/{taken}-1")
    client.empty()
    assert client.names("/user/ada/.Trash") == [taken, f"{taken}-1", f"{taken}-2"]
    client.pass_minutes(80)
    assert client.names("/user/ada/.Trash") == []


def test_what_is_no_checkpoint_stays(client: Emptied, caplog: pytest.LogCaptureFixture) -> None:
    client.mkdirs("/user/ada/.Trash/keep me")
    client.mkdirs("/user/ada/.Trash/991399999999")  # no such month
    client.write("/user/bob/.Trash")  # not even a directory
    client.write("/user/eve")
    client.mkdirs("/user/none")
    client.put("zoe", "file")
    client.pass_minutes(20)
    client.pass_minutes(80)
    assert client.names("/user/ada/.Trash") == ["991399999999", "keep me"]
    assert client.exists("/user/bob/.Trash")
    assert client.names("/user/zoe/.Trash") == []
    assert "/user/ada/.Trash/keep me is no checkpoint: it stays" in caplog.text


def test_one_users_trouble_is_not_anothers(client: Emptied) -> None:
    client.create_symlink("/elsewhere", "/user/ada/.Trash")
    client.put("bob", "file")
    client.pass_minutes(20)
    assert client.names("/user/bob/.Trash") != ["Current"]


def test_homes_may_be_somewhere_else(client: Emptied) -> None:
    client.create_symlink("/home", "/user")
    client.pass_minutes(20)
    client.pass_minutes(20)


def test_without_homes_there_is_nothing_to_do(client: Emptied) -> None:
    client.pass_minutes(20)
    assert client.names("/") == []


def test_a_step_looks_at_few_users(client: Emptied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trash_module, "USERS_PAGE", 3)
    for number in range(7):
        client.put(f"user{number}", "file")
    client.clock.advance(20 * MINUTE_MS)
    assert client.empty() == 3
    for number in range(7):
        assert client.names(f"/user/user{number}/.Trash") != ["Current"]


def test_safe_mode_keeps_it_waiting(client: Emptied) -> None:
    client.put("ada", "file")
    safe_mode = client.namenode.namenode.safe_mode
    safe_mode.enter()
    client.pass_minutes(20)
    safe_mode.leave()
    assert client.names("/user/ada/.Trash") == ["Current"]
    client.empty()
    assert client.names("/user/ada/.Trash") != ["Current"]


@pytest.mark.parametrize(
    ("settings", "minutes"),
    [
        (TrashSettings(0, 10), 0),
        (TrashSettings(30, 0), 30),
        (TrashSettings(30, 60), 30),  # as TrashPolicyDefault: not more than the interval
        (TrashSettings(30, 10), 10),
        (TrashSettings(0.5), 0.5),
    ],
)
def test_the_emptier_interval(settings: TrashSettings, minutes: float) -> None:
    assert settings.emptier_interval_ms == minutes * MINUTE_MS


def test_without_an_interval_there_is_no_such_duty(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "namespace")
    asyncio.run(format_namespace(url))
    with NameNodeThread(NameNodeSettings(url, duties=False)) as thread:
        assert TRASH not in thread.namenode.duties.names
    settings = NameNodeSettings(url, duties=False, trash=SETTINGS)
    with NameNodeThread(settings) as thread:
        assert TRASH in thread.namenode.duties.names
