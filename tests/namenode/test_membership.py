"""Several NameNodes on one database: who is who, who does what, who is dead."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from cairnfs.namenode import membership as membership_module
from cairnfs.namenode.membership import MemberInfo, PostgresMembership
from cairnfs.store.base import Fenced, Reading
from cairnfs.store.batches import Batch, Put
from cairnfs.store.postgres import PostgresStore, format_database
from cairnfs.transaction.runner import LoneMember

CHILD = """
import asyncio, sys
from cairnfs.namenode.membership import PostgresMembership
from cairnfs.store.base import Fenced
from cairnfs.store.batches import Batch, Put
from cairnfs.store.postgres import PostgresStore

async def commit(store, member, name):
    puts = [Put((0, 1, name), None, 1, b"", False)]
    try:
        return await store.commit(Batch(size=1, now_ms=0, member=member, puts=puts))
    except Fenced:
        return "fenced"

async def main():
    store = await PostgresStore.open(sys.argv[1])
    membership = await PostgresMembership.join(store, "child", 0.1, 2.0)
    owner = await membership.try_acquire("reclaim", 1.5)
    before = membership.next_batch()
    print(membership.id, membership.epoch, owner, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(membership.holds("reclaim"), flush=True)
    print(await commit(store, before, b"before"), flush=True)
    while (membership.id, membership.epoch) == (before.id, before.epoch):
        await asyncio.sleep(0.01)
    print(membership.id, membership.epoch, flush=True)
    print(await commit(store, membership.next_batch(), b"after"), flush=True)
    await membership.leave()
    await store.close()

asyncio.run(main())
"""

Join = Callable[..., Awaitable[PostgresMembership]]


@asynccontextmanager
async def members_of(dsn: str) -> AsyncIterator[tuple[PostgresStore, Join]]:
    """A formatted database, and a way to join it that cleans up."""
    await format_database(dsn, {})
    store = await PostgresStore.open(dsn)
    joined: list[PostgresMembership] = []

    async def join(address: str = "here", **settings: float) -> PostgresMembership:
        joined.append(await PostgresMembership.join(store, address, **settings))
        return joined[-1]

    try:
        yield store, join
    finally:
        for member in joined:
            await member.leave()
        await store.close()


@asynccontextmanager
async def child_of(dsn: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, dsn),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line_of(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().split()


async def expire(store: PostgresStore, member: PostgresMembership) -> None:
    """Let the database believe that this member was silent for a day."""
    sql = "UPDATE members SET heartbeat = heartbeat - interval '1 day' WHERE id = $1 RETURNING 1"
    await store.fetch(sql, member.id)


def put(name: bytes) -> list[Put]:
    return [Put((0, 1, name), None, 1, b"", False)]


def test_members_get_the_lowest_free_id(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (_, join):
            first, second, third = [await join(name) for name in ("a", "b", "c")]
            assert [first.id, second.id, third.id] == [0, 1, 2]
            assert [first.shard, second.shard, third.shard] == [0, 1, 2]
            assert await first.members() == [
                MemberInfo(0, 1, "a"),
                MemberInfo(1, 1, "b"),
                MemberInfo(2, 1, "c"),
            ]
            await second.leave()
            assert [member.id for member in await first.members()] == [0, 2]
            fourth = await join("d")
            assert (fourth.id, fourth.epoch) == (1, 2)

    asyncio.run(check())


def test_joining_at_once_gives_different_ids(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (_, join):
            joined = await asyncio.gather(*(join(str(n)) for n in range(8)))
            assert sorted(member.id for member in joined) == list(range(8))

    asyncio.run(check())


def test_batches_are_counted(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (store, join):
            member = await join()
            batch = Batch(size=1, now_ms=0, member=member.next_batch(), puts=put(b"1"))
            assert batch.member == (0, 1, 1)
            assert await store.commit(batch) == 0
            again = Batch(size=1, now_ms=0, member=member.next_batch(), puts=put(b"2"))
            assert again.member == (0, 1, 2)
            assert await store.commit(again) == 1

    asyncio.run(check())


def test_a_heartbeat_keeps_a_member_alive(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (store, join):
            member = await join(heartbeat_interval_s=0.01, expiry_s=60)
            await expire(store, member)
            while not await member.members():
                await asyncio.sleep(0.01)
            assert (member.id, member.epoch) == (0, 1)

    asyncio.run(check())


def test_who_was_replaced_is_fenced_and_joins_again(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (store, join):
            sleeper = await join("sleeper", heartbeat_interval_s=0.05, expiry_s=60)
            await sleeper.try_acquire("reclaim", 60)
            old = sleeper.next_batch()
            await store.fetch("UPDATE members SET epoch = epoch + 1 RETURNING 1")  # a successor
            with pytest.raises(Fenced):
                await store.commit(Batch(size=1, now_ms=0, member=old, puts=put(b"x")))
            while sleeper.id == 0:
                await asyncio.sleep(0.01)
            assert (sleeper.id, sleeper.shard) == (1, 1)
            assert not sleeper.holds("reclaim")
            fresh = Batch(size=1, now_ms=0, member=sleeper.next_batch(), puts=put(b"x"))
            assert await store.commit(fresh) == 0

    asyncio.run(check())


# Duties.


def test_a_duty_has_one_owner(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (_, join):
            first, second = await join(), await join()
            owners = await asyncio.gather(
                *(member.try_acquire("reclaim", 60) for member in (first, second))
            )
            assert sorted(owners) == [False, True]
            owner, other = (first, second) if owners[0] else (second, first)
            assert owner.holds("reclaim")
            assert not other.holds("reclaim")
            assert not await other.try_acquire("reclaim", 60)
            assert await owner.try_acquire("reclaim", 60)
            assert await other.try_acquire("another", 60)
            await owner.release("reclaim")
            assert not owner.holds("reclaim")
            assert await other.try_acquire("reclaim", 60)
            assert not await owner.try_acquire("reclaim", 60)
            await other.leave()
            assert await owner.try_acquire("reclaim", 60)

    asyncio.run(check())


def test_a_lease_ends_for_its_owner_before_the_database(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen in our process the owner's clock starts before the request was sent."""
    now_s = 1000.0
    monkeypatch.setattr(membership_module, "_now_s", lambda: now_s)

    async def check() -> None:
        nonlocal now_s
        async with members_of(postgres_dsn) as (store, join):
            owner, other = await join(), await join()
            assert await owner.try_acquire("reclaim", 100)
            now_s += 89
            assert owner.holds("reclaim")
            now_s += 2
            assert not owner.holds("reclaim")
            assert not await other.try_acquire("reclaim", 100)  # by its clock there is time left
            await store.fetch("UPDATE duties SET expires = clock_timestamp() RETURNING 1")
            assert await other.try_acquire("reclaim", 100)

    asyncio.run(check())


def test_a_killed_members_duty_is_taken_over(postgres_dsn: str) -> None:
    async def check() -> None:
        async with members_of(postgres_dsn) as (_, join), child_of(postgres_dsn) as child:
            assert await line_of(child) == ["0", "1", "True"]
            member = await join()
            assert member.id == 1
            child.send_signal(signal.SIGKILL)
            while not await member.try_acquire("reclaim", 60):
                await asyncio.sleep(0.02)
            assert member.holds("reclaim")
            while len(await member.members()) > 1:
                await asyncio.sleep(0.02)
            assert ((await join()).id, (await join()).id) == (0, 2)

    asyncio.run(check())


def test_a_zombie_is_fenced(postgres_dsn: str) -> None:
    """Stopped, taken for dead, replaced, and then it goes on as if nothing had happened."""

    async def check() -> None:
        async with members_of(postgres_dsn) as (store, join), child_of(postgres_dsn) as child:
            assert await line_of(child) == ["0", "1", "True"]
            watcher = await join("watcher")
            child.send_signal(signal.SIGSTOP)
            while any(member.id == 0 for member in await watcher.members()):
                await asyncio.sleep(0.02)
            successor = await join("successor")
            assert (successor.id, successor.epoch) == (0, 2)
            while not await successor.try_acquire("reclaim", 60):
                await asyncio.sleep(0.02)
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.send_signal(signal.SIGCONT)
            assert await line_of(child) == ["False"]  # the duty is not its own any more
            assert await line_of(child) == ["fenced"]
            assert await line_of(child) == ["2", "1"]  # joined again, by itself
            assert await line_of(child) == ["0"]  # and may commit
            rows = (await store.read(Reading(keys=[(0, 1, b"before"), (0, 1, b"after")]))).rows
            assert list(rows) == [(0, 1, b"after")]

    asyncio.run(check())


def test_alone_every_duty_is_ones_own() -> None:
    async def check() -> None:
        member = LoneMember()
        assert member.next_batch() is None
        assert await member.try_acquire("reclaim", 1)
        assert member.holds("reclaim")
        await member.leave()

    asyncio.run(check())
