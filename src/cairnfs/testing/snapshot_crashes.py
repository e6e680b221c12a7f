"""Calls and background work on snapshots, in a NameNode that dies at a chosen step of them.

`prepare` makes a namespace with snapshots inside each other, clones, a directory that was rolled
back, and what was changed below all of them.  A `Case` is something to be done there; `run_case`
is a process that does it and is killed at a step, `do_case` does it, perhaps again, elsewhere.

Pages are small here, so that reclaiming takes many steps, and the clock stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from google.protobuf.message import Message

from cairnfs.clock import ManualClock
from cairnfs.config import Control, NameNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.namenode import duties, reclaiming
from cairnfs.namenode.cairn_protocol import CAIRN_SERVICE
from cairnfs.namenode.client_protocol import CLIENT_SERVICE
from cairnfs.namenode.local_calls import LocalCall, LocalConnection
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, open_store
from cairnfs.namenode.server import RpcServer
from cairnfs.namesystem import reclaim, schedules, settling
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.schedules import Schedule
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.crashes import watch_journal, watch_sockets, watch_sqlite, write_down
from cairnfs.testing.faults import DyingMembership, DyingStore, KillSwitch
from cairnfs.testing.scratch import ScratchClient
from cairnfs.wire import rpc
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL, CLIENT_PROTOCOL, Method

CLIENT_ID = b"a client retries"
CALL_ID = 7
PAGE = 3
SETTLING_MS = 1000 * reclaiming.SETTLING_MS
MANY = 7  # files in a directory: more than two pages
ROUNDS_MAX = 100
PREPARED_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


class Case(NamedTuple):
    """Something to be done: a call, or a duty; and what is done before, by somebody who lives."""

    before: Callable[[ScratchClient], None]
    method: Method | None = None
    request: Message | None = None
    duty: str = ""


def prepare(fs: ScratchClient) -> None:
    """/k/d and /k/d/n with snapshots, /k/f, a file with snapshots, /k/c, a clone, and /k/r."""
    for name in ("d/sub/deep", "d/n", "d/later", "other", "s"):
        fs.mkdirs(f"/k/{name}")
    for name in ("d/a", "d/sub/b", "d/sub/deep/c", "d/n/x", "f"):
        fs.write(f"/k/{name}", 30, 10)
    for name in ("d", "d/n", "f", "s"):
        fs.allow_snapshot(f"/k/{name}")
    fs.create_snapshots(["/k/d", "/k/f"], "s1")
    fs.write("/k/d/n/y", 5)
    fs.create_snapshot("/k/d/n", "n1")
    fs.rename("/k/d/sub/b", "/k/other/b")
    fs.delete("/k/d/a")
    for number in range(MANY):
        fs.write(f"/k/d/many/{number}", number)
    _append(fs, "/k/f", 20)
    fs.create_snapshots(["/k/d", "/k/f"], "s2")
    fs.delete("/k/d/many", recursive=True)
    fs.truncate("/k/f", 35)
    fs.write("/k/d/sub/deep/e", 8)
    fs.set_permission("/k/d/sub", 0o700)
    fs.create("/k/d/open")
    fs.write_blocks("/k/d/open", 3)
    fs.clone_snapshot("/k/d", "s1", "/k/c")
    fs.delete("/k/c/a")
    fs.write("/k/c/sub/new", 9)
    fs.mkdirs("/k/r/below")
    fs.write("/k/r/below/g", 4)
    fs.allow_snapshot("/k/r")
    fs.create_snapshot("/k/r", "r1")
    for number in range(MANY):
        fs.write(f"/k/r/below/{number}", number)
    fs.rollback_snapshot("/k/r", "r1")
    fs.write("/k/r/below/h", 6)
    for hour in range(4):
        fs.clock.advance(HOUR_MS)
        name = schedules.name_for(_SCHEDULE, fs.clock.now_ms())
        fs.write(f"/k/s/{hour}", hour)
        fs.create_snapshot("/k/s", name)
    fs.clock.advance(HOUR_MS)


_SCHEDULE = Schedule(hourly=2)


def _append(fs: ScratchClient, path: str, length_bytes: int) -> None:
    last = fs.append(path).block
    assert last is not None
    block = last.block
    longer = msgspec.structs.replace(block, length_bytes=block.length_bytes + length_bytes)
    fs.complete(path, longer)


def _nothing(fs: ScratchClient) -> None:
    """Everything is there."""


def _roll_back(fs: ScratchClient) -> None:
    fs.rollback_snapshot("/k/d", "s1")
    fs.write("/k/d/sub/again", 2)


def _delete_snapshots_of_r(fs: ScratchClient) -> None:
    fs.delete_snapshot("/k/r", "r1")


def _new_directory_with_snapshots(fs: ScratchClient) -> None:
    fs.mkdirs("/k/d/later/here")
    fs.allow_snapshot("/k/d/later/here")
    fs.create_snapshot("/k/d/later/here", "l1")


def _set_schedule(fs: ScratchClient) -> None:
    namenode = fs.namenode.namenode
    arguments = (fs.caller, FsPath.parse("/k/s"), _SCHEDULE)
    fs.namenode.wait(namenode.call(schedules.set_schedule, *arguments))


def _delete_first_snapshot(fs: ScratchClient) -> None:
    fs.delete_snapshot("/k/d", "s1")


def _delete_clone(fs: ScratchClient) -> None:
    fs.delete("/k/c", recursive=True)


def _delete_everything(fs: ScratchClient) -> None:
    _roll_back(fs)
    for info in fs.list_snapshottable():
        for snapshot in fs.list_snapshots(info.path):
            fs.delete_snapshot(info.path, snapshot.name.decode())
    for name in ("c", "r", "d", "f", "s"):
        fs.delete(f"/k/{name}", recursive=True)


def _change_since_root_snapshot(fs: ScratchClient) -> None:
    fs.create_root_snapshot("before")
    fs.delete("/k/c", recursive=True)
    fs.rename("/k/other/b", "/k/b")
    fs.set_permission("/k/d/sub", 0o750)
    _append(fs, "/k/f", 7)
    fs.write("/k/new", 11)


def _roll_back_root_snapshot(fs: ScratchClient) -> None:
    _change_since_root_snapshot(fs)
    fs.rollback_root_snapshot("before-rollback")
    fs.write("/k/newer", 3)


def _finalize_root_snapshot(fs: ScratchClient) -> None:
    _roll_back_root_snapshot(fs)
    fs.finalize_root_snapshot()


def _roll_back_to(path: str, name: str) -> tuple[Method, Message]:
    request = cairn_pb2.RollbackSnapshotRequestProto(path=path, snapshotName=name)
    return CAIRN_PROTOCOL.methods["rollbackSnapshot"], request


def _roll_back_root() -> tuple[Method, Message]:
    request = cairn_pb2.RollbackRootSnapshotRequestProto()
    return CAIRN_PROTOCOL.methods["rollbackRootSnapshot"], request


def _finalize_root() -> tuple[Method, Message]:
    request = cairn_pb2.FinalizeRootSnapshotRequestProto()
    return CAIRN_PROTOCOL.methods["finalizeRootSnapshot"], request


def _clone(path: str, name: str, destination: str) -> tuple[Method, Message]:
    request = cairn_pb2.CloneSnapshotRequestProto(
        snapshotRoot=path, snapshotName=name, destination=destination
    )
    return CAIRN_PROTOCOL.methods["cloneSnapshot"], request


def _delete_snapshot(path: str, name: str) -> tuple[Method, Message]:
    request = pb.DeleteSnapshotRequestProto(snapshotRoot=path, snapshotName=name)
    return CLIENT_PROTOCOL.methods["deleteSnapshot"], request


def _delete(path: str) -> tuple[Method, Message]:
    return CLIENT_PROTOCOL.methods["delete"], pb.DeleteRequestProto(src=path, recursive=True)


CASES = {
    "roll back a directory": Case(_nothing, *_roll_back_to("/k/d", "s1")),
    "roll back again": Case(_roll_back, *_roll_back_to("/k/d", "s2")),
    "roll back a file": Case(_nothing, *_roll_back_to("/k/f", "s1")),
    "roll back, refused": Case(_new_directory_with_snapshots, *_roll_back_to("/k/d", "s1")),
    "roll back everything": Case(_change_since_root_snapshot, *_roll_back_root()),
    "finalize the root snapshot": Case(_roll_back_root_snapshot, *_finalize_root()),
    "clone a directory": Case(_nothing, *_clone("/k/d", "s2", "/k/clone")),
    "clone a file": Case(_nothing, *_clone("/k/f", "s2", "/k/clone")),
    "delete a snapshot": Case(_nothing, *_delete_snapshot("/k/d", "s1")),
    "delete a clone": Case(_nothing, *_delete("/k/c")),
    "delete what was rolled back": Case(_delete_snapshots_of_r, *_delete("/k/r")),
    "schedule": Case(_set_schedule, duty="schedules"),
    "reclaim a snapshot": Case(_delete_first_snapshot, duty="reclaim"),
    "reclaim a clone": Case(_delete_clone, duty="reclaim"),
    "reclaim what was rolled back": Case(_roll_back, duty="reclaim"),
    "reclaim the root snapshot": Case(_finalize_root_snapshot, duty="reclaim"),
    "reclaim everything": Case(_delete_everything, duty="reclaim"),
}


# Doing it.


def keyed_call(server: RpcServer, method: Method, *, is_retry: bool) -> LocalCall:
    """A call that says which one it is, and whether it is a retry."""
    superuser = server.namenode.superuser
    connection = LocalConnection(server, superuser)
    header = rpc.CallHeader(CLIENT_ID, int(is_retry), None, b"", None, b"")
    call = rpc.Call(CALL_ID, method, b"", header)
    return LocalCall(connection, call, server.namenode.caller(superuser))


async def do_case(namenode: NameNode, case: Case, clock: ManualClock, *, is_retry: bool) -> str:
    """Have it done; a call's answer as text, errors too."""
    if case.duty == "schedules":
        await namenode.scheduling.step()
        return ""
    if case.duty == "reclaim":
        await _reclaim(namenode, clock)
        return ""
    assert case.method is not None
    server = RpcServer(namenode, (CLIENT_SERVICE, CAIRN_SERVICE))
    call = keyed_call(server, case.method, is_retry=is_retry)
    call.request = case.request
    try:
        response = server.handlers[case.method](call, case.request)
        if response is not None:
            call.answer(response)
        answer = await call.answered
    except HdfsError as error:
        return f"{type(error).__name__}: {error}"
    return (answer if isinstance(answer, bytes) else answer.SerializeToString()).hex()


async def _reclaim(namenode: NameNode, clock: ManualClock) -> None:
    """All of it; what is left to others when a snapshot goes has to settle, so time passes."""
    for _ in range(ROUNDS_MAX):
        clock.advance(SETTLING_MS)
        while not await namenode.membership.try_acquire(duties.RECLAIM, duties.LEASE_S):
            await asyncio.sleep(0.05)  # a dead one has it
        await namenode.duties.reclaim_everything()
        if not await _is_left(namenode):
            return
    raise AssertionError("it does not end")


async def _is_left(namenode: NameNode) -> bool:
    if await namenode.duties.reclaiming.count_unsettled(1):
        return True
    scans = [Scan(table, 0, b"", 1) for table in (Table.ORPHANS, Table.REMOVALS)]
    return any((await namenode.store.read(Reading(scans=scans))).scans.values())


# Dying.


class CasePlan(NamedTuple):
    """What a process is to do before it dies; `die_at` 0: it lives."""

    url: str
    control: Control
    case: str
    now_ms: int
    log: Path
    die_at: int


def use_small_pages() -> None:
    """In this process, from now on."""
    reclaim.RECLAIM_BATCH = PAGE
    reclaiming.PAST_PAGE = PAGE
    reclaiming.SETTLING_PAGE = 1  # or the order would depend on where one has stopped
    settling.SETTLE_BATCH = PAGE


def run_case(plan: CasePlan) -> None:
    """A process.  If it comes to the end it writes down the steps it has seen."""
    use_small_pages()
    switch = KillSwitch(plan.die_at)
    watch_sqlite(switch)
    watch_journal(switch)
    watch_sockets(switch)
    asyncio.run(_run_case(plan, switch))
    write_down(plan.log, "steps\t" + "\t".join(switch.steps))


async def _run_case(plan: CasePlan, switch: KillSwitch) -> None:
    settings = NameNodeSettings(plan.url, control=plan.control, duties=False, safe_mode_threshold=0)
    opened = await open_store(settings)
    dying = OpenStore(
        DyingStore(opened.store, switch), DyingMembership(opened.membership, switch), opened.meta
    )
    clock = ManualClock(plan.now_ms)
    namenode = NameNode(settings, dying, clock)
    switch.armed = True
    answer = await do_case(namenode, CASES[plan.case], clock, is_retry=False)
    write_down(plan.log, f"{CALL_ID}\t{answer}")
    switch.armed = False
    await namenode.stop()
