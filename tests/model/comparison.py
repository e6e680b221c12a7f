"""Whether the product answers, and looks, as the model does (pure).

Ids are the product's own affair: they are compared up to a bijection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from tests.model.steps import SUPERUSER, USERS

from cairnfs.blocks.records import Block
from cairnfs.errors import SnapshotAccessControlException, SnapshotException
from cairnfs.namesystem.acl_operations import AclStatus
from cairnfs.namesystem.answers import ContentSummary, FileStatus, LocatedBlock, LocatedBlocks
from cairnfs.namesystem.append import LastBlockWithStatus
from cairnfs.namesystem.listings import Listing
from cairnfs.namesystem.quota_operations import QuotaUsage
from cairnfs.namesystem.snapshot_diff import DiffEntry
from cairnfs.namesystem.snapshots import SnapshotInfo, SnapshottableInfo
from cairnfs.testing.model import ModelFileSystem, Node, existing


class Divergence(AssertionError):
    """The product did what the model does not allow."""


@dataclass
class Outcome:
    """What a call came to."""

    result: Any = None
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {str(self.error)[:200]}"
        return repr(self.result)


class Seen(NamedTuple):
    """What the product says of one path."""

    status: FileStatus
    summary: ContentSummary
    acl: AclStatus | None
    xattrs: dict[str, bytes]
    located: LocatedBlocks | None = None  # of a file


class Ids:
    """Which id of the product is which of the model; a layer can be thrown away.

    With snapshots it is the product's own affair, too, when it goes on in another block, and
    under which ids it shows what a roll-back or a clone has brought: the model's `copies`.
    """

    def __init__(
        self, below: Ids | None = None, *, with_snapshots: bool = False, of_past: bool = False
    ) -> None:
        self._below = below
        self._of_past = of_past  # what is matched is in a snapshot: ids may be others now
        self.with_snapshots = below.with_snapshots if below else with_snapshots
        self.copies: set[int] = below.copies if below else set()
        self._to_product: dict[int, Any] = {}
        self._to_model: dict[Any, int] = {}
        self._seen: set[int] = set()  # inodes of the product that are copies

    def product(self, model: int) -> Any:
        found = self._to_product.get(model)
        return self._below.product(model) if found is None and self._below else found

    def model(self, product: Any) -> int | None:
        found = self._to_model.get(product)
        return self._below.model(product) if found is None and self._below else found

    def match(self, model: int, product: Any) -> bool:
        """They are the same thing, or both are new."""
        if model in self.copies:
            if not self._of_past:
                self._to_product[model] = product
            self._seen.add(product)
            return True
        known, known_back = self.product(model), self.model(product)
        if known is None and known_back is None:
            self._to_product[model] = product
            self._to_model[product] = model
            return True
        return bool(known == product and known_back == model)

    def match_block(self, model: int, block: Block) -> bool:
        """They are the same block of a file, whose bytes may be in another one by now."""
        product = block.id, block.generation_stamp
        if not self.with_snapshots:
            return self.match(model, product)
        if not self._of_past:
            self._to_product[model] = product
            self._to_model[product] = model
        return True

    def inodes(self) -> list[int]:
        """All inodes of the product that were seen; blocks have pairs for ids."""
        return sorted(self._seen.union(id for id in self._to_model if isinstance(id, int) and id))

    def keep(self) -> None:
        assert self._below is not None
        self._below._to_product.update(self._to_product)
        self._below._to_model.update(self._to_model)
        self._below._seen |= self._seen


def matches(expected: Outcome, outcome: Outcome, ids: Ids) -> bool:
    """Whether the product's outcome is the model's."""
    if expected.error is not None or outcome.error is not None:
        return type(expected.error) is type(outcome.error) or _are_both_right(expected, outcome)
    wanted, got = expected.result, outcome.result
    if isinstance(got, list) and got and isinstance(got[0], SnapshotInfo):
        return bool(wanted == [each.name.decode() for each in got])
    if isinstance(got, list) and got and isinstance(got[0], DiffEntry):
        return wanted is None or bool(wanted == sorted(map(describe_difference, got)))
    if wanted is None and got == []:
        return True
    if isinstance(got, list) and got and isinstance(got[0], SnapshottableInfo):
        return bool(wanted == [each.path for each in got])
    if isinstance(got, FileStatus):
        return isinstance(wanted, FileStatus) and same_status(wanted, got, ids)
    if isinstance(got, Listing):
        if not isinstance(wanted, tuple):
            return False
        entries, has_more = wanted
        return (
            len(entries) == len(got.entries)
            and has_more == (got.remaining > 0)
            and all(same_status(w, g, ids) for w, g in zip(entries, got.entries, strict=True))
        )
    if isinstance(got, ContentSummary):
        return bool(wanted == _summary(got))
    if isinstance(got, LocatedBlock):
        block, offset = wanted
        new = got.block.id, got.block.generation_stamp
        return offset == got.offset_bytes and ids.match(block.id, new)
    if isinstance(got, LastBlockWithStatus):
        return same_appended(wanted, got, ids)
    if isinstance(got, LocatedBlocks):
        return same_locations(wanted, got, ids)
    if isinstance(got, AclStatus):
        return bool(wanted == (got.owner, got.group, got.mode, got.entries))
    if isinstance(got, QuotaUsage):
        types_add_up = got.type_bytes == (0, got.space_bytes, 0, 0, 0)
        return types_add_up and wanted == (got.inodes, got.space_bytes, got.quota)
    return bool(wanted == got)


def describe_difference(entry: DiffEntry) -> tuple[str, ...]:
    """A difference as the model tells it."""
    paths = (entry.path,) if entry.target is None else (entry.path, entry.target)
    return "M+-R"[entry.kind], *(b"/".join(path).decode() for path in paths)


def _are_both_right(expected: Outcome, outcome: Outcome) -> bool:
    """Of several reasons to refuse a call, one of which is a snapshot, any may be told."""
    both = expected, outcome
    return all(each.error is not None or each.result is False for each in both) and any(
        isinstance(each.error, SnapshotException | SnapshotAccessControlException) for each in both
    )


def same_appended(wanted: tuple[Any, ...], got: LastBlockWithStatus, ids: Ids) -> bool:
    block, offset, status = wanted
    if not same_status(status, got.status, ids):
        return False
    if block is None or got.block is None:
        return block is None and got.block is None
    return (block.length_bytes, offset) == (
        got.block.block.length_bytes,
        got.block.offset_bytes,
    ) and ids.match_block(block.id, got.block.block)


def same_locations(wanted: tuple[Any, ...], got: LocatedBlocks, ids: Ids) -> bool:
    id, length_bytes, under_construction, blocks, last_is_complete = wanted
    if id in ids.copies and not under_construction and not all(length for _, length, _ in blocks):
        return ids.match(id, int(got.inode_id))  # empty blocks need not be shared with an origin
    return (
        ids.match(id, int(got.inode_id))
        and length_bytes == got.length_bytes
        and under_construction == got.under_construction
        and last_is_complete == got.last_is_complete
        and [(length, offset) for _, length, offset in blocks]
        == [(each.block.length_bytes, each.offset_bytes) for each in got.blocks]
        and all(
            ids.match_block(block_id, each.block)
            for (block_id, _, _), each in zip(blocks, got.blocks, strict=True)
        )
    )


def same_status(wanted: FileStatus, got: FileStatus, ids: Ids) -> bool:
    if got.id == 0:  # of /.reserved; its times mean nothing
        return (wanted.id, wanted.name, wanted.mode) == (got.id, got.name, got.mode)
    if wanted.id in ids.copies:  # to read what is shared with an origin does not touch it
        wanted = msgspec.structs.replace(wanted, atime_ms=got.atime_ms)
    return _without_id(wanted) == _without_id(got) and ids.match(wanted.id, int(got.id))


def compare_trees(
    model: ModelFileSystem, tree: dict[str, Seen], ids: Ids, top: str = "/"
) -> str | None:
    """What is different, if anything is; of what is there now, or of a snapshot."""
    admin = USERS[SUPERUSER]
    paths = set()
    for path, node in walk_nodes(existing(model.find(admin, top)), top):
        paths.add(path)
        if path not in tree:
            return f"{path} is missing"
        got, summary, acl, xattrs, located = tree[path]
        wanted = model.get_file_link_info(admin, path)
        assert wanted is not None
        wanted = msgspec.structs.replace(wanted, name=got.name)
        if not same_status(wanted, got, ids):
            return f"{path}: product {got}, model {wanted}"
        if (acl.entries if acl else ()) != (node.acl or ()):
            return f"{path}: product {acl}, model {node.acl}"
        if xattrs != node.xattrs:
            return f"{path}: product {xattrs}, model {node.xattrs}"
        expected = model.get_content_summary(admin, path)
        if expected != _summary(summary):
            return f"{path}: summary {_summary(summary)}, model {expected}"
        if located is not None:
            read_ms = node.atime_ms
            blocks = model.get_block_locations(admin, path)
            node.atime_ms = read_ms  # this was no call
            if not same_locations(blocks, located, ids):
                return f"{path}: blocks {located}, model {blocks}"
    extra = set(tree) - paths
    return f"{sorted(extra)} should not be there" if extra else None


def snapshot_path(path: str, name: str) -> str:
    """Where a snapshot is read."""
    return f"{path.rstrip('/')}/.snapshot/{name}"


def walk_nodes(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, child in sorted(node.children.items()):
        yield from walk_nodes(child, f"{path.rstrip('/')}/{name.decode()}")


def _summary(summary: ContentSummary) -> tuple[Any, ...]:
    if summary.type_bytes != (0, summary.space_bytes, 0, 0, 0):
        return ("types do not add up", summary)
    return (
        summary.length_bytes,
        summary.files,
        summary.directories,
        summary.symlinks,
        summary.space_bytes,
        summary.quota,
    )


def _without_id(status: FileStatus) -> tuple[Any, ...]:
    return (
        *(status.kind, status.name, status.length_bytes, status.mode, status.owner, status.group),
        *(status.mtime_ms, status.atime_ms, status.target, status.replication),
        *(status.block_size_bytes, status.children, status.has_acl, status.under_construction),
    )
