"""A NameNode that dies at a chosen step, and what has to be true afterwards.

`run_and_die` is a process: it opens a NameNode, makes the calls of a `Load`, a round of
them at once, writes down each answer durably, and is killed with SIGKILL at a step of
its `KillSwitch`.  Steps are: looks at the clock, calls of the store, statements and
writes of SQLite and of its journal, messages to and from PostgreSQL.

`check_survived` looks at what is left, and sends every call again, as a client would.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import selector_events
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from cairnfs.clock import SystemClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, open_store
from cairnfs.store import sqlite_backlog, sqlite_commits, sqlite_journal
from cairnfs.testing.faults import DyingClock, DyingMembership, DyingStore, KillSwitch
from cairnfs.testing.invariants import Namespace, check_invariants, read_namespace
from cairnfs.testing.peers import LocalPeer, PendingCalls

SETTLING_TURNS = 50  # of the loop, in which stores do what they have left for later


class Planned(NamedTuple):
    """One call: its number, and what it is to do."""

    number: int
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Load:
    """Calls on a directory of their own, none of which disturbs another."""

    def __init__(self, root: str, client_id: bytes) -> None:
        self.root = root
        self.client_id = client_id
        self.calls = [
            self._plan(0, "create", f"{root}/new"),
            self._plan(1, "mkdirs", f"{root}/m/a/b"),
            self._plan(2, "rename", f"{root}/src/f", f"{root}/dst/f"),
            self._plan(3, "create", f"{root}/old", overwrite=True),
            self._plan(4, "delete", f"{root}/file"),
            self._plan(5, "rename", f"{root}/src/d", f"{root}/dst/d"),
            self._plan(6, "delete", f"{root}/doomed", recursive=True),
        ]

    @staticmethod
    def _plan(number: int, method: str, *arguments: Any, **options: Any) -> Planned:
        return Planned(number, method, arguments, options)

    def prepare(self, peer: LocalPeer) -> int:
        """Make what the calls work on; returns the inode that is to be overwritten."""
        for name in ("src/d/below", "dst", "doomed/below"):
            peer.call("mkdirs", f"{self.root}/{name}")
        for name in ("src/f", "old", "file", "doomed/f"):
            peer.call("create", f"{self.root}/{name}")
        replaced: int = peer.call("get_file_info", f"{self.root}/old").id
        return replaced

    def effect(self, call: Planned, found: Namespace, replaced: int) -> bool:
        """Whether the call has happened; neither wholly nor not at all is an AssertionError."""
        nodes = found.nodes
        if call.method == "create":
            node = nodes.get(call.arguments[0])
            if call.options:
                assert node is not None, f"{call.arguments} got lost"
                return node.inode.id != replaced
            return node is not None
        if call.method == "mkdirs":
            made = [f"{self.root}/{name}" in nodes for name in ("m", "m/a", "m/a/b")]
            assert len(set(made)) == 1, f"half of {call.arguments}: {made}"
            return made[0]
        if call.method == "rename":
            there = [path in nodes for path in call.arguments]
            assert there.count(True) == 1, f"half of {call.arguments}: {there}"
            return there[1]
        return call.arguments[0] not in nodes


class Plan(NamedTuple):
    """What a process is to do before it dies; `die_at` 0: it lives."""

    url: str
    control: Control
    root: str
    client_id: bytes
    log: Path
    die_at: int
    journaled_calls_max: int = sqlite_commits.JOURNALED_CALLS_MAX


def run_and_die(plan: Plan) -> None:
    """A process.  If it comes to the end it writes down the steps it has seen."""
    sqlite_commits.JOURNALED_CALLS_MAX = plan.journaled_calls_max
    sqlite_backlog.SLICE_ROWS = min(sqlite_backlog.SLICE_ROWS, plan.journaled_calls_max)
    switch = KillSwitch(plan.die_at)
    watch_sqlite(switch)
    watch_journal(switch)
    watch_sockets(switch)
    asyncio.run(_make_calls(plan, switch))
    write_down(plan.log, "steps\t" + "\t".join(switch.steps))


async def _make_calls(plan: Plan, switch: KillSwitch) -> None:
    settings = NameNodeSettings(plan.url, control=plan.control, duties=False)
    opened = await open_store(settings)
    dying = OpenStore(
        DyingStore(opened.store, switch), DyingMembership(opened.membership, switch), opened.meta
    )
    namenode = NameNode(settings, dying, DyingClock(SystemClock(), switch))
    load = Load(plan.root, plan.client_id)
    pending = PendingCalls(namenode, plan.client_id)
    switch.armed = True

    async def make(call: Planned) -> None:
        result = await getattr(pending, call.method)(*call.arguments, **call.options)
        write_down(plan.log, f"{call.number}\t{getattr(result, 'id', result)}")

    await asyncio.gather(*(make(call) for call in load.calls))
    for _ in range(SETTLING_TURNS):
        await asyncio.sleep(0)
    switch.armed = False
    await namenode.stop()


def write_down(log: Path, line: str) -> None:
    with log.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_log(log: Path) -> tuple[dict[int, str], list[str] | None]:
    """Answers by number of call, and the steps if the process came to its end."""
    answers: dict[int, str] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        first, *rest = line.split("\t")
        if first == "steps":
            return answers, rest
        answers[int(first)] = rest[0]
    return answers, None


def check_survived(peer: LocalPeer, load: Load, replaced: int, answers: dict[int, str]) -> int:
    """Every call that was answered is there, every other wholly or not at all.

    Each is then sent again to this NameNode: it is told the same, and nothing happens
    twice.  Returns how many had happened without an answer.
    """
    store = peer.store
    peer.thread.wait(check_invariants(store))
    found: Namespace = peer.thread.wait(read_namespace(store))
    happened = {call.number: load.effect(call, found, replaced) for call in load.calls}
    for number in answers:
        assert happened[number], f"{load.calls[number]} was answered, and is not there"
    after = found
    for call in load.calls:
        before = after
        result = _again(peer, load, call)
        after = peer.thread.wait(read_namespace(store))
        if happened[call.number]:
            assert after == before, f"{call} happened again"
        assert load.effect(call, after, replaced), f"{call} did not happen"
        if call.method == "create":
            path = call.arguments[0]
            assert result.id == after.nodes[path].inode.id
            assert answers.get(call.number, str(result.id)) == str(result.id)
        else:
            assert result is True, f"{call} was told {result}"
    peer.thread.wait(check_invariants(store))
    return sum(happened.values()) - len(answers)


def _again(peer: LocalPeer, load: Load, call: Planned) -> Any:
    key = (load.client_id, call.number)
    return peer.call(call.method, *call.arguments, key=key, is_retry=True, **call.options)


# Steps of others.


def watch_sqlite(switch: KillSwitch) -> None:
    """Every statement, and every write and sync of a file, is a step."""

    def trace(cursor: object, sql: str, bindings: object) -> bool:
        switch.step(f"sql {' '.join(sql.split()[:3])}")
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    base = apsw.vfs_names()[0]

    class DyingFile(apsw.VFSFile):
        def __init__(self, name: Any, flags: Any) -> None:
            super().__init__(base, name, flags)

        def xWrite(self, data: bytes, offset: int) -> None:
            switch.step("write")
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            switch.step("sync")
            super().xSync(flags)

    class DyingFiles(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("dying", base, makedefault=True)

        def xOpen(self, name: Any, flags: Any) -> DyingFile:
            return DyingFile(name, flags)

    switch.files = DyingFiles()  # type: ignore[attr-defined]  # lives as long as the switch


def watch_journal(switch: KillSwitch) -> None:
    """Before each write to the journal, in the middle of it, and before and after each sync."""
    module: Any = sqlite_journal
    pwrite, fdatasync = module.pwrite, module.fdatasync

    def dying_write(descriptor: int, data: bytes, at: int) -> int:
        switch.step("journal")
        middle = len(data) // 2
        pwrite(descriptor, data[:middle], at)
        switch.step("half of a record")
        written: int = pwrite(descriptor, data[middle:], at + middle)
        return middle + written

    def dying_sync(descriptor: int) -> None:
        switch.step("journal sync")
        fdatasync(descriptor)
        switch.step("journaled")

    module.pwrite, module.fdatasync = dying_write, dying_sync


def watch_sockets(switch: KillSwitch) -> None:
    """Before and after a message is sent, and before one is received, are steps."""
    transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write, receive = transport.write, transport._read_ready__data_received

    def dying_write(self: Any, data: bytes) -> None:
        switch.step("send")
        write(self, data)
        switch.step("sent")

    def dying_receive(self: Any) -> None:
        switch.step("receive")
        receive(self)

    transport.write = dying_write
    transport._read_ready__data_received = dying_receive
