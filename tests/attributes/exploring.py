"""A system beside the magician: every sequence of operations up to a bound, or many at random.

After each operation everything is compared: every inode there is, in every snapshot, too.
Whatever is a `System` can be explored.  The operations are made of what the magician has, so
the same ones are asked of every system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.attributes.eager import EagerTree
from tests.attributes.operations import Kinds, Operation, System, Values
from tests.attributes.trees import Node

from cairnfs.namesystem.attribute_rules import AttributeKind

KINDS: Kinds = {
    "user.path": AttributeKind.FOLLOWS_PATH,
    "user.data": AttributeKind.STAYS_WITH_DATA,
    "user.local": AttributeKind.LOCAL,
}
NAMES = "abcdefghij"
COLOURS = ("red", "green", "blue")
SHAPES = (
    ("/a", "/a/a", "/a/a/a"),
    ("/a", "/a/a", "/a/b"),
    ("/a", "/a/a", "/b"),
    ("/a", "/b", "/c"),
)
"""All ways in which three inodes can be in a tree."""
WEIGHTS = {
    **{"set": 26, "remove": 7, "unset": 5, "rename": 20, "rename_over": 7},
    **{"mkdir": 15, "create": 4, "delete": 3},
    **{"create_snapshot": 5, "delete_snapshot": 2, "rollback": 4, "clone": 2},
}
"""How often each operation is tried on a random walk."""
STEPS_OF_A_WALK = 120
INODES_OF_A_WALK = 9
SNAPSHOTS_OF_A_WALK = 3


class Difference(Exception):
    """A system is not as the magician would have it; says after which operations."""


class Incomparable(Exception):
    """One side has refused what the other has done, and either may be right."""


@dataclass
class Tally:
    """What was compared."""

    sequences: int = 0
    operations: int = 0
    comparisons: int = 0  # of an inode with all its attributes
    cut_short: int = 0  # sequences that ended before their time: see `Pair.apply`


@dataclass
class Pair:
    """A system and the magician, who are asked the same."""

    system: System
    tally: Tally
    magician: EagerTree = field(default_factory=EagerTree)
    done: list[Operation] = field(default_factory=list)

    def begin(self) -> None:
        self.done.clear()
        for each in (self.system, self.magician):
            each.begin(KINDS)

    def apply(self, operation: Operation) -> None:
        """Both do it, or both refuse it.

        Whether a roll-back would remove something that has snapshots of its own depends on what
        counts as the same inode after earlier ones.  That is not for attributes to say.
        """
        self.done.append(operation)
        self.tally.operations += 1
        is_nested = operation.name == "rollback" and self._has_snapshots_below(operation)
        wanted = operation.apply(self.magician)
        found = operation.apply(self.system)
        if (wanted is None) != (found is None):
            if is_nested:
                raise Incomparable
            raise self._difference("the outcome", wanted or "done", found or "done")

    def _has_snapshots_below(self, operation: Operation) -> bool:
        top = operation.arguments[0].rstrip("/")
        return any(path.startswith(f"{top}/") for path, _ in _snapshots(self.magician))

    def compare(self) -> None:
        paths = self.magician.paths()
        self._compare("/", None)
        for path, node in paths.items():
            for name in self.magician.snapshots.get(node.id, ()):
                self._compare(path, name)

    def _compare(self, path: str, snapshot: str | None) -> None:
        wanted = self.magician.values(path, snapshot)
        found = self.system.values(path, snapshot)
        self.tally.comparisons += len(wanted)
        if wanted != found:
            where = path if snapshot is None else f"{path} in snapshot {snapshot}"
            raise self._difference(where, wanted, found)

    def _difference(self, what: str, wanted: object, found: object) -> Difference:
        done = "\n".join(f"  {operation}" for operation in self.done)
        return Difference(f"{what}\n  expected: {wanted}\n  found:    {found}\nafter\n{done}")


# Every sequence.


@dataclass(frozen=True)
class Bounds:
    """How far an exploration goes."""

    operations: int
    inodes: int = 3  # beside the root
    snapshots: int = 1  # at a time


def explore(
    system: System,
    bounds: Bounds,
    *,
    shapes: Iterable[tuple[str, ...]] = ((), *SHAPES),
    on_progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Every sequence of operations up to a bound: on nothing, and on each shape of three inodes."""
    tally = Tally()
    pair = Pair(system, tally)
    level = [tuple(Operation("mkdir", (path,)) for path in shape) for shape in shapes]
    for _ in range(bounds.operations):
        following: list[tuple[Operation, ...]] = []
        for sequence in level:
            _replay(pair, sequence)
            for step in list(steps(pair.magician, bounds)):
                longer = (*sequence, *step)
                _replay(pair, longer)
                pair.compare()
                tally.sequences += 1
                following.append(longer)
            if on_progress is not None:
                on_progress(tally)
        level = following
    return tally


def _replay(pair: Pair, sequence: tuple[Operation, ...]) -> None:
    pair.begin()
    for operation in sequence:
        pair.apply(operation)


def steps(magician: EagerTree, bounds: Bounds) -> Iterator[tuple[Operation, ...]]:
    """What can be done next; names are given in order, since they do not matter.

    Attributes do not look at each other: whatever is done to one is done to all, in one step.
    """
    paths = magician.paths()
    room = bounds.inodes + 1 - len(paths)
    free = [(path, _free_name(path, node)) for path, node in paths.items()]
    for path, new in free:
        if room > 0:
            yield (Operation("mkdir", (new,)),)
        yield tuple(Operation("set", (path, name, "red")) for name in KINDS)
        yield tuple(Operation("remove", (path, name)) for name in KINDS)
        if path != "/":
            yield tuple(Operation("unset", (path, name)) for name in KINDS)
    yield from _moves(magician, free)
    taken = _snapshots(magician)
    if len(taken) < bounds.snapshots:
        name = next(each for each in NAMES if each not in {name for _, name in taken})
        for path in paths:
            yield (Operation("create_snapshot", (path, name)),)
    for path, name in taken:
        yield (Operation("delete_snapshot", (path, name)),)
        snapshot = magician.snapshots[paths[path].id][name].top
        size = sum(1 for _ in snapshot.walk())
        if len(paths) - sum(1 for _ in paths[path].walk()) + size <= bounds.inodes + 1:
            yield (Operation("rollback", (path, name)),)
        if size <= room:
            for _, new in free:
                yield (Operation("clone", (path, name, new)),)


def _moves(magician: EagerTree, free: list[tuple[str, str]]) -> Iterator[tuple[Operation, ...]]:
    for source, node in magician.paths().items():
        if source == "/" or any(each.id in magician.snapshots for each in node.walk()):
            continue
        yield (Operation("delete", (source,)),)
        for parent, new in free:
            if not f"{parent}/".startswith(f"{source}/"):
                yield (Operation("rename", (source, new)),)
        for target, other in magician.paths().items():
            if target not in ("/", source) and not other.children:
                yield (Operation("rename_over", (source, target)),)


def _free_name(path: str, node: Node[Values]) -> str:
    name = next(name for name in NAMES if name not in node.children)
    return f"{path.rstrip('/')}/{name}"


def _snapshots(magician: EagerTree) -> list[tuple[str, str]]:
    return [
        (path, name)
        for path, node in magician.paths().items()
        for name in magician.snapshots.get(node.id, ())
    ]


# At random.


def wander(
    system: System,
    seed: int,
    comparisons: int,
    *,
    on_progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Random walks, one after the other, until so many inodes were compared."""
    tally = Tally()
    random = Random(seed)
    pair = Pair(system, tally)
    while tally.comparisons < comparisons:
        pair.begin()
        tally.sequences += 1
        try:
            for _ in range(STEPS_OF_A_WALK):
                pair.apply(_any_operation(random, pair.magician))
                pair.compare()
                if tally.comparisons >= comparisons:
                    break
        except Incomparable:
            tally.cut_short += 1
        if on_progress is not None:
            on_progress(tally)
    return tally


def _any_operation(random: Random, magician: EagerTree) -> Operation:
    """One that mostly makes sense; now and then one that is refused."""
    nodes = magician.paths()
    taken = _snapshots(magician)
    (name,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
    if len(nodes) > INODES_OF_A_WALK and name in ("mkdir", "create", "clone"):
        name = "delete"
    if len(taken) >= SNAPSHOTS_OF_A_WALK and name == "create_snapshot":
        name = "delete_snapshot"
    path = random.choice(list(nodes))
    directory = random.choice([each for each, node in nodes.items() if node.is_directory])
    new = f"{directory.rstrip('/')}/{random.choice(NAMES)}"
    attribute = random.choice(list(KINDS))
    snapshot = random.choice(taken) if taken else (path, "none")
    arguments: dict[str, tuple[str, ...]] = {
        "set": (path, attribute, random.choice(COLOURS)),
        "remove": (path, attribute),
        "unset": (path, attribute),
        "rename": (path, new),
        "rename_over": (path, random.choice(list(nodes))),
        "mkdir": (new,),
        "create": (new,),
        "delete": (path,),
        "create_snapshot": (path, random.choice(NAMES)),
        "delete_snapshot": snapshot,
        "rollback": snapshot,
        "clone": (*snapshot, new),
    }
    return Operation(name, arguments[name])
