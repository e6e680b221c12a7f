"""Work that calls have left, done by whoever is asked: as the duty does it, by several at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import look
from tests.transaction.test_snapshot_crash import Files

from cairnfs.blocks.policies import policy_by_name
from cairnfs.clock import ManualClock
from cairnfs.config import FormatSettings, NameNodeSettings
from cairnfs.namenode import outstanding, reclaiming
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem import reclaim, satisfying, settling, storage_policies
from cairnfs.namesystem.outstanding import WorkItem, WorkKind
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.removals import begin_of, ranges_left
from cairnfs.namesystem.satisfying import Satisfied, get_satisfied
from cairnfs.namesystem.snapshot_records import Removal, removal_key
from cairnfs.testing.dumps import dump_store
from cairnfs.testing.invariants import check_invariants, check_no_past
from cairnfs.testing.scratch import SUPERUSER, ScratchClient
from cairnfs.testing.snapshot_crashes import CASES, PREPARED_MS, SETTLING_MS, prepare

RECLAIMING = frozenset((WorkKind.DETACHED, WorkKind.DELETED_SNAPSHOT, WorkKind.TO_SETTLE))
PAGE = 3
ROUNDS_MAX = 400


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "RECLAIM_BATCH", PAGE)
    monkeypatch.setattr(reclaiming, "PAST_PAGE", PAGE)
    monkeypatch.setattr(settling, "SETTLE_BATCH", PAGE)
    monkeypatch.setattr(satisfying, "SCAN_PAGE", PAGE)
    monkeypatch.setattr(outstanding, "ITEMS_PAGE", 5)
    monkeypatch.setattr(outstanding, "REMOVALS_PAGE", 2)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        dsn: str = request.getfixturevalue("postgres_dsn")
        return dsn
    return f"sqlite://{tmp_path}/namespace.db"


class Several:
    """NameNodes of one store, of which each is asked for the same."""

    def __init__(self, clients: list[ScratchClient]) -> None:
        self.clients = clients
        self.fs = clients[0]
        self._chance = random.Random(3)

    def items(self, kinds: Collection[WorkKind], rows: int) -> tuple[list[WorkItem], int]:
        """All that is listed, and how much has to wait."""
        thread = self._chance.choice(self.clients).namenode
        found: list[WorkItem] = []
        cursor, not_yet = b"", 0
        while True:
            listed = thread.wait(thread.namenode.outstanding.list_page(kinds, cursor, rows))
            found += listed.items
            not_yet += listed.not_yet
            cursor = listed.cursor
            if not cursor:
                return found, not_yet

    def do(self, items: list[WorkItem], rows: int) -> int:
        """Each NameNode does all of it twice, at the same time; how many rows were looked at."""

        def work(fs: ScratchClient) -> int:
            async def twice() -> int:
                work_off = fs.namenode.namenode.outstanding.work_off
                done = await asyncio.gather(*(work_off(items, rows, 10.0) for _ in range(2)))
                return sum(each.rows for each in done)

            return fs.namenode.wait(twice())

        with ThreadPoolExecutor(len(self.clients)) as pool:
            return sum(pool.map(work, self.clients))

    def do_everything(
        self, kinds: Collection[WorkKind] = RECLAIMING, rows: int = 7
    ) -> set[WorkItem]:
        """Until nothing is left; the items there were."""
        seen: set[WorkItem] = set()
        for _ in range(ROUNDS_MAX):
            items, not_yet = self.items(kinds, rows)
            if not items and not not_yet:
                return seen
            self.fs.clock.advance(SETTLING_MS if not_yet else 0)
            self.do(items, rows)
            seen |= set(items)
        raise AssertionError(f"it does not end: {items}")


@contextmanager
def several(url: str, clock: ManualClock) -> Iterator[Several]:
    """Two where the store is shared."""
    settings = NameNodeSettings(url, duties=False, safe_mode_threshold=0)
    with ExitStack() as stack:
        clients = []
        for _ in range(2 if url.startswith("postgres") else 1):
            thread = stack.enter_context(NameNodeThread(settings, clock))
            caller = thread.namenode.caller(SUPERUSER, (), "127.0.0.1")
            clients.append(ScratchClient(thread, caller, clock))
        yield Several(clients)


@pytest.fixture
def namenodes(url: str) -> Iterator[Several]:
    """With snapshots inside each other, clones, a directory that was rolled back."""
    clock = ManualClock(PREPARED_MS)
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    with several(url, clock) as namenodes:
        prepare(namenodes.fs)
        yield namenodes


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case.duty == "reclaim"])
def test_all_do_the_same_at_once(namenodes: Several, case: str) -> None:
    fs = namenodes.fs
    CASES[case].before(fs)
    seen = look(fs, "/k")
    done = namenodes.do_everything()
    assert any(item.kind is WorkKind.DETACHED for item in done)
    assert look(fs, "/k") == seen
    for client in namenodes.clients:
        client.namenode.wait(check_invariants(client.namenode.namenode.store))
    if case == "reclaim everything":
        assert {item.kind for item in done} == RECLAIMING
        assert any(item.end for item in done)  # a deleted snapshot in parts
        fs.namenode.wait(check_no_past(fs.namenode.namenode.store))


@pytest.mark.parametrize("case", ["reclaim a snapshot", "reclaim what was rolled back"])
def test_it_comes_to_what_the_duty_comes_to(tmp_path: Path, case: str) -> None:
    """In every row there is."""
    files = Files(tmp_path)
    url, clock = files.new(), ManualClock(PREPARED_MS)
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    with several(url, clock) as namenodes:
        prepare(namenodes.fs)
        CASES[case].before(namenodes.fs)
    other = files.copy(url)
    with several(url, clock) as namenodes:
        namenodes.fs.reclaim()
    with several(other, clock) as namenodes:
        namenodes.do_everything()
    by_duty, by_items = asyncio.run(dump_store(url)), asyncio.run(dump_store(other))
    differences = by_duty.differences(by_items)
    assert [line for line in differences if "['clock'" not in line] == []


def test_a_call_does_so_much(namenodes: Several) -> None:
    fs = namenodes.fs
    for number in range(20):
        fs.mkdirs(f"/many/{number:02}")
    top = WorkItem(WorkKind.DETACHED, fs.info("/many").id)
    fs.delete("/many", recursive=True)
    work_off = fs.namenode.namenode.outstanding.work_off
    first = fs.namenode.wait(work_off([top], 4, 10.0))
    assert (first.rows, first.done, first.left) == (2 * PAGE, 0, [top])
    none = fs.namenode.wait(work_off([top], 100, 0.0))
    assert none.left == [top]
    last = fs.namenode.wait(work_off([top], 100, 10.0))
    assert (last.rows, last.done, last.left) == (20 - 2 * PAGE, 1, [])
    again = fs.namenode.wait(work_off([top], 100, 10.0))
    assert (again.rows, again.done) == (0, 1)


def test_the_satisfier_s_scan(namenodes: Several) -> None:
    fs = namenodes.fs
    namenodes.do_everything()
    policy = policy_by_name("COLD")
    assert policy is not None
    call = fs.namenode.namenode.call
    before: Satisfied = fs.namenode.wait(call(get_satisfied))
    fs.namenode.wait(
        call(storage_policies.set_storage_policy, fs.caller, FsPath.parse("/k"), "COLD")
    )
    done = namenodes.do_everything([WorkKind.POLICY_SCAN])
    assert {item.kind for item in done} == {WorkKind.POLICY_SCAN}
    after: Satisfied = fs.namenode.wait(call(get_satisfied))
    assert after.scanned - before.scanned == len(look(fs, "/k")) - 1  # each once, by whomever
    assert after.queued > before.queued


def test_ranges_that_are_left() -> None:
    key = removal_key(10, 5)
    assert ranges_left(key, Removal(1, until=10), 10, 5) == []
    assert ranges_left(key, Removal(1, until=10), 22, 5) == [(10, 15), (15, 20), (20, 22)]
    looked = Removal(1, until=13, looked=((14, 16), (19, 30)))
    assert begin_of(key, looked) == 12
    assert ranges_left(key, looked, 40, 5) == [(12, 14), (16, 19), (30, 35), (35, 40)]
    assert ranges_left(key, looked, 18, 5) == [(12, 14), (16, 18)]
