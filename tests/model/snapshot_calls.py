"""Random calls of snapshots; they are made only where snapshots are asked for."""

from __future__ import annotations

from typing import Any

from tests.model.steps import NAMES, SUPERUSER, USERS, Choose, Step, World

SNAPSHOT_OPERATIONS: dict[str, int] = {
    "allow_snapshot": 6,
    "disallow_snapshot": 2,
    "create_snapshots": 14,
    "rename_snapshot": 3,
    "delete_snapshot": 8,
    "list_snapshots": 1,
    "list_snapshottable": 1,
    "snapshot_diff": 6,
    "rollback_snapshot": 5,
    "clone_snapshot": 4,
}
"""How often each is called."""

SNAPSHOT_NAMES = ("s1", "s2", "s3", "s4")
ODD_SNAPSHOT_NAMES = ("", "a/b", ".snapshot", "..", "a:b", "x" * 256, "ü")


def make_snapshot_call(choose: Choose, world: World, operation: str) -> Step:
    """One call of one operation, mostly by the superuser."""
    step: Step = globals()[operation](choose, world)
    user = choose.among((SUPERUSER, SUPERUSER, SUPERUSER, *USERS))
    return Step(operation, step.arguments, step.options, user)


def snapshot_path(choose: Choose, world: World) -> str:
    """Something in a snapshot, or that might have been."""
    path = choose.among(world.in_snapshots)
    return path if choose.number(0, 3) else f"{path}/{choose.among(NAMES)}"


def allow_snapshot(choose: Choose, world: World) -> Step:
    return Step("allow_snapshot", (_any_path(choose, world),))


def disallow_snapshot(choose: Choose, world: World) -> Step:
    return Step("disallow_snapshot", (_snapshottable(choose, world),))


def create_snapshots(choose: Choose, world: World) -> Step:
    paths = tuple(_snapshottable(choose, world) for _ in range(choose.among((1, 1, 1, 2, 3))))
    return Step("create_snapshots", (paths, _name(choose)))


def rename_snapshot(choose: Choose, world: World) -> Step:
    return Step("rename_snapshot", (*_snapshot(choose, world), _name(choose)))


def delete_snapshot(choose: Choose, world: World) -> Step:
    return Step("delete_snapshot", _snapshot(choose, world))


def list_snapshots(choose: Choose, world: World) -> Step:
    return Step("list_snapshots", (_snapshottable(choose, world),))


def list_snapshottable(choose: Choose, world: World) -> Step:
    return Step("list_snapshottable")


def snapshot_diff(choose: Choose, world: World) -> Step:
    path, name = _snapshot(choose, world)
    others = [other for where, other in world.snapshots if where == path]
    limit = choose.among((1, 2, 1000))
    return Step("snapshot_diff", (path, name, choose.among(("", *others)), limit))


def rollback_snapshot(choose: Choose, world: World) -> Step:
    path, name = _snapshot(choose, world)
    if path == "/":  # it would need its own past for ever
        path = "/a"
    return Step("rollback_snapshot", (path, name))


def clone_snapshot(choose: Choose, world: World) -> Step:
    parent = choose.among(world.paths).rstrip("/")
    return Step("clone_snapshot", (*_snapshot(choose, world), f"{parent}/{choose.among(NAMES)}"))


def _any_path(choose: Choose, world: World) -> Any:
    return choose.among(world.paths)


def _snapshottable(choose: Choose, world: World) -> Any:
    if world.snapshottable and choose.number(0, 7):
        return choose.among(world.snapshottable)
    return _any_path(choose, world)


def _snapshot(choose: Choose, world: World) -> tuple[Any, str]:
    if world.snapshots and choose.number(0, 9):
        return choose.among(world.snapshots)
    return _snapshottable(choose, world), _name(choose)


def _name(choose: Choose) -> str:
    return choose.among(SNAPSHOT_NAMES if choose.number(0, 19) else ODD_SNAPSHOT_NAMES)
