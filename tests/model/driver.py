"""The product beside the model: runs steps on both and compares everything.

Ids are the product's own affair: they are compared up to a bijection.  Calls
that are made at the same time may take effect in any order, but in one: some
order of them, applied to the model, must give all their results and the tree.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.model.delays import Delays
from tests.model.steps import (
    SUPERUSER,
    USERS,
    Batch,
    BlockRef,
    FileRef,
    InodePath,
    PathOf,
    Step,
    World,
    WriterOf,
)

from cairnfs.blocks.records import Block, BlockId, BlockState, GenerationStamp, StorageType
from cairnfs.clock import ManualClock
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.namenode.client_protocol import ClientProtocol, NameNodeThread
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem import acl_operations, directories
from cairnfs.namesystem.acl_operations import AclStatus
from cairnfs.namesystem.directories import ContentSummary, Listing
from cairnfs.namesystem.file_blocks import LocatedBlock, LocatedBlocks
from cairnfs.namesystem.inodes import Kind
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET, QuotaUsage
from cairnfs.namesystem.rename import RenameOption
from cairnfs.namesystem.status import FileStatus
from cairnfs.testing.invariants import check_invariants, check_no_leftovers
from cairnfs.testing.model import ModelBlock, ModelFileSystem, Node, Usage
from cairnfs.transaction.calls import CallKey, Operation

ANSWER_TIMEOUT_S = 60
NO_BLOCK_ID = 999_999_999


@dataclass(frozen=True)
class Configuration:
    """A store, a concurrency control, and how many NameNodes."""

    store: str
    control: Control
    namenodes: int = 1

    @property
    def name(self) -> str:
        twice = "-x2" if self.namenodes == 2 else ""
        return f"{self.store}-{self.control.value}{twice}"


CONFIGURATIONS = {
    configuration.name: configuration
    for configuration in (
        *(Configuration("sqlite", control) for control in Control),
        *(Configuration("postgres", control) for control in Control),
        *(Configuration("postgres", control, 2) for control in Control),
    )
}


class Seen(NamedTuple):
    """What the product says of one path."""

    status: FileStatus
    summary: ContentSummary
    acl: AclStatus | None


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


class Ids:
    """Which id of the product is which of the model; a layer can be thrown away."""

    def __init__(self, below: Ids | None = None) -> None:
        self._below = below
        self._to_product: dict[int, Any] = {}
        self._to_model: dict[Any, int] = {}

    def product(self, model: int) -> Any:
        found = self._to_product.get(model)
        return self._below.product(model) if found is None and self._below else found

    def model(self, product: Any) -> int | None:
        found = self._to_model.get(product)
        return self._below.model(product) if found is None and self._below else found

    def match(self, model: int, product: Any) -> bool:
        """They are the same thing, or both are new."""
        known, known_back = self.product(model), self.model(product)
        if known is None and known_back is None:
            self._to_product[model] = product
            self._to_model[product] = model
            return True
        return bool(known == product and known_back == model)

    def inodes(self) -> list[int]:
        """All inodes of the product that were seen; blocks have pairs for ids."""
        return [id for id in self._to_model if isinstance(id, int) and id]

    def keep(self) -> None:
        assert self._below is not None
        self._below._to_product.update(self._to_product)
        self._below._to_model.update(self._to_model)


@dataclass
class Handle:
    """A file that was created, for later steps to refer to."""

    user: str
    model_path: str
    product_path: str
    model_id: int
    blocks: list[int] = field(default_factory=list)  # the model's ids


class RecordingClient(ClientProtocol):
    """A client whose at-most-once calls can be sent again, to any NameNode."""

    def __init__(self, product: Product, namenode: int, user: str) -> None:
        thread = product.namenodes[namenode]
        identity = USERS[user]
        caller = thread.namenode.caller(user, tuple(identity.groups), "127.0.0.1")
        super().__init__(thread, caller)
        self.client_id = user.encode().ljust(16, b"\0")
        self.client_name = identity.holder
        self._call_ids = product.call_ids
        self._product = product

    def _run(self, operation: Operation, *arguments: Any) -> Any:
        key = None
        if operation.at_most_once:
            key = CallKey(self.client_id, next(self._call_ids))
        result = self._namenode.wait(self._namenode.namenode.call(operation, *arguments, key=key))
        if key is not None and _was_stored(operation, arguments, result):
            self._product.retryable = (operation, arguments, key, result)
        return result


def _was_stored(operation: Operation, arguments: tuple[Any, ...], result: Any) -> bool:
    """As in HDFS, the reply to a call that changed nothing is not kept."""
    if operation.name == "rename":
        _, source, destination = arguments
        if source.is_reserved or destination in (source, source.parent):
            return False
    return result is not False


class Product:
    """One to several NameNodes on one store."""

    def __init__(self, configuration: Configuration, url: str, clock: ManualClock) -> None:
        self.configuration = configuration
        self.clock = clock
        self.call_ids = itertools.count(1)
        self.retryable: tuple[Operation, tuple[Any, ...], CallKey, Any] | None = None
        self._settings = NameNodeSettings(
            url, configuration.control, duties=False, address="127.0.0.1:8020"
        )
        self.delays = Delays()
        self._past_conflicts = 0  # of NameNodes before their restart
        self._pool = ThreadPoolExecutor(8)
        asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
        self.namenodes: list[NameNodeThread] = []
        self._clients: dict[tuple[int, str], RecordingClient] = {}
        for index in range(configuration.namenodes):
            self.namenodes.append(self._start())
            self._make_clients(index)

    def client(self, namenode: int, user: str) -> RecordingClient:
        return self._clients[namenode % len(self.namenodes), user]

    def start_call(self, namenode: int, user: str, name: str, *args: Any, **kw: Any) -> Future[Any]:
        return self._pool.submit(getattr(self.client(namenode, user), name), *args, **kw)

    def restart(self, namenode: int) -> None:
        index = namenode % len(self.namenodes)
        self._past_conflicts += sum(self.namenodes[index].statistics.conflicts.values())
        self.namenodes[index].stop()
        self.namenodes[index] = self._start()
        self._make_clients(index)

    def reclaim(self, namenode: int) -> None:
        thread = self.namenodes[namenode % len(self.namenodes)]
        thread.wait(thread.namenode.duties.reclaim_detached())

    def retry(self, namenode: int) -> tuple[Any, Any]:
        """Send the last at-most-once call again: its answer, and the first one."""
        assert self.retryable is not None
        operation, arguments, key, first = self.retryable
        thread = self.namenodes[namenode % len(self.namenodes)]
        again = thread.namenode.call(operation, *arguments, key=key, is_retry=True)
        return thread.wait(again), first

    def tree(self, namenode: int) -> dict[str, Seen]:
        """Everything there is, as the superuser sees it."""
        thread = self.namenodes[namenode % len(self.namenodes)]
        tree: dict[str, Seen] = thread.wait(_read_tree(thread.namenode))
        return tree

    @property
    def conflicts(self) -> int:
        now = sum(sum(each.statistics.conflicts.values()) for each in self.namenodes)
        return self._past_conflicts + now

    def close(self) -> None:
        for thread in self.namenodes:
            thread.stop()
        self._pool.shutdown()

    def _start(self) -> NameNodeThread:
        thread = NameNodeThread(self._settings, self.clock)
        self.delays.wrap(thread.namenode.store)
        return thread

    def _make_clients(self, index: int) -> None:
        for user in USERS:
            self._clients[index, user] = RecordingClient(self, index, user)


async def _read_tree(namenode: NameNode) -> dict[str, Seen]:
    caller = namenode.caller(SUPERUSER, ("supergroup",))
    tree: dict[str, Seen] = {}

    async def visit(path: str, status: FileStatus) -> None:
        summary = await namenode.call(directories.get_content_summary, caller, FsPath.parse(path))
        acl = None
        if status.has_acl:
            acl = await namenode.call(acl_operations.get_acl_status, caller, FsPath.parse(path))
        tree[path] = Seen(status, summary, acl)
        if status.kind is not Kind.DIRECTORY:
            return
        listing = await namenode.call(
            directories.get_listing, caller, FsPath.parse(path), b"", 10_000
        )
        if len(listing.entries) != status.children:
            raise Divergence(f"{path}: {status.children} children, {len(listing.entries)} listed")
        for entry in listing.entries:
            await visit(f"{path.rstrip('/')}/{entry.name.decode()}", entry)

    root = await namenode.call(directories.get_file_info, caller, FsPath.parse("/"))
    await visit("/", root)
    return tree


class Pair:
    """Model and product, always in the same state."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.clock = product.clock
        self.steps = 0
        self.begin()

    def begin(self) -> None:
        """An empty tree, whatever there was before, with a few directories for everybody."""
        admin = self.product.client(0, SUPERUSER)
        listing = admin.get_listing("/", b"", 10_000)
        assert listing is not None
        for entry in listing.entries:
            admin.delete(f"/{entry.name.decode()}", recursive=True)
        admin.remove_acl("/")
        admin.set_permission("/", 0o777)
        admin.set_owner("/", SUPERUSER, "supergroup")
        for storage_type in (None, StorageType.DISK, StorageType.SSD):
            namespace_quota = -1 if storage_type is None else QUOTA_DONT_SET
            admin.set_quota("/", namespace_quota, -1, storage_type)
        for path, mode in (("/a", 0o777), ("/b", 0o1777), ("/c", 0o755)):
            admin.mkdirs(path, mode)
        self.product.retryable = None
        self.ids = Ids()
        self.handles: list[Handle] = []
        self.model = ModelFileSystem(self.clock, SUPERUSER)
        self.model.call(USERS[SUPERUSER], "set_permission", "/", 0o777)
        for path, mode in (("/a", 0o777), ("/b", 0o1777), ("/c", 0o755)):
            self.model.call(USERS[SUPERUSER], "mkdirs", path, mode)
        root = admin.get_file_info("/")
        assert root is not None
        self.model.root.mtime_ms, self.model.root.atime_ms = root.mtime_ms, root.atime_ms
        self.check_tree(0)

    def world(self) -> World:
        """What there is to choose from."""
        world = World([], {})
        for path, node in _walk(self.model.root, "/"):
            world.paths.append(path)
            if node.is_directory:
                used = Usage.of(node)
                world.usage[path] = (used.inodes, used.space_bytes)
        return world

    def run(self, step: Step | Batch) -> None:
        """Run a step on both; raise Divergence if they differ."""
        self.steps += len(step.steps) + len(step.before) if isinstance(step, Batch) else 1
        if isinstance(step, Batch):
            self._run_batch(step)
        elif step.operation == "advance":
            self.clock.advance(step.arguments[0])
        elif step.operation == "reclaim":
            self.product.reclaim(step.namenode)
        elif step.operation == "restart":
            self.product.restart(step.namenode)
        elif step.operation == "check":
            self.check_tree(step.namenode)
        elif step.operation == "retry":
            if self.product.retryable is not None:
                self._run_retry(step)
        else:
            self._run_one(step)

    def check_tree(self, namenode: int) -> None:
        """Compare everything there is."""
        tree = self.product.tree(namenode)
        ids = Ids(self.ids)
        difference = compare_trees(self.model, tree, ids)
        if difference:
            raise Divergence(difference)
        ids.keep()

    def check_invariants(self) -> None:
        """Ask the store whether its rows fit together, and whether any is left over."""
        thread = self.product.namenodes[0]
        try:
            thread.wait(check_invariants(thread.namenode.store))
            thread.wait(thread.namenode.duties.reclaim_everything())
            thread.wait(check_invariants(thread.namenode.store))
            thread.wait(check_no_leftovers(thread.namenode.store, self.ids.inodes()))
        except AssertionError as error:
            raise Divergence(f"invariants: {error}") from error

    # Steps.

    def _run_retry(self, step: Step) -> None:
        try:
            again, first = self.product.retry(step.namenode)
        except Exception as error:
            raise Divergence(f"a retry of {self.product.retryable} failed: {error!r}") from error
        if again != first:
            raise Divergence(
                f"a retry of {self.product.retryable} was answered {again!r}, first {first!r}"
            )

    def _run_one(self, step: Step) -> None:
        outcome = self._answer(self._start(step))
        ids = Ids(self.ids)
        expected = self._model_outcome(self.model, step)
        if not matches(expected, outcome, ids):
            raise Divergence(f"{step}\n  product: {outcome}\n  model:   {expected}")
        ids.keep()
        self._note(step, expected)

    def _run_batch(self, batch: Batch) -> None:
        for step in batch.before:
            self._run_one(step)
        self.product.delays.active = batch.slow
        started = [self._start(step) for step in batch.steps]
        outcomes = [self._answer(each) for each in started]
        self.product.delays.active = False
        tree = self.product.tree(batch.steps[0].namenode)
        for order, model, ids, results in self._orders(batch, outcomes):
            if compare_trees(model, tree, ids) is None:
                self.model = model
                while ids is not self.ids:
                    ids.keep()
                    assert ids._below is not None
                    ids = ids._below
                for index, result in zip(order, results, strict=True):
                    self._note(batch.steps[index], result, of_batch=True)
                return
        lines = [
            f"  {step}\n    product: {o}" for step, o in zip(batch.steps, outcomes, strict=True)
        ]
        reached = [order for order, *_ in self._orders(batch, outcomes)]
        hint = f"orders with these results but another tree: {reached}" if reached else ""
        if reached:
            _, model, ids, _ = next(self._orders(batch, outcomes))
            hint += f"\n  e.g. {compare_trees(model, tree, ids)}"
        raise Divergence("no order explains\n" + "\n".join(lines) + "\n  " + hint)

    def _orders(
        self, batch: Batch, outcomes: list[Outcome]
    ) -> Iterator[tuple[list[int], ModelFileSystem, Ids, list[Outcome]]]:
        """The orders in which the model answers as the product did."""

        def extend(
            done: list[int], model: ModelFileSystem, ids: Ids, results: list[Outcome]
        ) -> Iterator[tuple[list[int], ModelFileSystem, Ids, list[Outcome]]]:
            if len(done) == len(outcomes):
                yield done, model, ids, results
                return
            for index in range(len(outcomes)):
                if index in done:
                    continue
                next_model, next_ids = model.copy(), Ids(ids)
                result = self._model_outcome(next_model, batch.steps[index])
                if matches(result, outcomes[index], next_ids):
                    yield from extend([*done, index], next_model, next_ids, [*results, result])

        yield from extend([], self.model, self.ids, [])

    def _start(self, step: Step) -> Future[Any]:
        arguments = [self._for_product(step, value) for value in step.arguments]
        options = {name: self._for_product(step, value) for name, value in step.options}
        if step.operation == "rename2":
            arguments[2] = RenameOption(arguments[2])
        if step.operation == "set_quota" and arguments[3] is not None:
            arguments[3] = StorageType(arguments[3])
        user = self._user(step)
        return self.product.start_call(step.namenode, user, step.operation, *arguments, **options)

    def _answer(self, started: Future[Any]) -> Outcome:
        try:
            return Outcome(started.result(ANSWER_TIMEOUT_S))
        except TimeoutError:
            raise Divergence(f"no answer within {ANSWER_TIMEOUT_S} s") from None
        except Exception as error:
            return Outcome(error=error)

    def _model_outcome(self, model: ModelFileSystem, step: Step) -> Outcome:
        arguments = [self._for_model(step, value) for value in step.arguments]
        options = {name: self._for_model(step, value) for name, value in step.options}
        try:
            return Outcome(
                model.call(USERS[self._user(step)], step.operation, *arguments, **options)
            )
        except HdfsError as error:
            return Outcome(error=error)

    def _note(self, step: Step, outcome: Outcome, *, of_batch: bool = False) -> None:
        """Remember what later steps may refer to."""
        if outcome.error is not None:
            return
        if step.operation == "create":
            path = step.arguments[0]
            self.handles.append(
                Handle(
                    self._user(step),
                    self._for_model(step, path),
                    self._for_product(step, path),
                    outcome.result.id,
                )
            )
        elif step.operation == "add_block":
            block, _ = outcome.result
            for _, node in _walk(self.model.root, "/"):
                if any(each.id == block.id for each in node.blocks):
                    for handle in self.handles:
                        if handle.model_id == node.id and block.id not in handle.blocks:
                            handle.blocks.append(block.id)

    # References.

    def _handle(self, back: int) -> Handle | None:
        return self.handles[-1 - back % len(self.handles)] if self.handles else None

    def _user(self, step: Step) -> str:
        if isinstance(step.user, WriterOf):
            handle = self._handle(step.user.back)
            return handle.user if handle else SUPERUSER
        return step.user

    def _for_model(self, step: Step, value: Any) -> Any:
        if isinstance(value, BlockRef):
            return self._block(step, value)
        if isinstance(value, (FileRef, PathOf, InodePath)):
            handle = self._handle(value.back)
            if isinstance(value, FileRef):
                return handle.model_id if handle else 0
            if isinstance(value, PathOf):
                return handle.model_path if handle else "/a/a"
            return f"/.reserved/.inodes/{handle.model_id if handle else 1}{value.below}"
        return value

    def _for_product(self, step: Step, value: Any) -> Any:
        if isinstance(value, BlockRef):
            block = self._block(step, value)
            if block is None:
                return None
            id, stamp = self.ids.product(block.id) or (NO_BLOCK_ID, 1)
            state = BlockState.UNDER_CONSTRUCTION
            return Block(BlockId(id), GenerationStamp(stamp), block.length_bytes, state)
        if isinstance(value, (FileRef, PathOf, InodePath)):
            handle = self._handle(value.back)
            id = self.ids.product(handle.model_id) if handle else None
            if isinstance(value, FileRef):
                return id or 0
            if isinstance(value, PathOf):
                return handle.product_path if handle else "/a/a"
            return f"/.reserved/.inodes/{id or self.ids.product(1)}{value.below}"
        return value

    def _block(self, step: Step, ref: BlockRef) -> ModelBlock | None:
        handle = self._handle(ref.back)
        blocks = handle.blocks if handle else []
        if ref.from_end < len(blocks):
            return ModelBlock(blocks[-1 - ref.from_end], ref.length_bytes)
        return ModelBlock(NO_BLOCK_ID) if step.operation == "abandon_block" else None


def matches(expected: Outcome, outcome: Outcome, ids: Ids) -> bool:
    """Whether the product's outcome is the model's."""
    if expected.error is not None or outcome.error is not None:
        return type(expected.error) is type(outcome.error)
    wanted, got = expected.result, outcome.result
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
        return offset == got.offset_bytes and ids.match(block.id, _block_id(got.block))
    if isinstance(got, LocatedBlocks):
        return same_locations(wanted, got, ids)
    if isinstance(got, AclStatus):
        return bool(wanted == (got.owner, got.group, got.mode, got.entries))
    if isinstance(got, QuotaUsage):
        types_add_up = got.type_bytes == (0, got.space_bytes, 0, 0, 0)
        return types_add_up and wanted == (got.inodes, got.space_bytes, got.quota)
    return bool(wanted == got)


def same_locations(wanted: tuple[Any, ...], got: LocatedBlocks, ids: Ids) -> bool:
    id, length_bytes, under_construction, blocks, last_is_complete = wanted
    return (
        ids.match(id, int(got.inode_id))
        and length_bytes == got.length_bytes
        and under_construction == got.under_construction
        and last_is_complete == got.last_is_complete
        and [(length, offset) for _, length, offset in blocks]
        == [(each.block.length_bytes, each.offset_bytes) for each in got.blocks]
        and all(
            ids.match(block_id, _block_id(each.block))
            for (block_id, _, _), each in zip(blocks, got.blocks, strict=True)
        )
    )


def same_status(wanted: FileStatus, got: FileStatus, ids: Ids) -> bool:
    if got.id == 0:  # of /.reserved; its times mean nothing
        return (wanted.id, wanted.name, wanted.mode) == (got.id, got.name, got.mode)
    return _without_id(wanted) == _without_id(got) and ids.match(wanted.id, int(got.id))


def compare_trees(model: ModelFileSystem, tree: dict[str, Seen], ids: Ids) -> str | None:
    """What is different, if anything is."""
    admin = USERS[SUPERUSER]
    paths = set()
    for path, node in _walk(model.root, "/"):
        paths.add(path)
        if path not in tree:
            return f"{path} is missing"
        got, summary, acl = tree[path]
        wanted = model.get_file_link_info(admin, path)
        assert wanted is not None
        wanted = msgspec.structs.replace(wanted, name=got.name)
        if not same_status(wanted, got, ids):
            return f"{path}: product {got}, model {wanted}"
        if (acl.entries if acl else ()) != (node.acl or ()):
            return f"{path}: product {acl}, model {node.acl}"
        expected = model.get_content_summary(admin, path)
        if expected != _summary(summary):
            return f"{path}: summary {_summary(summary)}, model {expected}"
    extra = set(tree) - paths
    return f"{sorted(extra)} should not be there" if extra else None


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


def _block_id(block: Block) -> tuple[int, int]:
    return block.id, block.generation_stamp


def _walk(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, child in sorted(node.children.items()):
        yield from _walk(child, f"{path.rstrip('/')}/{name.decode()}")


def temporary_directory() -> Path:
    """In memory where there is such a place: durability is tested elsewhere."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="cairn-model-", dir=shared if shared.is_dir() else None))
