"""The product beside the model: runs steps on both and compares everything.

Calls that are made at the same time may take effect in any order, but in one:
some order of them, applied to the model, must give all their results and the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tests.model.comparison import (
    Divergence,
    Ids,
    Outcome,
    Seen,
    compare_trees,
    matches,
    snapshot_path,
    walk_nodes,
)
from tests.model.product import Product
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
from cairnfs.errors import HdfsError
from cairnfs.namenode.embedded import ClientProtocol
from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.invariants import check_invariants, check_no_leftovers, check_no_past
from cairnfs.testing.model import ModelBlock, ModelFileSystem, Usage

ANSWER_TIMEOUT_S = 60
NO_BLOCK_ID = 999_999_999
BY_ID = "/.reserved/.inodes/"
ORIGINS_MAX = 20  # of a clone of a clone of a ...


@dataclass
class Handle:
    """A file that was created, for later steps to refer to."""

    user: str
    model_path: str
    product_path: str
    model_id: int
    blocks: list[int] = field(default_factory=list)  # the model's ids


class Pair:
    """Model and product, always in the same state."""

    def __init__(self, product: Product, *, with_snapshots: bool = False) -> None:
        self.product = product
        self.clock = product.clock
        self.with_snapshots = with_snapshots
        self.steps = 0
        self.begin()

    def begin(self) -> None:
        """An empty tree, whatever there was before, with a few directories for everybody."""
        admin = self.product.client(0, SUPERUSER)
        self._delete_everything(admin)
        admin.remove_acl("/")
        for name in admin.list_xattrs("/"):
            admin.remove_xattr("/", name)
        admin.set_permission("/", 0o777)
        admin.set_owner("/", SUPERUSER, "supergroup")
        for storage_type in (None, StorageType.DISK, StorageType.SSD):
            namespace_quota = -1 if storage_type is None else QUOTA_DONT_SET
            admin.set_quota("/", namespace_quota, -1, storage_type)
        for path, mode in (("/a", 0o777), ("/b", 0o1777), ("/c", 0o755)):
            admin.mkdirs(path, mode)
        self.product.retryable = None
        self.ids = Ids(with_snapshots=self.with_snapshots)
        self.handles: list[Handle] = []
        self.model = ModelFileSystem(self.clock, SUPERUSER)
        self.model.diffs_copies = False
        self.ids.copies = self.model.copies
        self.model.call(USERS[SUPERUSER], "set_permission", "/", 0o777)
        for path, mode in (("/a", 0o777), ("/b", 0o1777), ("/c", 0o755)):
            self.model.call(USERS[SUPERUSER], "mkdirs", path, mode)
        root = admin.get_file_info("/")
        assert root is not None
        self.model.root.mtime_ms, self.model.root.atime_ms = root.mtime_ms, root.atime_ms
        self.check_tree(0)

    def world(self) -> World:
        """What there is to choose from."""
        world = World([], {}, with_snapshots=self.with_snapshots)
        for path, node in walk_nodes(self.model.root, "/"):
            world.paths.append(path)
            if node.is_snapshottable:
                world.snapshottable.append(path)
            for name, top in node.snapshots.items():
                world.snapshots.append((path, name))
                below = walk_nodes(top, snapshot_path(path, name))
                world.in_snapshots += [each for each, _ in below]
            if node.is_directory:
                used = Usage.of(node)
                world.usage[path] = (used.inodes, used.space_bytes)
        return world

    def run(self, step: Step | Batch) -> bool:
        """Run a step on both; raise Divergence if they differ.

        True: where the model is in doubt the product has decided otherwise, and both began anew.
        """
        doubts = len(self.model.doubts)
        kept = sum(len(node.snapshots) for node in self.model.root.walk())
        try:
            self._run(step)
            if len(self.model.doubts) > doubts:
                self._check_snapshottable()
        except Divergence:
            if len(self.model.doubts) == doubts:
                raise
            if self._count_snapshots() < kept:
                raise  # whichever it is: none may be lost
            self.begin()
            return True
        return False

    def _count_snapshots(self) -> int:
        """How many there are in the product."""
        admin = self.product.client(0, SUPERUSER)
        return sum(each.snapshots for each in admin.list_snapshottable())

    def _check_snapshottable(self) -> None:
        """Compare what snapshots may be taken of."""
        admin = self.product.client(0, SUPERUSER)
        found = [each.path for each in admin.list_snapshottable()]
        expected = self.model.call(USERS[SUPERUSER], "list_snapshottable")
        if sorted(found) != expected:
            raise Divergence(f"snapshottable: product {found}, model {expected}")

    def _run(self, step: Step | Batch) -> None:
        if isinstance(step, Batch):
            self.steps += len(step.steps) + len(step.before)
            self._run_batch(step)
            return
        self.steps += step.operation != "check"
        if step.operation == "advance":
            self.clock.advance(step.arguments[0])
        elif step.operation == "reclaim":
            self.product.reclaim(step.namenode)
        elif step.operation == "restart":
            self.product.restart(step.namenode)
            self._renew_all()  # who could not renew meanwhile is not gone
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
        difference = compare_trees(self.model, tree, ids) or self._compare_snapshots(
            self.model, self._snapshot_trees(namenode), ids
        )
        if difference:
            raise Divergence(difference)
        ids.keep()

    def _snapshot_trees(
        self, namenode: int, names: set[str] | None = None
    ) -> dict[str, dict[str, Seen] | None]:
        """What is in every snapshot, by its path; or of all but these names, only that it is."""
        if not self.with_snapshots:
            return {}
        admin = self.product.client(namenode, SUPERUSER)
        return {
            (top := snapshot_path(each.path, name)): (
                self.product.tree(namenode, top) if names is None or name in names else None
            )
            for each in admin.list_snapshottable()
            for name in (snapshot.name.decode() for snapshot in admin.list_snapshots(each.path))
        }

    def _compare_snapshots(
        self, model: ModelFileSystem, trees: dict[str, dict[str, Seen] | None], ids: Ids
    ) -> str | None:
        """What is different in any snapshot, or in which there are."""
        wanted = {
            snapshot_path(path, name)
            for path, node in walk_nodes(model.root, "/")
            for name in node.snapshots
        }
        if wanted != set(trees):
            return f"snapshots: product {sorted(trees)}, model {sorted(wanted)}"
        ids = Ids(ids, of_past=True)
        for top, tree in trees.items():
            difference = tree and compare_trees(model, tree, ids, top)
            if difference:
                return difference
        ids.keep()
        return None

    def check_invariants(self) -> None:
        """Ask the store whether its rows fit together, and whether any is left over."""
        thread = self.product.namenodes[0]
        try:
            thread.wait(check_invariants(thread.namenode.store))
            thread.wait(thread.namenode.duties.reclaim_everything())
            thread.wait(check_invariants(thread.namenode.store))
            if not self.with_snapshots:
                thread.wait(check_no_leftovers(thread.namenode.store, self.ids.inodes()))
                return
            # What a snapshot needed goes with it, and with the last one all of the past; what
            # was rolled back or cloned may need more than is there now.
            self.check_tree(0)
            self._delete_snapshots()
            self._reclaim_origins()
            self.check_tree(0)
            self._delete_everything(self.product.client(0, SUPERUSER))
            self._reclaim_origins()
            thread.wait(check_invariants(thread.namenode.store))
            thread.wait(check_no_leftovers(thread.namenode.store, self.ids.inodes()))
            thread.wait(check_no_past(thread.namenode.store))
            left = self.product.rows_left()
            # The root, which may have been rolled back, and that the namespace has marks:
            nothing = {"INODES": 1, "TOTALS": 0, "MARKS": 1}
            assert left.pop("CONTENTS", 1) == 1, "contents are left"
            # Clients there were, the latest of all snapshots, and which came and went lately.
            others = {"HOLDERS", "MOMENTS", "MOMENT_CHANGES"}
            left = {table: count for table, count in left.items() if table not in others}
            assert left == nothing, f"rows are left: {left}"
        except AssertionError as error:
            raise Divergence(f"invariants: {error}") from error

    def _delete_snapshots(self) -> None:
        """What is there now needs none of them."""
        for path, node in list(walk_nodes(self.model.root, "/")):
            for name in sorted(node.snapshots):
                self._run_one(Step("delete_snapshot", (path, name)))

    def _reclaim_origins(self) -> None:
        """A clone that goes, or gets rows of its own, lets go of what it came from."""
        thread = self.product.namenodes[0]
        for _ in range(ORIGINS_MAX):
            self.clock.advance(SETTLING_MS)
            thread.wait(thread.namenode.duties.reclaim_everything())

    def _delete_everything(self, admin: ClientProtocol) -> None:
        """All snapshots there are, in no order, and all below the root."""
        if self.with_snapshots:
            for each in admin.list_snapshottable():
                for snapshot in admin.list_snapshots(each.path):
                    admin.delete_snapshot(each.path, snapshot.name.decode())
                admin.disallow_snapshot(each.path)
        listing = admin.get_listing("/", b"", 10_000)
        assert listing is not None
        for entry in listing.entries:
            admin.delete(f"/{entry.name.decode()}", recursive=True)

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

    def _renew_all(self) -> None:
        for user in USERS:
            self._run_one(Step("renew_lease", user=user))

    def _run_one(self, step: Step) -> None:
        outcome = self._answer(self._start(step))
        ids = Ids(self.ids, of_past=_is_of_past(step))
        expected = self._model_outcome(self.model, step, outcome)
        if not matches(expected, outcome, ids):
            raise Divergence(f"{step}\n  product: {outcome}\n  model:   {expected}")
        ids.keep()
        self._note(step, expected)

    def _run_batch(self, batch: Batch) -> None:
        for step in batch.before:
            self._run_one(step)
        # A file whose writer is gone is taken from it by a transaction of its own, before the
        # call that wants it: nobody is to be gone while calls are made at the same time.
        self._renew_all()
        self.product.delays.active = batch.slow
        started = [self._start(step) for step in batch.steps]
        outcomes = [self._answer(each) for each in started]
        self.product.delays.active = False
        tree = self.product.tree(batch.steps[0].namenode)
        taken = {step.arguments[1] for step in batch.steps if step.operation == "create_snapshots"}
        snapshots = self._snapshot_trees(batch.steps[0].namenode, taken)
        for order, model, ids, results in self._orders(batch, outcomes):
            if (
                compare_trees(model, tree, ids) is None
                and self._compare_snapshots(model, snapshots, ids) is None
            ):
                self.model, self.ids.copies = model, model.copies
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
            different = compare_trees(model, tree, ids) or self._compare_snapshots(
                model, snapshots, ids
            )
            hint += f"\n  e.g. {different}"
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
                next_model = model.copy()
                next_ids = Ids(ids, of_past=_is_of_past(batch.steps[index]))
                result = self._model_outcome(next_model, batch.steps[index], outcomes[index])
                next_ids.copies = next_model.copies
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

    def _model_outcome(self, model: ModelFileSystem, step: Step, product: Outcome) -> Outcome:
        arguments = [self._for_model(step, value) for value in step.arguments]
        options = {name: self._for_model(step, value) for name, value in step.options}
        if step.operation in ("rollback_snapshot", "rollback_snapshots") and product.result:
            options["serving"] = product.result
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
        elif step.operation == "append":
            path = step.arguments[0]
            names = (self._for_model(step, path), self._for_product(step, path))
            handle = Handle(self._user(step), *names, outcome.result[2].id)
            self.handles.append(handle)
            self._note_blocks(handle)
        elif step.operation in ("truncate", "recover_lease"):
            for handle in self.handles:
                self._note_blocks(handle)
        elif step.operation == "rollback_snapshot":
            self._forget_ids_of_brought(self._for_model(step, step.arguments[0]))
        elif step.operation == "rollback_snapshots":
            for path in step.arguments[0]:
                self._forget_ids_of_brought(path)
        elif step.operation == "add_block":
            block, _ = outcome.result
            for _, node in walk_nodes(self.model.root, "/"):
                if any(each.id == block.id for each in node.blocks):
                    for handle in self.handles:
                        if handle.model_id == node.id and block.id not in handle.blocks:
                            handle.blocks.append(block.id)

    def _forget_ids_of_brought(self, path: str) -> None:
        """Under which ids files and blocks are found that a roll-back brought is not told.

        Among calls at the same time, they may have been moved out since.
        """
        top = self.model.find(USERS[SUPERUSER], path).target
        brought = self.model.copies | ({top.id} if top is not None else set())
        for handle in self.handles:
            if handle.model_id in brought:
                handle.model_id, handle.blocks = 0, []
            by_id = handle.model_path.removeprefix(BY_ID)
            if by_id != handle.model_path and int(by_id.partition("/")[0]) in brought:
                handle.model_path = handle.product_path = "/a/a"  # any that both understand

    def _note_blocks(self, handle: Handle) -> None:
        for _, node in walk_nodes(self.model.root, "/"):
            if node.id == handle.model_id:
                handle.blocks = [block.id for block in node.blocks]

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
            return f"{BY_ID}{handle.model_id or 1 if handle else 1}{value.below}"
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
            return f"{BY_ID}{id or self.ids.product(1)}{value.below}"
        return value

    def _block(self, step: Step, ref: BlockRef) -> ModelBlock | None:
        handle = self._handle(ref.back)
        blocks = handle.blocks if handle else []
        if ref.from_end < len(blocks):
            id = blocks[-1 - ref.from_end]
            if self.ids.product(id) is None:  # of a block that the product has not shown yet
                id = NO_BLOCK_ID
            return ModelBlock(id, ref.length_bytes)
        return ModelBlock(NO_BLOCK_ID) if step.operation == "abandon_block" else None


def _is_of_past(step: Step) -> bool:
    """Whether a call asks about something in a snapshot."""
    return any(isinstance(each, str) and ".snapshot" in each for each in step.arguments)
