"""Random steps: single calls, and scenes in which several calls meet."""

from __future__ import annotations

from dataclasses import replace

from tests.model.calls import (
    WEIGHTED,
    WEIGHTED_ATOMIC,
    WEIGHTED_WITH_SNAPSHOTS,
    fresh_path,
    join,
    make_call,
    on_open_file,
    set_quota,
)
from tests.model.snapshot_calls import SNAPSHOT_NAMES
from tests.model.steps import MB, MODES, NAMES, SUPERUSER, Batch, Choose, Step, World

from cairnfs.testing.model import DONT_SET

Scene = tuple[tuple[Step, ...], list[Step]]
"""What has to be done before, and the calls that then meet."""

RECURSIVE = (("recursive", True),)

MOSTLY_SUPERUSER = (SUPERUSER, SUPERUSER, "alice")

BATCH_MAX = 6


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
    operations = WEIGHTED_WITH_SNAPSHOTS if world.with_snapshots else WEIGHTED
    return make_call(choose, world, namenodes, choose.among(operations))


def make_batch(choose: Choose, world: World, namenodes: int) -> Batch:
    """Calls at the same time around one directory, so that they meet."""
    directories = sorted(world.usage) or ["/"]
    focus = choose.among(directories) if choose.number(0, 3) else fresh_path(choose)
    near = replace(
        world, paths=[path for path in world.paths if _is_near(path, focus)] or ["/"], scenes=()
    )
    before: tuple[Step, ...] = ()
    if world.scenes or choose.number(0, 2):
        scenes = (*SCENES, *SNAPSHOT_SCENES) if world.with_snapshots else SCENES
        scene = choose.among(world.scenes or scenes)
        before, calls = scene(choose, near, focus)
        # Who writes a file while it is brought back finds it by its path, not by an id.
        if choose.number(0, 2) == 0 and scene is not going_back:
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


def last_place(choose: Choose, near: World, focus: str) -> Scene:
    """One inode or one block more is allowed (thesis 004, figure 3.3); several want it."""
    inodes, space_bytes = near.usage.get(focus, (1, 0))
    if choose.number(0, 2):
        quota = Step("set_quota", (focus, inodes + choose.among((1, 1, 2)), DONT_SET, None))
        makers = ("create", "mkdirs", "create_symlink")
        calls = []
        for _ in range(choose.among((2, 3, 4, 4))):
            name, where = choose.among(makers), join(focus, choose.among((*NAMES, "d", "e")))
            calls.append(Step(name, ("/t", where) if name == "create_symlink" else (where,)))
        if choose.number(0, 2) == 0:
            calls.append(Step("delete", (join(focus, choose.among(NAMES)),), RECURSIVE))
        if choose.number(0, 2) == 0:
            calls.append(Step("rename", (choose.among(near.paths), focus)))
        return (quota,), calls
    quota = Step("set_quota", (focus, DONT_SET, space_bytes + 3 * MB, None))
    calls = [on_open_file(choose, near, "add_block", MB) for _ in range(choose.among((2, 3)))]
    calls.append(Step("set_replication", (choose.among(near.paths), choose.number(1, 4))))
    return (quota,), calls


def loop(choose: Choose, near: World, focus: str) -> Scene:
    """Directories that move into each other."""
    others = [path for path in near.usage if path not in ("/", focus)] or ["/a"]
    calls = []
    for _ in range(choose.among((1, 1, 2))):
        other = choose.among(others)
        calls.append(Step("rename", (focus, join(other, choose.among(NAMES)))))
        calls.append(Step("rename", (other, join(focus, choose.among(NAMES)))))
    return (), calls


def vanishing_parent(choose: Choose, near: World, focus: str) -> Scene:
    """A directory goes away, or elsewhere, while something is put into it."""
    above = focus[: focus.rfind("/", 1)] if focus.count("/") > 1 else focus
    gone = choose.among((focus, above))
    target = join(choose.among(sorted(near.usage)), choose.among(NAMES))
    removals = [
        Step("delete", (gone,), RECURSIVE),
        Step("delete", (gone,)),
        Step("rename", (gone, target)),
        Step("rename2", (choose.among(near.paths), gone, 1)),
        Step("set_permission", (gone, 0o700)),
    ]
    child = join(focus, choose.among((*NAMES, "d")))
    additions = [
        Step("create", (child,), (), choose.among(MOSTLY_SUPERUSER)),
        Step("mkdirs", (join(child, "b"),), (), choose.among(MOSTLY_SUPERUSER)),
        Step("rename", (choose.among(near.paths), child)),
        on_open_file(choose, near, "add_block", MB),
        Step("get_content_summary", (focus,)),
        Step("get_listing", (focus,)),
    ]
    calls = [choose.among(removals)]
    calls += [choose.among(additions) for _ in range(choose.among((1, 2, 3, 4)))]
    return (), calls


def one_file(choose: Choose, near: World, focus: str) -> Scene:
    """Everybody wants something of the same file."""
    files = [path for path in near.paths if path not in near.usage] or [join(focus, "a")]
    file = choose.among(files)
    other = join(focus, choose.among(NAMES))
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
        on_open_file(choose, near, "add_block", MB),
        on_open_file(choose, near, "complete", MB),
        Step("get_file_info", (file,)),
    ]
    return (), [choose.among(options) for _ in range(choose.among((2, 3, 4, 5)))]


def one_name(choose: Choose, near: World, focus: str) -> Scene:
    """Several make, or move to, the same name."""
    name = join(focus, choose.among((*NAMES, "d")))
    options = [
        Step("create", (name,)),
        Step("create", (name,), (("overwrite", True),)),
        Step("mkdirs", (name,)),
        Step("mkdirs", (join(name, "b"),)),
        Step("create", (join(name, "b"),)),
        Step("rename", (choose.among(near.paths), name)),
        Step("rename2", (choose.among(near.paths), name, choose.among((0, 1)))),
        Step("create_symlink", ("/t", name)),
        Step("delete", (name,), RECURSIVE),
        Step("get_file_info", (name,)),
    ]
    return (), [choose.among(options) for _ in range(choose.among((2, 3, 4, 5)))]


def clean_cut(choose: Choose, near: World, focus: str) -> Scene:
    """Snapshots are taken and deleted while things come, go and change below."""
    name = choose.among(SNAPSHOT_NAMES)
    tops = tuple(choose.among([focus, "/", *near.snapshottable]) for _ in range(2))
    child = join(focus, choose.among(NAMES))
    changes = [
        Step("create", (child,), (("overwrite", choose.number(0, 1) == 0),)),
        Step("mkdirs", (join(child, choose.among(NAMES)),)),
        Step("delete", (choose.among((child, choose.among(near.paths))),), RECURSIVE),
        Step("rename", (choose.among(near.paths), child)),
        Step("rename", (child, choose.among(near.paths))),
        Step("set_permission", (choose.among(near.paths), choose.among(MODES))),
        Step("set_replication", (choose.among(near.paths), choose.number(1, 4))),
        Step("truncate", (choose.among(near.paths), choose.among((0, 1, 4)))),
        on_open_file(choose, near, "complete", MB),
        on_open_file(choose, near, "add_block", MB),
    ]
    calls = [Step("create_snapshots", (tops[: choose.among((1, 1, 2))], name))]
    if near.snapshots and choose.number(0, 1):
        calls.append(Step("delete_snapshot", choose.among(near.snapshots)))
    calls += [choose.among(changes) for _ in range(choose.among((1, 2, 3, 4)))]
    return tuple(Step("allow_snapshot", (top,)) for top in tops), calls


def going_back(choose: Choose, near: World, focus: str) -> Scene:
    """A directory is rolled back, or a clone is made of it, while others work in it."""
    top = choose.among([*near.snapshottable, focus])
    top = "/a" if top == "/" else top  # as in `snapshot_calls`
    name = choose.among(SNAPSHOT_NAMES)
    below = [path for path in near.paths if path.startswith(f"{top}/")]
    child = choose.among([*below, join(top, choose.among(NAMES))])
    clone = join(choose.among(near.paths), choose.among((*NAMES, "d")))
    changes = [
        Step("create", (child,), (("overwrite", choose.number(0, 1) == 0),)),
        Step("mkdirs", (join(child, choose.among(NAMES)),)),
        Step("delete", (child,), RECURSIVE),
        Step("rename", (child, choose.among(near.paths))),
        Step("rename", (choose.among(near.paths), child)),
        Step("set_permission", (child, choose.among(MODES))),
        Step("set_replication", (child, choose.number(1, 4))),
        Step("truncate", (child, choose.among((0, 1, 4)))),
        Step("mkdirs", (join(clone, choose.among(NAMES)),)),
        Step("get_content_summary", (top,)),
        Step("get_listing", (top,)),
    ]
    copies = [
        Step("rollback_snapshot", (top, name)),
        Step("rollback_snapshot", (top, name)),
        Step("clone_snapshot", (top, name, clone)),
    ]
    calls = [choose.among(copies) for _ in range(choose.among((1, 1, 2)))]
    if choose.number(0, 2) == 0:
        calls.append(Step("delete_snapshot", (top, name)))
    calls += [choose.among(changes) for _ in range(choose.among((1, 2, 3)))]
    first = [Step("allow_snapshot", (top,)), Step("create_snapshots", ((top,), name))]
    first += [choose.among(changes) for _ in range(choose.number(0, 2))]
    return tuple(first), calls


SNAPSHOT_SCENES = (clean_cut, clean_cut, going_back)

SCENES = (
    last_place,
    last_place,
    loop,
    vanishing_parent,
    vanishing_parent,
    one_file,
    one_name,
)


def _near_call(choose: Choose, near: World, focus: str) -> Step:
    user = choose.among((SUPERUSER, SUPERUSER, "alice", "bob"))
    child = join(focus, choose.among(NAMES))
    other = choose.among(near.paths)
    elsewhere = join(choose.among(near.paths), choose.among(NAMES))
    parent = focus.rpartition("/")[0] or "/"
    kind = choose.number(0, 15)
    if kind < 3:
        return Step("create", (child,), (("overwrite", choose.number(0, 3) == 0),), user)
    if kind < 4:
        return Step("mkdirs", (child,), (), user)
    if kind < 5:
        return Step("mkdirs", (join(child, choose.among(NAMES)),), (), user)
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
        return set_quota(choose, World(near.paths, usage or near.usage))
    return make_call(choose, near, 1, choose.among(WEIGHTED_ATOMIC))


def _is_near(path: str, focus: str) -> bool:
    top = "/" + focus.split("/")[1]
    return path == "/" or path.startswith(top)
