"""Random steps around snapshots, roll-backs and clones that are in each other.

Among all the calls there are, few lead there, and most of those are refused.  Here nearly all are
possible: by the superuser, on what is there, with names that are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.model.snapshot_calls import snapshot_diff
from tests.model.steps import (
    MB,
    MODES,
    NAMES,
    BlockRef,
    Choose,
    FileRef,
    PathOf,
    Step,
    World,
    WriterOf,
)

from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.testing.model import DONT_SET

PATHS_MIN = 14
PATHS_MAX = 40
SNAPSHOTS_MAX = 10
DEPTH_MAX = 4
SNAPSHOT_NAMES = tuple(f"s{number}" for number in range(1, 10))
LENGTH_MAX_BYTES = 10_000  # so that hardly any two files have the same

Steps = tuple[Step, ...]


def make_nested_steps(choose: Choose, world: World, namenodes: int) -> Steps:
    """One thing to do, in one call or in several after each other."""
    make = choose.among(_WEIGHTED)
    if len(world.paths) < PATHS_MIN:  # or roll-backs would lead to where nothing is
        make = choose.among((mkdirs, mkdirs, write))
    if len(world.paths) > PATHS_MAX and make in GROWING:
        make = delete
    if len(world.snapshots) > SNAPSHOTS_MAX and make in SNAPSHOT_TAKING:
        make = delete_snapshot
    if make in SNAPSHOT_USING and not world.snapshots:
        make = create_snapshots if world.snapshottable else allow_snapshot
    steps = make(choose, world)
    return tuple(replace(step, namenode=choose.number(0, namenodes - 1)) for step in steps)


def mkdirs(choose: Choose, world: World) -> Steps:
    below = choose.among(("", f"/{choose.among(NAMES)}"))
    return (Step("mkdirs", (_new(choose, world) + below,)),)


def write(choose: Choose, world: World) -> Steps:
    options = ("block_size_bytes", MB), ("overwrite", choose.number(0, 1) == 0)
    created = Step("create", (_new(choose, world),), options)
    return created, *_write_block(choose)


def append(choose: Choose, world: World) -> Steps:
    """To the last block, or in another; what is too short for it is refused."""
    path, closed = _file(choose, world), Step("recover_lease", (PathOf(0),))
    if choose.number(0, 2) == 0:
        appended = Step("append", (path,), (("to_new_block", True),))
        return appended, *_write_block(choose, after=BlockRef(0, 0, 0)), closed
    block = BlockRef(0, 0, choose.number(LENGTH_MAX_BYTES, MB))
    completed = Step("complete", (PathOf(0), block, FileRef(0)), (), WriterOf(0))
    return Step("append", (path,)), completed, closed


def truncate(choose: Choose, world: World) -> Steps:
    length_bytes = choose.among((0, 1, 100, 1000, 5000))
    return (Step("truncate", (_file(choose, world), length_bytes)),)


def concat(choose: Choose, world: World) -> Steps:
    parents = [_parent(path) for path in _files(world)]
    pairs = [path for path in _files(world) if parents.count(_parent(path)) > 1]
    target = choose.among(pairs or ["/a/a"])
    near = [path for path in pairs if _parent(path) == _parent(target)]
    sources = [path for path in near if path != target] or [target]
    chosen = {choose.among(sources) for _ in range(choose.number(1, 2))}
    return (Step("concat", (target, tuple(sorted(chosen)))),)


def set_permission(choose: Choose, world: World) -> Steps:
    return (Step("set_permission", (choose.among(world.paths), choose.among(MODES))),)


def set_replication(choose: Choose, world: World) -> Steps:
    return (Step("set_replication", (_file(choose, world), choose.number(1, 4))),)


def set_xattr(choose: Choose, world: World) -> Steps:
    value = choose.among((b"1", b"2"))
    return (Step("set_xattr", (choose.among(world.paths), "user.a", value, 3)),)


def remove_xattr(choose: Choose, world: World) -> Steps:
    return (Step("remove_xattr", (choose.among(world.paths), "user.a")),)


def set_quota(choose: Choose, world: World) -> Steps:
    path = choose.among([path for path in sorted(world.usage) if path != "/"] or ["/a"])
    inodes, _ = world.usage.get(path, (1, 0))
    quota = choose.among((-1, inodes + choose.number(0, 3)))
    return (Step("set_quota", (path, quota, DONT_SET, None)),)


def delete(choose: Choose, world: World) -> Steps:
    return (Step("delete", (_below(choose, world),), (("recursive", True),)),)


def rename(choose: Choose, world: World) -> Steps:
    destination = _new(choose, world) if choose.number(0, 4) else choose.among(world.paths)
    return (Step("rename2", (_below(choose, world), destination, choose.among((0, 1)))),)


def allow_snapshot(choose: Choose, world: World) -> Steps:
    """Mostly below something of which they may be taken already."""
    nested = [path for path in world.paths if _holders(world, path)]
    return (Step("allow_snapshot", (choose.among(choose.among((nested, world.paths)) or ["/a"]),)),)


def disallow_snapshot(choose: Choose, world: World) -> Steps:
    return (Step("disallow_snapshot", (_snapshottable(choose, world),)),)


def create_snapshots(choose: Choose, world: World) -> Steps:
    paths = tuple(_snapshottable(choose, world) for _ in range(choose.among((1, 1, 1, 2))))
    return (Step("create_snapshots", (paths, _free_name(choose, world, paths))),)


def rename_snapshot(choose: Choose, world: World) -> Steps:
    path, name = _snapshot(choose, world)
    return (Step("rename_snapshot", (path, name, _free_name(choose, world, (path,)))),)


def delete_snapshot(choose: Choose, world: World) -> Steps:
    return (Step("delete_snapshot", _snapshot(choose, world)),)


def diff(choose: Choose, world: World) -> Steps:
    return (snapshot_diff(choose, world),)


def rollback_snapshot(choose: Choose, world: World) -> Steps:
    """With a snapshot of what it had become, or without."""
    outer = {top for path in world.snapshottable for top in _holders(world, path)}
    with_nested = [each for each in world.snapshots if each[0] in outer]
    path, name = choose.among(choose.among((with_nested, world.snapshots)) or world.snapshots)
    safety = choose.among(("", _free_name(choose, world, (path,))))
    return (Step("rollback_snapshot", (path, name, safety)),)


def rollback_snapshots(choose: Choose, world: World) -> Steps:
    _, name = _snapshot(choose, world)
    of_name = [path for path, each in world.snapshots if each == name] or ["/a"]
    paths = tuple({choose.among(of_name): None for _ in range(choose.number(1, 3))})
    return (Step("rollback_snapshots", (paths, name, _free_name(choose, world, paths))),)


def clone_snapshot(choose: Choose, world: World) -> Steps:
    return (Step("clone_snapshot", (*_snapshot(choose, world), _new(choose, world))),)


def back_and_forth(choose: Choose, world: World) -> Steps:
    """Two roll-backs of the same, and between them some changes to what the first has brought."""
    path, name = choose.among(world.snapshots)
    safety = _free_name(choose, world, (path,))
    brought = f"{path.rstrip('/')}/.snapshot/{name}/"
    inner = [
        each.replace(brought, f"{path.rstrip('/')}/")
        for each in world.in_snapshots
        if each.startswith(brought)
    ]
    steps = [Step("rollback_snapshot", (path, name, safety))]
    for _ in range(choose.number(1, 3)):
        where = choose.among(inner or [path])
        changes = (
            Step("allow_snapshot", (where,)),
            Step("allow_snapshot", (where,)),
            Step("create_snapshots", ((where,), safety)),
            Step("rename2", (where, _new(choose, world), 0)),
            Step("mkdirs", (f"{where}/{choose.among(NAMES)}",)),
            Step("delete", (where,), (("recursive", True),)),
        )
        steps.append(choose.among(changes))
    steps.append(Step("rollback_snapshot", (path, choose.among((name, safety)))))
    if choose.number(0, 1):
        steps += [Step("delete_snapshot", (path, each)) for each in (name, safety)]
    return tuple(steps)


def reclaim(choose: Choose, world: World) -> Steps:
    """What goes, goes while the rest is in use; a NameNode starts anew in between."""
    between = Step("restart") if choose.number(0, 19) == 0 else Step("advance", (1,))
    steps = (Step("reclaim"),) * choose.among((1, 2, 3, 10))
    return Step("advance", (SETTLING_MS,)), between, *steps


WEIGHTS: dict[Callable[[Choose, World], Steps], int] = {
    mkdirs: 14,
    write: 12,
    append: 4,
    truncate: 4,
    concat: 3,
    set_permission: 2,
    set_replication: 2,
    set_xattr: 3,
    remove_xattr: 1,
    set_quota: 2,
    delete: 8,
    rename: 24,
    allow_snapshot: 16,
    disallow_snapshot: 3,
    create_snapshots: 24,
    rename_snapshot: 2,
    delete_snapshot: 10,
    diff: 4,
    rollback_snapshot: 20,
    rollback_snapshots: 4,
    clone_snapshot: 8,
    back_and_forth: 8,
    reclaim: 10,
}
"""How often each is done."""

GROWING = (mkdirs, write, clone_snapshot)
SNAPSHOT_TAKING = (create_snapshots, rollback_snapshots, back_and_forth)
SNAPSHOT_USING = (
    *(rollback_snapshot, rollback_snapshots, back_and_forth, clone_snapshot),
    *(delete_snapshot, rename_snapshot, diff),
)

_WEIGHTED = [make for make, weight in WEIGHTS.items() for _ in range(weight)]


def _write_block(choose: Choose, after: BlockRef | None = None) -> Steps:
    """Of the file that was opened last, which is closed then."""
    block = BlockRef(0, 0, choose.number(1, LENGTH_MAX_BYTES))
    return (
        Step("add_block", (PathOf(0), after, FileRef(0)), (), WriterOf(0)),
        Step("complete", (PathOf(0), block, FileRef(0)), (), WriterOf(0)),
    )


def _new(choose: Choose, world: World) -> str:
    """A place for something; at times there is something else."""
    directories = [path for path in sorted(world.usage) if path.count("/") < DEPTH_MAX]
    return f"{choose.among(directories or ['/']).rstrip('/')}/{choose.among(NAMES)}"


def _below(choose: Choose, world: World) -> str:
    """Something that is in a directory, most of the time: the tree is not to be empty again."""
    deep = [path for path in world.paths if path.count("/") > 1]
    return choose.among(deep if deep and choose.number(0, 9) else world.paths)


def _files(world: World) -> list[str]:
    return [path for path in world.paths if path not in world.usage]


def _file(choose: Choose, world: World) -> str:
    return choose.among(_files(world) or ["/a/a"])


def _holders(world: World, path: str) -> list[str]:
    """Of which snapshots may be taken, with this in them."""
    return [
        top for top in world.snapshottable if path.startswith(f"{top.rstrip('/')}/") and path != top
    ]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _snapshottable(choose: Choose, world: World) -> str:
    return choose.among(world.snapshottable or ["/a"])


def _snapshot(choose: Choose, world: World) -> tuple[str, str]:
    return choose.among(world.snapshots or [("/a", "s1")])


def _free_name(choose: Choose, world: World, paths: tuple[str, ...]) -> str:
    """That none of these has a snapshot of; the last, if each is taken."""
    taken = {name for path, name in world.snapshots if path in paths}
    return choose.among([name for name in SNAPSHOT_NAMES if name not in taken] or ["s9"])
