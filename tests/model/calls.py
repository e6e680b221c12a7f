"""One random call: which operation, by whom, on what.

For each operation there is a function of its name that chooses what it may be given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.model.snapshot_calls import SNAPSHOT_OPERATIONS, make_snapshot_call, snapshot_path
from tests.model.steps import (
    BLOCK_SIZES,
    MB,
    MODES,
    NAMES,
    ODD_NAMES,
    ODD_PATHS,
    SUPERUSER,
    USERS,
    BlockRef,
    Choose,
    FileRef,
    InodePath,
    PathOf,
    Step,
    World,
    WriterOf,
)
from tests.model.xattr_calls import XATTR_OPERATIONS, make_xattr_call

from cairnfs.namesystem.inodes import AclEntry
from cairnfs.testing.model import DONT_SET

OPERATIONS: dict[str, int] = {
    "mkdirs": 10,
    "create": 14,
    "add_block": 12,
    "abandon_block": 3,
    "complete": 6,
    "append": 7,
    "truncate": 6,
    "fsync": 3,
    "recover_lease": 2,
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
    **XATTR_OPERATIONS,
}
"""How often each is called."""

TWO_TRANSACTIONS = {"get_block_locations"}  # the access time is noted after the answer

WEIGHTED = [name for name, weight in OPERATIONS.items() for _ in range(weight)]

WEIGHTED_WITH_SNAPSHOTS = [
    *WEIGHTED,
    *(name for name, weight in SNAPSHOT_OPERATIONS.items() for _ in range(weight)),
]

WEIGHTED_ATOMIC = [name for name in WEIGHTED if name not in TWO_TRANSACTIONS]


def make_call(choose: Choose, world: World, namenodes: int, operation: str) -> Step:
    """One call of one operation."""
    if operation in SNAPSHOT_OPERATIONS:
        return replace(
            make_snapshot_call(choose, world, operation), namenode=choose.number(0, namenodes - 1)
        )
    if operation in XATTR_OPERATIONS:
        step = make_xattr_call(choose, operation, _path(choose, world))
    else:
        step = globals()[operation](choose, world)
    user = step.user if isinstance(step.user, WriterOf) else _user(choose, operation)
    return Step(operation, step.arguments, step.options, user, choose.number(0, namenodes - 1))


def on_open_file(choose: Choose, world: World, operation: str, length_bytes: int) -> Step:
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


def fresh_path(choose: Choose) -> str:
    depth = choose.among((1, 2, 2, 3, 3, 4))
    return "".join(f"/{choose.among(NAMES)}" for _ in range(depth))


def join(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"


def mkdirs(choose: Choose, world: World) -> Step:
    options = (("create_parents", False),) if choose.number(0, 3) == 0 else ()
    return Step("mkdirs", (_path(choose, world), choose.among(MODES)), options)


def create(choose: Choose, world: World) -> Step:
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


def add_block(choose: Choose, world: World) -> Step:
    return on_open_file(
        choose, world, "add_block", choose.among((MB, MB, 1, 2 * MB, 0, 3 * MB, -1))
    )


def abandon_block(choose: Choose, world: World) -> Step:
    return on_open_file(choose, world, "abandon_block", 0)


def complete(choose: Choose, world: World) -> Step:
    return on_open_file(choose, world, "complete", choose.among((MB, 5, 0, 2 * MB)))


def append(choose: Choose, world: World) -> Step:
    path, user = _known_file(choose, world)
    options = (("to_new_block", True),) if choose.number(0, 4) == 0 else ()
    return Step("append", (path,), options, user)


def truncate(choose: Choose, world: World) -> Step:
    path, user = _known_file(choose, world)
    length = choose.among((0, 1, 1, 4, 4, 5, MB, MB, MB + 1, 2 * MB, -1))
    return Step("truncate", (path, length), (), user)


def fsync(choose: Choose, world: World) -> Step:
    of_block = on_open_file(choose, world, "fsync", 0)
    path, _, file = of_block.arguments
    length = choose.among((-1, 0, 3, 7, MB, 3 * MB))
    return Step("fsync", (path, length, file), (), of_block.user)


def recover_lease(choose: Choose, world: World) -> Step:
    path, user = _known_file(choose, world)
    return Step("recover_lease", (path,), (), user)


def set_replication(choose: Choose, world: World) -> Step:
    return Step("set_replication", (_path(choose, world), choose.among((1, 2, 3, 5, 0, 600))))


def renew_lease(choose: Choose, world: World) -> Step:
    return Step("renew_lease")


def delete(choose: Choose, world: World) -> Step:
    options = (("recursive", True),) if choose.number(0, 2) else ()
    return Step("delete", (_path(choose, world),), options)


def rename(choose: Choose, world: World) -> Step:
    return Step("rename", (_path(choose, world), _path(choose, world)))


def rename2(choose: Choose, world: World) -> Step:
    options = choose.among((0, 1, 1, 1, 2, 3))
    return Step("rename2", (_path(choose, world), _path(choose, world), options))


def get_file_info(choose: Choose, world: World) -> Step:
    return Step("get_file_info", (_path(choose, world),))


def get_file_link_info(choose: Choose, world: World) -> Step:
    return Step("get_file_link_info", (_path(choose, world),))


def get_listing(choose: Choose, world: World) -> Step:
    after = choose.among((b"", b"", b"a", b"b", b"\xff"))
    return Step("get_listing", (_path(choose, world), after, choose.among((1, 2, 1000))))


def get_content_summary(choose: Choose, world: World) -> Step:
    return Step("get_content_summary", (_path(choose, world),))


def set_permission(choose: Choose, world: World) -> Step:
    return Step("set_permission", (_path(choose, world), choose.among(MODES)))


def set_owner(choose: Choose, world: World) -> Step:
    owner = choose.among((None, *USERS))
    group = choose.among((None, "staff", "dev", "guests"))
    return Step("set_owner", (_path(choose, world), owner, group))


def set_times(choose: Choose, world: World) -> Step:
    times = (-1, -1, 0, 5, 1_800_000_000_000)
    return Step("set_times", (_path(choose, world), choose.among(times), choose.among(times)))


def check_access(choose: Choose, world: World) -> Step:
    return Step("check_access", (_path(choose, world), choose.number(0, 7)))


def modify_acl_entries(choose: Choose, world: World) -> Step:
    return Step("modify_acl_entries", (_path(choose, world), _spec(choose)))


def remove_acl_entries(choose: Choose, world: World) -> Step:
    return Step("remove_acl_entries", (_path(choose, world), _spec(choose)))


def set_acl(choose: Choose, world: World) -> Step:
    base = [AclEntry(0, kind, None, choose.among((7, 5, 0))) for kind in (0, 1, 3)]
    return Step("set_acl", (_path(choose, world), (*base, *_spec(choose))))


def remove_default_acl(choose: Choose, world: World) -> Step:
    return Step("remove_default_acl", (_path(choose, world),))


def remove_acl(choose: Choose, world: World) -> Step:
    return Step("remove_acl", (_path(choose, world),))


def get_acl_status(choose: Choose, world: World) -> Step:
    return Step("get_acl_status", (_path(choose, world),))


def _spec(choose: Choose) -> tuple[AclEntry, ...]:
    names = {0: (None, "alice", "bob", "carol"), 1: (None, "staff", "dev"), 2: (None,), 3: (None,)}
    entries = []
    for _ in range(choose.among((1, 1, 2, 3, 0))):
        kind = choose.among((0, 0, 1, 1, 2, 3))
        name = choose.among(names[kind])
        entries.append(AclEntry(choose.among((0, 0, 1)), kind, name, choose.among((0, 4, 5, 7, 3))))
    return tuple(entries)


def set_quota(choose: Choose, world: World) -> Step:
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


def get_quota_usage(choose: Choose, world: World) -> Step:
    return Step("get_quota_usage", (_path(choose, world),))


def create_symlink(choose: Choose, world: World) -> Step:
    target = choose.among(("/a", "b", "../c", "hdfs://other/x", "/a/b/", "", "/.reserved/x", "."))
    options = (("create_parents", choose.number(0, 1) == 0),)
    return Step("create_symlink", (target, _path(choose, world)), options)


def get_link_target(choose: Choose, world: World) -> Step:
    return Step("get_link_target", (_path(choose, world),))


def concat(choose: Choose, world: World) -> Step:
    """Mostly of files in one directory."""
    directory = choose.among(sorted(world.usage)) if world.usage else "/"
    near = [path for path in world.paths if path.rpartition("/")[0] == directory.rstrip("/")]
    among = near if near and choose.number(0, 3) else world.paths
    sources = tuple(choose.among(among) for _ in range(choose.among((1, 1, 2, 3, 0))))
    return Step("concat", (choose.among(among), sources))


def is_file_closed(choose: Choose, world: World) -> Step:
    return Step("is_file_closed", (_path(choose, world),))


def get_block_locations(choose: Choose, world: World) -> Step:
    where = (choose.among((0, 0, 1, MB, -1)), choose.among((2**62, 1, MB, 0, -1)))
    path = PathOf(choose.number(0, 3)) if choose.number(0, 1) else _path(choose, world)
    return Step("get_block_locations", (path, *where))


def _known_file(choose: Choose, world: World) -> tuple[Any, Any]:
    """A file and who made it, mostly."""
    if choose.number(0, 4) == 0:
        return _path(choose, world), choose.among(tuple(USERS))
    back = choose.among((0, 0, 1, 2, 3))
    return PathOf(back), WriterOf(back)


def _path(choose: Choose, world: World) -> Any:
    if world.in_snapshots and choose.number(0, 11) == 0:
        return snapshot_path(choose, world)
    kind = choose.number(0, 99)
    if kind < 40:
        return choose.among(world.paths)
    if kind < 65:
        return join(choose.among(world.paths), choose.among(NAMES))
    if kind < 90:
        return fresh_path(choose)
    if kind < 95:
        name = choose.among(ODD_NAMES)
        # What .snapshot itself takes, and how old it is, is told in no way worth keeping.
        odd = "Z" if world.with_snapshots and name == ".snapshot" else name
        return join(choose.among(world.paths), odd)
    if kind < 97:
        return InodePath(choose.number(0, 2), choose.among(("", "", "/a", "/..")))
    return choose.among((*ODD_PATHS, "/"))


def _user(choose: Choose, operation: str) -> str:
    if operation == "set_quota":
        return choose.among((SUPERUSER, SUPERUSER, SUPERUSER, "alice"))
    return choose.among((SUPERUSER, SUPERUSER, "alice", "alice", "bob", "carol"))
