"""Anomalies, each as a scenario that two NameNodes play on one store.

A scenario stops one NameNode between reading and committing, lets the other one run as
far as it can, and lets the first go on.  It returns what went wrong, in words: nothing,
if calls are isolated from each other.  `test_isolation` plays them as the product is;
`test_isolation_needs_validation` with validation off, where each must go wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from cairnfs.config import Control
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    NSQuotaExceededException,
    PathIsNotEmptyDirectoryException,
)
from cairnfs.namesystem.xattr_explanation import Explanation
from cairnfs.testing.faults import COMMIT, COMMITTED, TAKE_CLOCK, WAS_READ
from cairnfs.testing.peers import WAIT_LIMIT_S, Peer

BLOCKED_S = 0.25  # so long we watch a call that may be waiting for a lock

Start = Callable[[], "Future[Any]"]


@dataclass
class Case:
    """Two NameNodes (perhaps the same one twice) and a directory of our own."""

    a: Peer
    b: Peer
    root: str
    control: Control
    shared: bool  # the store: two NameNodes, or one with threads
    alone: bool = True  # structural calls take the clock before they run

    @property
    def is_free(self) -> bool:
        """Whether nobody waits for one who was stopped."""
        return self.shared and self.control is Control.OPTIMISTIC

    @property
    def after_reading(self) -> str:
        """The step at which a call has read and run, and not yet committed."""
        # The locking runner has its row locks then, but not the clock.
        return TAKE_CLOCK if self.control is Control.PESSIMISTIC else COMMIT

    @property
    def before_structural(self) -> str:
        """The same for a call that runs alone, as far as another can still get by."""
        return TAKE_CLOCK if self.is_free and self.alone else self.after_reading

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


@dataclass
class Played:
    """How an interleaving ended: results, or errors in their place."""

    first: list[Any]
    others: list[Any]
    overtaken: bool  # the others were done before the first went on


def interleave(case: Case, step: str, first: Sequence[Start], others: Sequence[Start]) -> Played:
    """Run the first up to a step, the others as far as they can, then the first to its end."""
    case.a.pause_at(step)
    ones = [start() for start in first]
    stopped = run_to(case.a, step, ones)
    twos = [start() for start in others]
    wait(twos, WAIT_LIMIT_S if case.is_free and stopped else BLOCKED_S)
    overtaken = stopped and all(future.done() for future in twos)
    assert overtaken or not (case.is_free and stopped), "nobody should have to wait here"
    case.a.resume(step)
    return Played([outcome(one) for one in ones], [outcome(two) for two in twos], overtaken)


def run_to(peer: Peer, step: str, calls: Sequence[Future[Any]]) -> bool:
    """Wait until somebody stands at the step; False if all calls are done without."""
    while not peer.wait_until_paused(step, 0.01):
        if all(call.done() for call in calls):
            return False
    return True


def outcome(call: Future[Any]) -> Any:
    """The result, or the error if it is one that a client may be told."""
    try:
        return call.result(WAIT_LIMIT_S)
    except HdfsError as error:
        return error


def failed(result: Any) -> bool:
    return isinstance(result, HdfsError)


def names_in(peer: Peer, path: str) -> set[str]:
    return {entry.name.decode() for entry in peer.call("get_listing", path).entries}


# Fuzzy read: what was read is changed before the reader commits.


def fuzzy_read(case: Case) -> list[str]:
    """A user creates a file in a directory that is closed to her meanwhile."""
    directory = case.path("open")
    case.a.call("mkdirs", directory)
    case.a.call("set_permission", directory, 0o777)
    played = interleave(
        case,
        case.after_reading,
        [lambda: case.a.start("create", f"{directory}/f", user="ada")],
        [lambda: case.b.start("set_permission", directory, 0o700)],
    )
    (created,) = played.first
    if failed(created):
        assert isinstance(created, AccessControlException), created
        return []
    return ["created by the permission of before"] if played.overtaken else []


# Phantom: a row appears that a condition was about.


def phantom(case: Case) -> list[str]:
    """A directory that was seen empty is removed, while a file appears in it."""
    directory = case.path("empty")
    case.a.call("mkdirs", directory)
    played = interleave(
        case,
        case.after_reading,
        [lambda: case.a.start("delete", directory)],
        [lambda: case.b.start("create", f"{directory}/f", create_parents=False)],
    )
    (deleted,), (created,) = played.first, played.others
    wrong = []
    if deleted is True and not failed(created):
        wrong.append("both the removal of an empty directory and a creation in it succeeded")
    elif failed(deleted):
        assert isinstance(deleted, PathIsNotEmptyDirectoryException), deleted
        assert not failed(created), created
    else:
        assert isinstance(created, FileNotFoundException), created
    return wrong


# Lost update: two change the same row, each from what was before.


def lost_update(case: Case) -> list[str]:
    path = case.path("shared")
    case.a.call("create", path)
    played = interleave(
        case,
        case.after_reading,
        [lambda: case.a.start("set_owner", path, "ada")],
        [lambda: case.b.start("set_permission", path, 0o600)],
    )
    assert played.first == [None]
    assert played.others == [None]
    status = case.b.call("get_file_info", path)
    wrong = []
    if status.mode != 0o600:
        wrong.append("a change of mode got lost")
    if status.owner != "ada":
        wrong.append("a change of owner got lost")
    return wrong


# Write skew: each is right by itself, both together are not (thesis 004, figure 3.3).


def write_skew(case: Case) -> list[str]:
    """One place is left; four creations at once."""
    directory = case.path("quota")
    case.a.call("mkdirs", directory)
    case.a.call("create", f"{directory}/there")
    case.a.call("set_quota", directory, 3)  # the directory, what is there, and one more
    played = interleave(
        case,
        case.after_reading,
        [lambda name=name: case.a.start("create", f"{directory}/{name}") for name in "wx"],
        [lambda name=name: case.b.start("create", f"{directory}/{name}") for name in "yz"],
    )
    results = played.first + played.others
    refused = [result for result in results if failed(result)]
    assert all(isinstance(error, NSQuotaExceededException) for error in refused), results
    assert len(names_in(case.b, directory)) == len(results) - len(refused) + 1
    usage = case.b.call("get_quota_usage", directory)
    wrong = []
    if len(refused) != 3 or usage.inodes != 3:
        wrong.append(f"{4 - len(refused)} of 4 were let in where one place was left")
    return wrong


# Structure: the tree stays a tree.


def rename_loop(case: Case) -> list[str]:
    """Each directory is moved into the other."""
    a, b = case.path("a"), case.path("b")
    case.a.call("mkdirs", f"{a}/of-a")
    case.a.call("mkdirs", f"{b}/of-b")
    played = interleave(
        case,
        case.before_structural,
        [lambda: case.a.start("rename", a, f"{b}/a")],
        [lambda: case.b.start("rename", b, f"{a}/b")],
    )
    return _find_loop(case, [*played.first, *played.others])


def deep_rename_loop(case: Case) -> list[str]:
    """The same some directories further down, where neither parent is the other's."""
    for name in ("x/a/1/2", "y/b/3/4"):
        case.a.call("mkdirs", case.path(name))
    played = interleave(
        case,
        case.before_structural,
        [lambda: case.a.start("rename", case.path("x/a"), case.path("y/b/3/4/a"))],
        [lambda: case.b.start("rename", case.path("y/b"), case.path("x/a/1/2/b"))],
    )
    moved = [*played.first, *played.others]
    if moved.count(True) == 2:
        return ["two directories were moved into each other"]
    summary = case.b.call("get_content_summary", case.root)
    assert moved.count(True) == 1
    return [] if summary.directories == 9 else ["directories are missing"]


def rename_loop_race(case: Case, rounds: int = 12) -> list[str]:
    """`mv a b/a & mv b a/b`, again and again (JuiceFS issue 4800)."""
    a, b = case.path("a"), case.path("b")
    case.a.call("mkdirs", f"{a}/of-a")
    case.a.call("mkdirs", f"{b}/of-b")
    for _ in range(rounds):
        calls = [
            case.a.start("rename", a, f"{b}/a"),
            case.b.start("rename", b, f"{a}/b"),
        ]
        wrong = _find_loop(case, [outcome(call) for call in calls])
        if wrong:
            return wrong
        if "a" in names_in(case.b, case.root):
            assert case.a.call("rename", f"{a}/b", b)
        else:
            assert case.b.call("rename", f"{b}/a", a)
    return []


def _find_loop(case: Case, moved: list[Any]) -> list[str]:
    left = names_in(case.b, case.root)
    if moved.count(True) == 2:
        return [f"two directories were moved into each other, {sorted(left)} is left"]
    assert sorted(moved) == [False, True], moved
    (top,) = left
    below = "b" if top == "a" else "a"
    assert names_in(case.b, case.path(top)) == {below, f"of-{top}"}
    assert names_in(case.b, case.path(f"{top}/{below}")) == {f"of-{below}"}
    summary = case.b.call("get_content_summary", case.root)
    assert (summary.directories, summary.files) == (5, 0)
    return []


def create_while_deleted(case: Case) -> list[str]:
    """A file is created in a directory that is deleted with everything in it meanwhile."""
    return _create_and_delete(case, first_creates=True)


def delete_while_created(case: Case) -> list[str]:
    """A directory is deleted with everything in it; a file appears there meanwhile."""
    return _create_and_delete(case, first_creates=False)


def _create_and_delete(case: Case, *, first_creates: bool) -> list[str]:
    directory = case.path("doomed")
    case.a.call("mkdirs", f"{directory}/sub")
    create, delete = ("create", f"{directory}/f"), ("delete", directory)
    if first_creates:
        played = interleave(
            case,
            case.after_reading,
            [lambda: case.a.start(*create, create_parents=False)],
            [lambda: case.b.start(*delete, recursive=True)],
        )
        created, deleted = played.first[0], played.others[0]
    else:
        played = interleave(
            case,
            case.before_structural,
            [lambda: case.a.start(*delete, recursive=True)],
            [lambda: case.b.start(*create, create_parents=False)],
        )
        deleted, created = played.first[0], played.others[0]
    assert deleted is True, deleted
    assert case.b.call("get_file_info", directory) is None
    if failed(created):
        assert isinstance(created, FileNotFoundException), created
    wrong = []
    if first_creates and played.overtaken and not failed(created):
        wrong.append("a file was created in a directory that was deleted")
    summary = case.b.call("get_content_summary", case.root)
    if (summary.directories, summary.files) != (1, 0):
        wrong.append(f"what was deleted still counts: {summary}")
    return wrong


def create_while_ancestor_moves(case: Case) -> list[str]:
    """A file is created while a directory above it moves to another place."""
    case.a.call("mkdirs", case.path("x/p/q"))
    case.a.call("mkdirs", case.path("y"))
    played = interleave(
        case,
        case.after_reading,
        [lambda: case.a.start("create", case.path("x/p/q/f"), create_parents=False)],
        [lambda: case.b.start("rename", case.path("x/p"), case.path("y/p"))],
    )
    (created,), (moved,) = played.first, played.others
    assert moved is True, moved
    wrong = []
    if failed(created):
        assert isinstance(created, FileNotFoundException), created
        assert names_in(case.b, case.path("y/p/q")) == set()
    else:
        if played.overtaken:
            wrong.append("a file was created at a path that was gone")
        assert names_in(case.b, case.path("y/p/q")) == {"f"}
    files = 0 if failed(created) else 1
    counted = [case.b.call("get_content_summary", case.path(name)).files for name in "xy"]
    if counted != [0, files]:
        wrong.append(f"the directories count {counted} files instead of {[0, files]}")
    return wrong


# Snapshots: what they have was committed before them, and stays.


def changed_while_snapshotted(case: Case) -> list[str]:
    """A file is changed deep below a directory of which a snapshot is taken meanwhile."""
    return _change_and_take_snapshot(case, first_changes=True)


def snapshotted_while_changed(case: Case) -> list[str]:
    """A snapshot is taken while a file below its directory is changed."""
    return _change_and_take_snapshot(case, first_changes=False)


def _change_and_take_snapshot(case: Case, *, first_changes: bool) -> list[str]:
    directory = case.path("d")
    for name in ("x", "sub/y"):
        case.a.call("create", f"{directory}/{name}", mode=0o644)
    case.a.call("allow_snapshot", directory)
    changes: list[tuple[Any, ...]] = [
        ("set_permission", f"{directory}/x", 0o600),
        ("delete", f"{directory}/sub/y"),
        ("create", f"{directory}/sub/z"),
    ]
    snapshot = ("create_snapshot", directory, "s")
    one, other = case.a, case.b
    if first_changes:
        starts = [lambda each=each: one.start(*each) for each in changes]
        interleave(case, case.after_reading, starts, [lambda: other.start(*snapshot)])
    else:
        starts = [lambda each=each: other.start(*each) for each in changes]
        step = case.before_structural
        interleave(case, step, [lambda: one.start(*snapshot)], starts)
    wrong = []
    shown = [_state_of(peer, f"{directory}/.snapshot/s") for peer in (one, other)]
    if shown[0] != shown[1]:
        wrong.append(f"two NameNodes show {shown} in a snapshot")
    modes, names = shown[0]
    if modes not in ([0o644], [0o600]) or not names <= {"y", "z"}:
        wrong.append(f"a snapshot has what never was: {shown[0]}")
    other.call("set_permission", f"{directory}/x", 0o400)
    other.call("delete", f"{directory}/sub", recursive=True)
    for peer in (one, other):
        if (after := _state_of(peer, f"{directory}/.snapshot/s")) != shown[0]:
            wrong.append(f"a snapshot has changed from {shown[0]} to {after}")
    other.call("delete_snapshot", directory, "s")
    return wrong


def _state_of(peer: Peer, path: str) -> tuple[list[int], set[str]]:
    modes = [entry.mode for entry in peer.call("get_listing", path).entries if entry.name == b"x"]
    return modes, names_in(peer, f"{path}/sub")


# Attributes: what is moved keeps what was decided above it before, and nothing else.


def moved_while_set_above(case: Case) -> list[str]:
    """A file is moved away from below a directory on which an attribute is set meanwhile."""
    return _move_and_set_above(case, "old")


def moved_while_first_set_above(case: Case) -> list[str]:
    """The same where no value was ever set: until then, renames need not look."""
    return _move_and_set_above(case, None)


def _move_and_set_above(case: Case, before: str | None) -> list[str]:
    name = f"user.{case.root.strip('/')}"
    above, target = case.path("above"), case.path("moved")
    case.a.call("create", f"{above}/d/f")
    case.a.call("declare_xattr", name, "stay-with-data")
    if before is not None:
        case.a.call("set_xattr", above, name, before.encode())
    played = interleave(
        case,
        case.after_reading,
        [lambda: case.a.start("rename", f"{above}/d/f", target)],
        [lambda: case.b.start("set_xattr", above, name, b"new")],
    )
    assert played.first == [True], played
    assert played.others == [None], played
    was_set = _explain(case.b, above, name).reasons[0].txid
    moved = _explain(case.b, target, name)
    # One that did not know of any attribute has left no TxID: then it has to have been first.
    is_set_first = was_set < moved.way[-1].renamed or played.overtaken
    expected = b"new" if is_set_first else None if before is None else before.encode()
    wrong = []
    if moved.value != expected:
        wrong.append(f"{moved.value!r} was moved, and not {expected!r}: {moved}")
    if _explain(case.a, target, name) != moved:
        wrong.append("two NameNodes show different values")
    return wrong


def _explain(peer: Peer, path: str, name: str) -> Explanation:
    (found,) = peer.call("explain_xattrs", path, [name])
    assert isinstance(found, Explanation)
    return found


# Reading: all of it is of one moment.


def listing_of_two_moments(case: Case, reads_max: int = 12) -> list[str]:
    """First x is emptied, then y; a listing that shows x full and y empty is of no moment."""
    for name in "xy":
        case.a.call("mkdirs", case.path(name))
    for skip in range(reads_max):
        for name in "xy":
            case.a.call("create", case.path(f"{name}/f"))
        case.a.pause_at(WAS_READ, skip)
        listing = case.a.start("get_listing", case.root)
        stopped = run_to(case.a, WAS_READ, [listing])
        empty_x = case.b.start("delete", case.path("x/f"))
        wait([empty_x], WAIT_LIMIT_S if case.is_free else BLOCKED_S)
        if empty_x.done():
            empty_y = case.b.start("delete", case.path("y/f"))
            wait([empty_y], WAIT_LIMIT_S if case.is_free else BLOCKED_S)
            case.a.resume(WAS_READ)
        else:
            case.a.resume(WAS_READ)
            outcome(empty_x)
            empty_y = case.b.start("delete", case.path("y/f"))
        assert outcome(empty_x) is True
        assert outcome(empty_y) is True
        x, y = outcome(listing).entries
        if (x.children, y.children) == (1, 0):
            return [f"x full and y empty, seen by a listing stopped after {skip + 1} reads"]
        if not stopped:
            break
    return []


def stat_of_half_a_move(case: Case, rounds: int = 10) -> list[str]:
    """A tree moves to and fro; what is seen of it at either place is all of it, or nothing."""
    case.a.call("mkdirs", case.path("here/tree/1/2/3"))
    case.a.call("mkdirs", case.path("there"))
    places = ["here", "there"]
    for _ in range(rounds):
        source, target = places
        move = case.b.start("rename", case.path(f"{source}/tree"), case.path(f"{target}/tree"))
        summaries = []
        while not move.done():
            summaries.append(case.a.call("get_content_summary", case.root))
            time.sleep(0)
        assert outcome(move) is True
        for summary in summaries:
            if summary.directories != 7:
                return [f"{summary.directories} directories instead of 7 while a tree moved"]
        places.reverse()
    return []


def counted_twice(case: Case) -> list[str]:
    """A NameNode is asked while it does not know yet that its commit has succeeded."""
    directory = case.path("counted")
    case.a.call("mkdirs", directory)
    case.a.call("mkdirs", case.path("limited"))
    case.a.call("set_quota", case.path("limited"), 3)
    wrong = []

    def ask(begin: Start, question: Start, fair: Callable[[Any], bool], text: str) -> None:
        case.a.pause_at(COMMITTED)
        change = begin()
        run_to(case.a, COMMITTED, [change])
        answer = question()
        wait([answer], BLOCKED_S)
        case.a.resume(COMMITTED)
        outcome(change)
        result = outcome(answer)
        if not fair(result):
            wrong.append(f"{text}: {result!r}")

    ask(
        lambda: case.a.start("create", f"{directory}/f"),
        lambda: case.a.start("get_content_summary", directory),
        lambda summary: summary.files in (0, 1),
        "files in a directory with one",
    )
    ask(
        lambda: case.a.start("create", case.path("limited/f")),
        lambda: case.a.start("create", case.path("limited/g")),
        lambda created: not failed(created),
        "refused though a place is left",
    )
    ask(
        lambda: case.a.start("delete", f"{directory}/f"),
        lambda: case.a.start("delete", directory),
        lambda deleted: deleted is True,
        "refused though the directory is empty",
    )
    return wrong


def commit_missed(case: Case) -> list[str]:
    """A NameNode reads; before it looks at what it has read, a commit of its own ends.

    What was committed is neither in what was read nor among what is uncommitted, but what
    was created after it is.
    """
    if not case.is_free:
        return []  # nothing is read while somebody commits
    directory = case.path("missed")
    case.a.call("mkdirs", directory)
    case.a.pause_at(COMMIT)
    first = case.a.start("create", f"{directory}/file")
    run_to(case.a, COMMIT, [first])
    second = case.a.start("mkdirs", f"{directory}/directory")
    time.sleep(BLOCKED_S)  # it is run, and waits for the commit before its own
    case.a.pause_at(WAS_READ)
    reading = case.a.start("get_content_summary", directory)
    run_to(case.a, WAS_READ, [reading])
    case.a.resume(COMMIT)
    case.a.pause_at(COMMIT)
    outcome(first)
    case.a.resume(WAS_READ)
    wait([reading], BLOCKED_S)
    case.a.resume(COMMIT)
    outcome(second)
    summary = outcome(reading)
    seen = (summary.files, summary.directories)
    return [] if seen in ((0, 1), (1, 1), (1, 2)) else [f"a directory without the file: {seen}"]


SCENARIOS: list[Callable[[Case], list[str]]] = [
    fuzzy_read,
    phantom,
    lost_update,
    write_skew,
    rename_loop,
    deep_rename_loop,
    rename_loop_race,
    create_while_deleted,
    delete_while_created,
    create_while_ancestor_moves,
    moved_while_set_above,
    moved_while_first_set_above,
    changed_while_snapshotted,
    snapshotted_while_changed,
    listing_of_two_moments,
    stat_of_half_a_move,
    counted_twice,
    commit_missed,
]
