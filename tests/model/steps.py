"""Random steps in a small universe, so that they get in each other's way.

A step is plain data: it can be printed, replayed and left out.  What it says
about open files and blocks it says by reference to the steps before it, so
that it still means something when some of those are left out.

Whoever chooses is given as `Choose`: a seeded generator, or Hypothesis.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from cairnfs.namesystem.inodes import AclEntry
from cairnfs.testing.model import DONT_SET, User

T = TypeVar("T")

SUPERUSER = "hdfs"
USERS = {
    "hdfs": User("hdfs", frozenset({"supergroup"}), is_superuser=True),
    "alice": User("alice", frozenset({"staff"})),
    "bob": User("bob", frozenset({"staff", "dev"})),
    "carol": User("carol", frozenset({"guests"})),
}
NAMES = ("a", "b", "c")
ODD_NAMES = ("ü€𐍈", "x" * 255, "é" * 128, ".snapshot", "a:b", ".a", "...", "Z")
ODD_PATHS = (
    "",
    "a",
    "/a/./b",
    "/a/../b",
    "/a\0b",
    "//a//b/",
    "/.reserved",
    "/\ud800",
    "/.reserved/b",
)
MODES = (0o755, 0o777, 0o1777, 0o700, 0o750, 0o000, 0o070)
MB = 1024 * 1024
BLOCK_SIZES = (MB, MB, 2 * MB)


class Choose(Protocol):
    """Makes every choice."""

    def among(self, options: Sequence[T]) -> T: ...

    def number(self, low: int, high: int) -> int: ...


class RandomChoose:
    """Choices of a seeded generator."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def among(self, options: Sequence[T]) -> T:
        return self._generator.choice(options)

    def number(self, low: int, high: int) -> int:
        return self._generator.randint(low, high)


@dataclass(frozen=True)
class FileRef:
    """The file that was opened so many creations ago."""

    back: int


@dataclass(frozen=True)
class BlockRef:
    """A block of such a file, counted from its end, reported with a length."""

    back: int
    from_end: int
    length_bytes: int


@dataclass(frozen=True)
class InodePath:
    """/.reserved/.inodes/ID of such a file, and something below."""

    back: int
    below: str


@dataclass(frozen=True)
class PathOf:
    """The path by which such a file was created."""

    back: int


@dataclass(frozen=True)
class WriterOf:
    """The user who created such a file."""

    back: int


@dataclass(frozen=True)
class Step:
    """One call, or one thing done to the NameNodes."""

    operation: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    user: str | WriterOf = SUPERUSER
    namenode: int = 0

    def __str__(self) -> str:
        parts = [repr(each) for each in self.arguments]
        parts += [f"{name}={value!r}" for name, value in self.options]
        where = f" @{self.namenode}" if self.namenode else ""
        return f"{self.user}: {self.operation}({', '.join(parts)}){where}"


@dataclass(frozen=True)
class Batch:
    """Calls that are made at the same time."""

    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()  # made one after the other, first
    slow: bool = False  # on a store that takes its time

    def __str__(self) -> str:
        first = "".join(f"{step}; " for step in self.before)
        return first + " || ".join(map(str, self.steps))


@dataclass
class World:
    """What the chooser may know of the state, to choose what matters."""

    paths: list[str] = field(default_factory=lambda: ["/"])
    usage: dict[str, tuple[int, int]] = field(default_factory=dict)  # inodes, space of directories
    scenes: tuple[Any, ...] = ()  # that batches are to play; all if none is named


def make_step(
    choose: Choose, world: World, namenodes: int = 1, batches_percent: int = 20
) -> Step | Batch:
    """Any step."""
    if choose.number(0, 99) < batches_percent:
        return make_batch(choose, world, namenodes)
    kind = choose.number(0, 79)
    if kind < 2:
        return Step("advance", (choose.among((1, 1000, 61_000, 3_700_000)),))
    if kind < 4:
        return Step("reclaim", namenode=choose.number(0, namenodes - 1))
    if kind < 5 and choose.number(0, 4) == 0:
        return Step("restart", namenode=choose.number(0, namenodes - 1))
    if kind < 7:
        return Step("retry", namenode=choose.number(0, namenodes - 1))
    return make_call(choose, world, namenodes, choose.among(WEIGHTED))


def make_call(choose: Choose, world: World, namenodes: int, operation: str) -> Step:
    """One call of one operation."""
    step = globals()[f"_{operation}"](choose, world)
    user = step.user if isinstance(step.user, WriterOf) else _user(choose, operation)
    return Step(operation, step.arguments, step.options, user, choose.number(0, namenodes - 1))


def make_batch(choose: Choose, world: World, namenodes: int) -> Batch:
    """Calls at the same time around one directory, so that they meet."""
    directories = sorted(world.usage) or ["/"]
    focus = choose.among(directories) if choose.number(0, 3) else _fresh_path(choose)
    near = World([path for path in world.paths if _is_near(path, focus)] or ["/"], world.usage)
    before: tuple[Step, ...] = ()
    if world.scenes or choose.number(0, 2):
        before, calls = choose.among(world.scenes or SCENES)(choose, near, focus)
        if choose.number(0, 2) == 0:
            calls.append(_near_call(choose, near, focus))
    else:
        size = choose.among((2, 2, 3, 3, 4, 4, 5, 6))
        calls = [_near_call(choose, near, focus) for _ in range(size)]
    spread = choose.number(0, 3)  # 0: all to one NameNode
    return Batch(
        tuple(
            replace(call, namenode=choose.number(0, namenodes - 1) if spread else 0)
            for call in calls[:BATCH_MAX]
        ),
        before,
        slow=choose.number(0, 2) > 0,
    )


# Scenes: what has to be done before, and the calls that then meet.

Scene = tuple[tuple[Step, ...], list[Step]]


def last_place(choose: Choose, near: World, focus: str) -> Scene:
    """One inode or one block more is allowed (thesis 004, figure 3.3); several want it."""
    inodes, space_bytes = near.usage.get(focus, (1, 0))
    if choose.number(0, 2):
        quota = Step("set_quota", (focus, inodes + choose.among((1, 1, 2)), DONT_SET, None))
        makers = ("create", "mkdirs", "create_symlink")
        calls = []
        for _ in range(choose.among((2, 3, 4, 4))):
            name, where = choose.among(makers), _join(focus, choose.among((*NAMES, "d", "e")))
            calls.append(Step(name, ("/t", where) if name == "create_symlink" else (where,)))
        if choose.number(0, 2) == 0:
            calls.append(Step("delete", (_join(focus, choose.among(NAMES)),), RECURSIVE))
        if choose.number(0, 2) == 0:
            calls.append(Step("rename", (choose.among(near.paths), focus)))
        return (quota,), calls
    quota = Step("set_quota", (focus, DONT_SET, space_bytes + 3 * MB, None))
    calls = [_on_open_file(choose, near, "add_block", MB) for _ in range(choose.among((2, 3)))]
    calls.append(Step("set_replication", (choose.among(near.paths), choose.number(1, 4))))
    return (quota,), calls


def loop(choose: Choose, near: World, focus: str) -> Scene:
    """Directories that move into each other."""
    others = [path for path in near.usage if path not in ("/", focus)] or ["/a"]
    calls = []
    for _ in range(choose.among((1, 1, 2))):
        other = choose.among(others)
        calls.append(Step("rename", (focus, _join(other, choose.among(NAMES)))))
        calls.append(Step("rename", (other, _join(focus, choose.among(NAMES)))))
    return (), calls


def vanishing_parent(choose: Choose, near: World, focus: str) -> Scene:
    """A directory goes away, or elsewhere, while something is put into it."""
    above = focus[: focus.rfind("/", 1)] if focus.count("/") > 1 else focus
    gone = choose.among((focus, above))
    target = _join(choose.among(sorted(near.usage)), choose.among(NAMES))
    removals = [
        Step("delete", (gone,), RECURSIVE),
        Step("delete", (gone,)),
        Step("rename", (gone, target)),
        Step("rename2", (choose.among(near.paths), gone, 1)),
        Step("set_permission", (gone, 0o700)),
    ]
    child = _join(focus, choose.among((*NAMES, "d")))
    additions = [
        Step("create", (child,), (), choose.among(MOSTLY_SUPERUSER)),
        Step("mkdirs", (_join(child, "b"),), (), choose.among(MOSTLY_SUPERUSER)),
        Step("rename", (choose.among(near.paths), child)),
        _on_open_file(choose, near, "add_block", MB),
        Step("get_content_summary", (focus,)),
        Step("get_listing", (focus,)),
    ]
    calls = [choose.among(removals)]
    calls += [choose.among(additions) for _ in range(choose.among((1, 2, 3, 4)))]
    return (), calls


def one_file(choose: Choose, near: World, focus: str) -> Scene:
    """Everybody wants something of the same file."""
    files = [path for path in near.paths if path not in near.usage] or [_join(focus, "a")]
    file = choose.among(files)
    other = _join(focus, choose.among(NAMES))
    options = [
        Step("rename", (file, other)),
        Step("rename2", (file, other, 1)),
        Step("rename2", (other, file, 1)),
        Step("delete", (file,)),
        Step("create", (file,), (("overwrite", True),)),
        Step("set_replication", (file, choose.number(1, 4))),
        Step("set_permission", (file, choose.among(MODES))),
        Step("set_owner", (file, "bob", None)),
        Step("set_times", (file, 7, 8)),
        Step("concat", (file, (choose.among(files),))),
        Step("concat", (choose.among(files), (file,))),
        _on_open_file(choose, near, "add_block", MB),
        _on_open_file(choose, near, "complete", MB),
        Step("get_file_info", (file,)),
    ]
    return (), [choose.among(options) for _ in range(choose.among((2, 3, 4, 5)))]


def one_name(choose: Choose, near: World, focus: str) -> Scene:
    """Several make, or move to, the same name."""
    name = _join(focus, choose.among((*NAMES, "d")))
    options = [
        Step("create", (name,)),
        Step("create", (name,), (("overwrite", True),)),
        Step("mkdirs", (name,)),
        Step("mkdirs", (_join(name, "b"),)),
        Step("create", (_join(name, "b"),)),
        Step("rename", (choose.among(near.paths), name)),
        Step("rename2", (choose.among(near.paths), name, choose.among((0, 1)))),
        Step("create_symlink", ("/t", name)),
        Step("delete", (name,), RECURSIVE),
        Step("get_file_info", (name,)),
    ]
    return (), [choose.among(options) for _ in range(choose.among((2, 3, 4, 5)))]


SCENES = (
    last_place,
    last_place,
    loop,
    vanishing_parent,
    vanishing_parent,
    one_file,
    one_name,
)
RECURSIVE = (("recursive", True),)
MOSTLY_SUPERUSER = (SUPERUSER, SUPERUSER, "alice")
BATCH_MAX = 6


def _near_call(choose: Choose, near: World, focus: str) -> Step:
    user = choose.among((SUPERUSER, SUPERUSER, "alice", "bob"))
    child = _join(focus, choose.among(NAMES))
    other = choose.among(near.paths)
    elsewhere = _join(choose.among(near.paths), choose.among(NAMES))
    parent = focus.rpartition("/")[0] or "/"
    kind = choose.number(0, 15)
    if kind < 3:
        return Step("create", (child,), (("overwrite", choose.number(0, 3) == 0),), user)
    if kind < 4:
        return Step("mkdirs", (child,), (), user)
    if kind < 5:
        return Step("mkdirs", (_join(child, choose.among(NAMES)),), (), user)
    if kind < 7:
        return Step("delete", (choose.among((focus, child, parent)),), (("recursive", True),), user)
    if kind < 8:
        return Step("delete", (choose.among((focus, child)),), (), user)
    if kind < 10:
        pair = choose.among(
            (
                (focus, elsewhere),
                (child, elsewhere),
                (elsewhere, child),
                (other, focus),
                (parent, elsewhere),
            )
        )
        return Step("rename", pair, (), user)
    if kind < 12:
        pair = choose.among(
            ((focus, elsewhere), (child, elsewhere), (elsewhere, child), (other, focus))
        )
        return Step("rename2", (*pair, choose.among((0, 1, 1, 2))), (), user)
    if kind < 13:
        return Step(
            choose.among(("get_content_summary", "get_listing", "get_file_info")),
            (choose.among((focus, parent, child)),),
            (),
            user,
        )
    if kind < 14:
        usage = {path: near.usage[path] for path in (focus, parent) if path in near.usage}
        return _set_quota(choose, World(near.paths, usage or near.usage))
    return make_call(choose, near, 1, choose.among(WEIGHTED_ATOMIC))


# One function for each call: what it may be given.


def _mkdirs(choose: Choose, world: World) -> Step:
    options = (("create_parents", False),) if choose.number(0, 3) == 0 else ()
    return Step("mkdirs", (_path(choose, world), choose.among(MODES)), options)


def _create(choose: Choose, world: World) -> Step:
    options: list[tuple[str, Any]] = [
        ("block_size_bytes", choose.among(BLOCK_SIZES)),
        ("replication", choose.among((1, 2, 3))),
    ]
    if choose.number(0, 2) == 0:
        options.append(("overwrite", True))
    if choose.number(0, 3) == 0:
        options.append(("create_parents", False))
    if choose.number(0, 30) == 0:
        options.append(
            choose.among((("replication", 0), ("replication", 513), ("block_size_bytes", 5)))
        )
    return Step("create", (_path(choose, world), choose.among(MODES)), tuple(dict(options).items()))


def _add_block(choose: Choose, world: World) -> Step:
    return _on_open_file(
        choose, world, "add_block", choose.among((MB, MB, 1, 2 * MB, 0, 3 * MB, -1))
    )


def _abandon_block(choose: Choose, world: World) -> Step:
    return _on_open_file(choose, world, "abandon_block", 0)


def _complete(choose: Choose, world: World) -> Step:
    return _on_open_file(choose, world, "complete", choose.among((MB, 5, 0, 2 * MB)))


def _on_open_file(choose: Choose, world: World, operation: str, length_bytes: int) -> Step:
    back = choose.among((0, 0, 0, 1, 2, 3))
    path: Any = PathOf(back)
    file: Any = FileRef(back)
    user: Any = WriterOf(back)
    from_end = choose.among((0, 0, 0, 0, 0, 1, 2))
    strange = choose.number(0, 9)
    if strange == 0:
        path = _path(choose, world)
    elif strange == 1:
        file = 0
    elif strange == 2:
        user = choose.among(tuple(USERS))
    elif strange == 3:
        path, file = _path(choose, world), 0
    block = BlockRef(back, from_end, length_bytes)
    return Step(operation, (path, block, file), (), user)


def _set_replication(choose: Choose, world: World) -> Step:
    return Step("set_replication", (_path(choose, world), choose.among((1, 2, 3, 5, 0, 600))))


def _renew_lease(choose: Choose, world: World) -> Step:
    return Step("renew_lease")


def _delete(choose: Choose, world: World) -> Step:
    options = (("recursive", True),) if choose.number(0, 2) else ()
    return Step("delete", (_path(choose, world),), options)


def _rename(choose: Choose, world: World) -> Step:
    return Step("rename", (_path(choose, world), _path(choose, world)))


def _rename2(choose: Choose, world: World) -> Step:
    options = choose.among((0, 1, 1, 1, 2, 3))
    return Step("rename2", (_path(choose, world), _path(choose, world), options))


def _get_file_info(choose: Choose, world: World) -> Step:
    return Step("get_file_info", (_path(choose, world),))


def _get_file_link_info(choose: Choose, world: World) -> Step:
    return Step("get_file_link_info", (_path(choose, world),))


def _get_listing(choose: Choose, world: World) -> Step:
    after = choose.among((b"", b"", b"a", b"b", b"\xff"))
    return Step("get_listing", (_path(choose, world), after, choose.among((1, 2, 1000))))


def _get_content_summary(choose: Choose, world: World) -> Step:
    return Step("get_content_summary", (_path(choose, world),))


def _set_permission(choose: Choose, world: World) -> Step:
    return Step("set_permission", (_path(choose, world), choose.among(MODES)))


def _set_owner(choose: Choose, world: World) -> Step:
    owner = choose.among((None, *USERS))
    group = choose.among((None, "staff", "dev", "guests"))
    return Step("set_owner", (_path(choose, world), owner, group))


def _set_times(choose: Choose, world: World) -> Step:
    times = (-1, -1, 0, 5, 1_800_000_000_000)
    return Step("set_times", (_path(choose, world), choose.among(times), choose.among(times)))


def _check_access(choose: Choose, world: World) -> Step:
    return Step("check_access", (_path(choose, world), choose.number(0, 7)))


def _modify_acl_entries(choose: Choose, world: World) -> Step:
    return Step("modify_acl_entries", (_path(choose, world), _spec(choose)))


def _remove_acl_entries(choose: Choose, world: World) -> Step:
    return Step("remove_acl_entries", (_path(choose, world), _spec(choose)))


def _set_acl(choose: Choose, world: World) -> Step:
    base = [AclEntry(0, kind, None, choose.among((7, 5, 0))) for kind in (0, 1, 3)]
    return Step("set_acl", (_path(choose, world), (*base, *_spec(choose))))


def _remove_default_acl(choose: Choose, world: World) -> Step:
    return Step("remove_default_acl", (_path(choose, world),))


def _remove_acl(choose: Choose, world: World) -> Step:
    return Step("remove_acl", (_path(choose, world),))


def _get_acl_status(choose: Choose, world: World) -> Step:
    return Step("get_acl_status", (_path(choose, world),))


def _spec(choose: Choose) -> tuple[AclEntry, ...]:
    names = {0: (None, "alice", "bob", "carol"), 1: (None, "staff", "dev"), 2: (None,), 3: (None,)}
    entries = []
    for _ in range(choose.among((1, 1, 2, 3, 0))):
        kind = choose.among((0, 0, 1, 1, 2, 3))
        name = choose.among(names[kind])
        entries.append(AclEntry(choose.among((0, 0, 1)), kind, name, choose.among((0, 4, 5, 7, 3))))
    return tuple(entries)


def _set_quota(choose: Choose, world: World) -> Step:
    path = choose.among(list(world.usage)) if choose.number(0, 4) else _path(choose, world)
    inodes, space_bytes = world.usage.get(path, (1, 0)) if isinstance(path, str) else (1, 0)
    namespace = choose.among(
        (inodes + 1, inodes + 1, inodes, inodes + 2, inodes - 1, 1, DONT_SET, -1, -1, -2)
    )
    space = choose.among(
        (DONT_SET, DONT_SET, -1, -1, space_bytes + MB, space_bytes + 3 * MB, space_bytes, 0, -2)
    )
    if choose.number(0, 5) == 0:
        kind = choose.among((1, 1, 2))
        return Step(
            "set_quota", (path, choose.among((DONT_SET, DONT_SET, DONT_SET, 5)), space, kind)
        )
    return Step("set_quota", (path, max(namespace, -2), space, None))


def _get_quota_usage(choose: Choose, world: World) -> Step:
    return Step("get_quota_usage", (_path(choose, world),))


def _create_symlink(choose: Choose, world: World) -> Step:
    target = choose.among(("/a", "b", "../c", "hdfs://other/x", "/a/b/", "", "/.reserved/x", "."))
    options = (("create_parents", choose.number(0, 1) == 0),)
    return Step("create_symlink", (target, _path(choose, world)), options)


def _get_link_target(choose: Choose, world: World) -> Step:
    return Step("get_link_target", (_path(choose, world),))


def _concat(choose: Choose, world: World) -> Step:
    """Mostly of files in one directory."""
    directory = choose.among(sorted(world.usage)) if world.usage else "/"
    near = [path for path in world.paths if path.rpartition("/")[0] == directory.rstrip("/")]
    among = near if near and choose.number(0, 3) else world.paths
    sources = tuple(choose.among(among) for _ in range(choose.among((1, 1, 2, 3, 0))))
    return Step("concat", (choose.among(among), sources))


def _is_file_closed(choose: Choose, world: World) -> Step:
    return Step("is_file_closed", (_path(choose, world),))


def _get_block_locations(choose: Choose, world: World) -> Step:
    where = (choose.among((0, 0, 1, MB, -1)), choose.among((2**62, 1, MB, 0, -1)))
    path = PathOf(choose.number(0, 3)) if choose.number(0, 1) else _path(choose, world)
    return Step("get_block_locations", (path, *where))


OPERATIONS: dict[str, int] = {
    "mkdirs": 10,
    "create": 14,
    "add_block": 12,
    "abandon_block": 3,
    "complete": 6,
    "set_replication": 4,
    "renew_lease": 1,
    "delete": 5,
    "rename": 8,
    "rename2": 8,
    "get_file_info": 3,
    "get_file_link_info": 2,
    "get_listing": 3,
    "get_content_summary": 3,
    "set_permission": 5,
    "set_owner": 3,
    "set_times": 3,
    "check_access": 3,
    "modify_acl_entries": 3,
    "remove_acl_entries": 2,
    "set_acl": 2,
    "remove_default_acl": 1,
    "remove_acl": 1,
    "get_acl_status": 1,
    "set_quota": 5,
    "get_quota_usage": 2,
    "create_symlink": 2,
    "get_link_target": 1,
    "concat": 5,
    "is_file_closed": 1,
    "get_block_locations": 3,
}
"""How often each is called."""

TWO_TRANSACTIONS = {"get_block_locations"}  # the access time is noted after the answer

WEIGHTED = [name for name, weight in OPERATIONS.items() for _ in range(weight)]
WEIGHTED_ATOMIC = [name for name in WEIGHTED if name not in TWO_TRANSACTIONS]


def _path(choose: Choose, world: World) -> Any:
    kind = choose.number(0, 99)
    if kind < 40:
        return choose.among(world.paths)
    if kind < 65:
        return _join(choose.among(world.paths), choose.among(NAMES))
    if kind < 90:
        return _fresh_path(choose)
    if kind < 95:
        return _join(choose.among(world.paths), choose.among(ODD_NAMES))
    if kind < 97:
        return InodePath(choose.number(0, 2), choose.among(("", "", "/a", "/..")))
    return choose.among((*ODD_PATHS, "/"))


def _fresh_path(choose: Choose) -> str:
    depth = choose.among((1, 2, 2, 3, 3, 4))
    return "".join(f"/{choose.among(NAMES)}" for _ in range(depth))


def _join(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"


def _is_near(path: str, focus: str) -> bool:
    top = "/" + focus.split("/")[1]
    return path == "/" or path.startswith(top)


def _user(choose: Choose, operation: str) -> str:
    if operation == "set_quota":
        return choose.among((SUPERUSER, SUPERUSER, SUPERUSER, "alice"))
    return choose.among((SUPERUSER, SUPERUSER, "alice", "alice", "bob", "carol"))
