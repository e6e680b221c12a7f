"""Snapshots in the model: whole trees, copied.

Nothing is shared between a snapshot and what is there now, so nothing that is done later can
show in one.  A directory or a file may have snapshots, also below or above others that have.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from cairnfs.errors import (
    DSQuotaExceededException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    InvalidPathException,
    NSQuotaExceededException,
    PathComponentTooLongException,
    QuotaByStorageTypeExceededException,
    SnapshotException,
)
from cairnfs.testing.model.names import check_not_a_link, check_parent, existing
from cairnfs.testing.model.nodes import Found, Node, Usage, User
from cairnfs.testing.model.permissions import (
    READ,
    check_access,
    check_ancestor,
    check_may_list_all,
    check_owner,
    check_superuser,
)
from cairnfs.testing.model.snapshot_diff import Entry, diff, turn
from cairnfs.testing.model.tree import DOT_SNAPSHOT, ModelTree


class SnapshotCalls(ModelTree):
    """What takes, shows, names and removes snapshots, and goes back to them."""

    def allow_snapshot(self, user: User, path: str) -> None:
        check_superuser(user)
        existing(self._find_following(user, path)).is_snapshottable = True

    def disallow_snapshot(self, user: User, path: str) -> None:
        check_superuser(user)
        node = existing(self._find_following(user, path))
        if node.snapshots:
            raise SnapshotException(f"{path} has snapshots")
        node.is_snapshottable = False

    def create_snapshots(
        self, user: User, paths: tuple[str, ...], name: str = ""
    ) -> tuple[str, ...]:
        """Of several at once, or of none; the paths of the snapshots."""
        name = name or self._name_by_time()
        if "/" in name:
            raise InvalidPathException(name)
        _check_snapshot_name(name)
        nodes: dict[int, Node] = {}
        taken = []
        for path in paths:
            node = self._owned(user, path)
            self._check_snapshottable(node)
            if node.id in nodes:
                continue
            if name in node.snapshots:
                raise SnapshotException(f"{path} has a snapshot {name}")
            nodes[node.id] = node
            taken.append(f"{path.rstrip('/')}/{DOT_SNAPSHOT.decode()}/{name}")
        self._take(nodes.values(), name)
        return tuple(taken)

    def rename_snapshot(self, user: User, path: str, old: str, new: str) -> None:
        node = self._owned(user, path)
        self._check_snapshottable(node)
        if "/" in new or new == ".snapshot":
            raise HadoopIllegalArgumentException(new)
        _check_snapshot_name(new)
        self._snapshot(node, old)
        if old == new:
            return
        if new in node.snapshots:
            raise SnapshotException(f"{path} has a snapshot {new}")
        node.snapshots = {
            new if name == old else name: each for name, each in node.snapshots.items()
        }

    def delete_snapshot(self, user: User, path: str, name: str) -> None:
        node = self._owned(user, path)
        self._snapshot(node, name)
        del node.snapshots[name]

    def list_snapshots(self, user: User, path: str) -> list[str]:
        node = existing(self._find_following(user, path))
        check_access(user, node, READ)
        self._check_snapshottable(node)
        return sorted(node.snapshots)

    def list_snapshottable(self, user: User) -> list[str]:
        """The paths that the user may take snapshots of, in their order."""
        return sorted(
            found.text
            for found in self._all()
            if found.nodes[-1].is_snapshottable
            and (user.is_superuser or user.name == found.nodes[-1].owner)
        )

    def snapshot_diff(
        self, user: User, path: str, old: str, new: str, limit: int = 0
    ) -> list[Entry] | None:
        """What has to be done to get from one to the other; "" is what is there now.

        The snapshots are those of the nearest directory at or above the path that may have any.
        None: something was brought by a clone or a roll-back, and may be there twice.
        """
        found = self._find_following(user, path)
        node = existing(found)
        check_access(user, node, READ)
        owner = next((each for each in reversed(found.nodes) if each.is_snapshottable), node)
        states = [self._state(owner, node, name) for name in (old, new)]
        for state in states:
            check_access(user, state, READ)
            check_may_list_all(user, state, READ)
        are_copies = any(each.id in self.copies for state in states for each in state.walk())
        if are_copies and not self.diffs_copies:
            return None
        if old == new:
            return []
        order = [*owner.snapshots, ""]
        if order.index(old) < order.index(new):
            return diff(*states)
        return sorted(map(turn, diff(*reversed(states))))

    # Going back, and copies.

    def rollback_snapshot(
        self, user: User, path: str, name: str, safety: str = "", *, serving: str = ""
    ) -> str:
        """Make it what it was; what it had become is kept in a snapshot, if that has a name.

        Another one may serve, if it shows the same: whether it does is the product's affair.
        """
        node = self._owned(user, path)
        top = self._snapshot(node, name)
        live = {each.id: each for each in node.walk()}
        staying = {each.id for each in top.walk()}
        if self._is_doubtful(node, live, staying):
            self.doubts.append(path)
        if any(each.snapshots for id, each in live.items() if id not in staying):
            raise SnapshotException("something that would go has snapshots of its own")
        if safety:
            safety = self._keep(node, safety, serving)
        elsewhere = {each.id for each in self.root.walk()} - live.keys()
        back = top.copy()
        for each in back.walk():
            each.close()
            now = live.get(each.id)  # whether snapshots may be taken is no part of them
            if now is not None:
                _leave_guarded(now, each)
            each.snapshots = now.snapshots if now is not None else {}
            each.is_snapshottable = now is not None and now.is_snapshottable
            if each.id in elsewhere:  # it was moved out: what comes back is another one
                first = self.shown_for.get(each.id, each.id)
                self._make_another(each)
                self.shown_for[each.id] = first
        self._check_quotas_of_content(live, back)
        before, after = Usage.of(node), Usage.of(back)
        self._check_quotas(
            self._find_following(user, path).above,
            after.inodes - before.inodes,
            after.space_bytes - before.space_bytes,
        )
        back.snapshots, back.is_snapshottable = node.snapshots, True
        node.__dict__.update(back.__dict__, id=node.id)
        self._note_copies(node)
        return safety

    def rollback_snapshots(
        self,
        user: User,
        paths: tuple[str, ...],
        name: str,
        safety: str,
        *,
        serving: tuple[str, ...] = (),
    ) -> tuple[str, ...]:
        """The same for several, none of which is in another."""
        nodes = [self._owned(user, path) for path in paths]
        if sum(each in nodes for node in nodes for each in node.walk()) > len(nodes):
            raise SnapshotException("one is in another")
        kept = []
        for path, other in itertools.zip_longest(paths, serving, fillvalue=""):
            kept.append(self.rollback_snapshot(user, path, name, safety, serving=other))
        return tuple(kept)

    def clone_snapshot(self, user: User, path: str, name: str, destination: str) -> None:
        """A tree of its own that begins as a snapshot was."""
        node = existing(self._find_following(user, path))
        top = self._snapshot(node, name)
        check_access(user, top, READ)
        check_owner(user, top)
        found = self._find_to_create(user, destination)
        check_not_a_link(found)
        if found.target is not None:
            raise FileAlreadyExistsException(destination)
        check_parent(found)
        check_ancestor(user, found)
        copy = top.copy()
        if copy.is_directory:
            copy.mtime_ms = self._now()
        for each in copy.walk():
            self._make_another(each)
            each.is_snapshottable = False
            each.close()
        used = Usage.of(copy)
        name_there = found.missing[-1]
        self._add(found, name_there, copy, inodes=used.inodes, space_bytes=used.space_bytes)
        self._note_copies(copy)

    def _check_quotas_of_content(self, live: Mapping[int, Node], top: Node) -> None:
        """A directory's own quota allows what it is to have, or that is no more than before."""
        for each in top.walk():
            if each.quota is not None and each.id in live:
                before, after = Usage.of(live[each.id]), Usage.of(each)
                if after.inodes > before.inodes and -1 < each.quota.inodes < after.inodes:
                    raise NSQuotaExceededException("inodes")
                if after.space_bytes > before.space_bytes:
                    if -1 < each.quota.space_bytes < after.space_bytes:
                        raise DSQuotaExceededException("space")
                    if -1 < each.quota.disk_bytes < after.space_bytes:
                        raise QuotaByStorageTypeExceededException("disk")

    def _is_doubtful(self, top: Node, live: Mapping[int, Node], staying: Collection[int]) -> bool:
        """Whether what may have snapshots can be taken for one that comes back.

        Which of two it is that a roll-back shows, the product finds out only when that is changed,
        and so may take it for the one that was moved away before, if that is gone by then.
        """
        coming = {self.shown_for.get(id, id) for id in staying if id not in live}
        return any(
            each.is_snapshottable
            and each is not top
            and id not in staying
            and self.shown_for.get(id, id) in coming
            for id, each in live.items()
        )

    def _make_another(self, node: Node) -> None:
        """Which may go on in blocks of its own."""
        node.id = self._new_id()
        node.blocks = [replace(block, id=self._new_id()) for block in node.blocks]

    def _note_copies(self, top: Node) -> None:
        self.copies |= {each.id for each in top.walk()} - {top.id}

    def _take(self, nodes: Collection[Node], name: str) -> None:
        """All of one moment: each shows that the others were touched."""
        for node in nodes:
            if node.is_directory:
                node.mtime_ms = self._now()
        for node in nodes:
            node.snapshots[name] = node.frozen()

    def _keep(self, node: Node, name: str, serving: str) -> str:
        """Take a snapshot of what there was just before, which touches nothing; its name."""
        if node.snapshots.get(serving) == node.frozen():
            return serving
        if name in node.snapshots:
            raise SnapshotException(f"there is a snapshot {name}")
        node.snapshots[name] = node.frozen()
        return name

    def _state(self, owner: Node, node: Node, name: str) -> Node:
        """What this was in a snapshot of a directory above; or is."""
        self._check_snapshottable(owner)
        top = self._snapshot(owner, name) if name else owner
        for each in top.walk():
            if each.id == node.id:
                return each
        raise FileNotFoundException(f"it was not in {name}")

    def _snapshot(self, node: Node, name: str) -> Node:
        self._check_snapshottable(node)
        if name not in node.snapshots:
            raise SnapshotException(f"there is no snapshot {name}")
        return node.snapshots[name]

    def _check_snapshottable(self, node: Node) -> None:
        if not node.is_snapshottable:
            raise SnapshotException("not snapshottable")

    def _name_by_time(self) -> str:
        now = datetime.fromtimestamp(self._now() / 1000, UTC)
        return f"s{now:%Y%m%d-%H%M%S}.{now.microsecond // 1000:03}"

    def _all(self) -> list[Found]:
        """Everything there is, by path."""
        found = [Found((), [self.root])]
        for each in found:
            for name, child in sorted(each.nodes[-1].children.items()):
                found.append(Found((*each.names, name), [*each.nodes, child]))
        return found


def _check_snapshot_name(name: str) -> None:
    if name in ("", ".", "..", ".snapshot", ".reserved") or ":" in name or "\0" in name:
        raise InvalidPathException(name)
    if len(name.encode()) > 255:
        raise PathComponentTooLongException(name)


def _leave_guarded(now: Node, then: Node) -> None:
    """A roll-back leaves what only the superuser may set."""
    then.quota = now.quota
    kept = {name: value for name, value in now.xattrs.items() if not name.startswith("user.")}
    gone_back = {name: value for name, value in then.xattrs.items() if name.startswith("user.")}
    then.xattrs = gone_back | kept
