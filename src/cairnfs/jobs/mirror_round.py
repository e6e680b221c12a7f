"""One round of a mirror: a copy of one snapshot becomes the next one, renames by renames.

The order is that of `FileSystem.snapshot_changes`, done by many at a time:

1. *fetch*: the content of new and rewritten files comes to the other cluster, aside;
2. *leave*, the deepest level first: what was deleted goes, what was moved is put aside;
3. *arrive*, from the top: directories are made, what was moved and what is new takes its place;
4. *replace*: files that have other content, or other attributes;
5. *finish*: directories get their attributes, times among them, that the steps before have touched.

On one level nothing is below anything else, so its order does not matter.  Each step sees by what
is aside whether it was done already: nothing arrives before everything has left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import FileNotFoundException, HdfsError
from cairnfs.jobs import changes, entries, records
from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.attributes import set_attributes
from cairnfs.jobs.changes import CREATED, DELETED, MODIFIED, MOVED_IN, MOVED_OUT
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.entries import DIRECTORY, FILE, SYMLINK, TOP, Entry
from cairnfs.jobs.sessions import Run
from cairnfs.jobs.sources import Reader, SnapshotSource
from cairnfs.jobs.stages import Stage, Task, Work, tell_of
from cairnfs.jobs.trees import CLOSED, Tree, make_link, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = pa.schema(
    [*changes.SCHEMA, *(each for each in entries.SCHEMA if each.name not in ("path", "kind"))]
)
_IS_NEW = f"(change = '{CREATED}' or (change = '{MOVED_IN}' and other is null))"
_DEPTH = f"case when path = '{TOP}' then 0 else size(split(path, '/')) end"


class Applied(msgspec.Struct, frozen=True):
    """What a batch, or a round, has done."""

    created: int = 0
    deleted: int = 0
    moved: int = 0
    modified: int = 0
    copied_files: int = 0
    copied_bytes: int = 0


class Aside(NamedTuple):
    """Where things wait for their turn, on the other cluster."""

    top: Directory  # the copy
    moved: Directory
    new: Directory
    tree: Tree

    def of_moved(self, id: int) -> str:
        return (self.moved / str(id)).path

    def of_new(self, path: str) -> str:
        return (self.new / hashlib.blake2b(path.encode(), digest_size=16).hexdigest()).path


def apply_round(
    work: Work, told: DataFrame, source: SnapshotSource, aside: Aside, run: Run
) -> Applied:
    """Apply changes, as `changes` tells them, of which `source` is the new state."""
    tell_of(run.tell, "planning")
    planned = Stage(work, "changes", "planning", Applied)
    spread = told.repartition(4 * run.spark.sparkContext.defaultParallelism)
    planned.plan(lambda: _with_cost(_describe(spread, source), "0"), run.batch)
    items = records.load(run.spark, planned.items, planned.files(), _SCHEMA)

    def apply(name: str, title: str, rows: Callable[[], DataFrame], step: _Step) -> list[Applied]:
        stage = Stage(work, name, title, Applied)
        stage.plan(rows, run.batch)
        task: Task[Applied] = _RoundTask(source, aside, step)
        return stage.apply(run.spark, task, run.tell)

    is_written = f"kind = '{FILE}' and ({_IS_NEW} or (change = '{MODIFIED}' and is_rewritten))"
    leaves = f"change in ('{DELETED}', '{MOVED_OUT}')"
    arrives = f"change in ('{CREATED}', '{MOVED_IN}')"
    replaces = f"change = '{MODIFIED}' and kind = '{FILE}'"
    done = apply(
        "fetch", "copying files", lambda: _with_cost(items.where(is_written), "length"), _fetch
    )
    done += apply(
        "leave", "taking away", lambda: _by_level(items.where(leaves), f"-({_DEPTH})"), _leave
    )
    done += apply(
        "arrive", "putting in place", lambda: _by_level(items.where(arrives), _DEPTH), _arrive
    )
    done += apply(
        "replace", "changing files", lambda: _with_cost(items.where(replaces), "0"), _replace
    )
    done += apply("finish", "finishing directories", lambda: _touched(items), _finish)
    return Applied(
        *(sum(getattr(each, name) for each in done) for name in Applied.__struct_fields__)
    )


# The plan


def _describe(told: DataFrame, source: SnapshotSource) -> DataFrame:
    """With all that has to be known of the files and links that are new or different."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with source.open() as reader:
            for batch in batches:
                rows = [_described(reader, row) for row in batch.to_pylist()]
                yield from pa.Table.from_pylist(rows, _SCHEMA).to_batches()

    return map_batches(told, read, _SCHEMA)


def _described(reader: Reader, row: dict[str, Any]) -> dict[str, Any]:
    is_moved = row["change"] == MOVED_IN and row["other"] is not None
    if row["change"] in (DELETED, MOVED_OUT) or is_moved or row["kind"] == DIRECTORY:
        return row
    entry = reader.describe(Entry(row["path"], row["kind"]))
    return {**entries.to_row(entry), **row}


def _with_cost(items: DataFrame, cost: str) -> DataFrame:
    return items.selectExpr("*", f"cast({cost} as bigint) as cost", "0 as level")


def _by_level(items: DataFrame, level: str) -> DataFrame:
    """Each level in parts of its own, so that it can be done at once."""
    levelled = items.selectExpr("*", "cast(0 as bigint) as cost", f"cast({level} as int) as level")
    return levelled.sortWithinPartitions("level", "path")


def _touched(items: DataFrame) -> DataFrame:
    """Directories that are new or different, and those in which something was put."""
    own = items.where(f"kind = '{DIRECTORY}' and ({_IS_NEW} or change = '{MODIFIED}')")
    above = items.where(
        f"path != '{TOP}' and (change in ('{CREATED}', '{MOVED_IN}') or is_rewritten)"
    ).selectExpr(
        f"if(instr(path, '/') = 0, '{TOP}', substring_index(path, '/', size(split(path, '/')) - 1))"
        " as path"
    )
    paths = own.select("path").union(above).distinct()
    return _with_cost(paths.selectExpr("path", f"'{DIRECTORY}' as kind"), "0")


# The steps


_Step = Callable[[FileSystem, Aside, Reader, list[dict[str, Any]]], Applied]


@dataclass(frozen=True)
class _RoundTask:
    """One of the steps below, for a batch."""

    source: SnapshotSource
    aside: Aside
    step: _Step

    def __call__(self, items: pa.Table) -> Applied:
        with self.aside.top.connect() as fs, self.source.open() as reader:
            return self.step(fs, self.aside, reader, items.to_pylist())


def _fetch(fs: FileSystem, aside: Aside, reader: Reader, rows: list[dict[str, Any]]) -> Applied:
    volume = 0
    for row in rows:
        entry = entries.from_row(row)
        written = write_file(fs, aside.tree, entry, reader.chunks(entry))
        fs.rename(written, aside.of_new(entry.path), overwrite=True)
        volume += entry.length
    return Applied(copied_files=len(rows), copied_bytes=volume)


def _leave(fs: FileSystem, aside: Aside, reader: Reader, rows: list[dict[str, Any]]) -> Applied:
    moved = 0
    for row in rows:
        path = (aside.top / row["path"]).path
        if row["change"] == MOVED_OUT and row["other"] is not None:
            _move(fs, path, aside.of_moved(row["id"]))
            moved += 1
        else:
            fs.delete(path, recursive=True)
    return Applied(deleted=len(rows) - moved, moved=moved)


def _arrive(fs: FileSystem, aside: Aside, reader: Reader, rows: list[dict[str, Any]]) -> Applied:
    created = 0
    for row in rows:
        path = (aside.top / row["path"]).path
        if row["change"] == MOVED_IN and row["other"] is not None:
            _move(fs, aside.of_moved(row["id"]), path)
            continue
        created += 1
        if row["kind"] == DIRECTORY:
            fs.mkdirs(path, CLOSED, create_parents=False)
        elif row["kind"] == SYMLINK:
            make_link(fs, path, entries.from_row(row))
        else:
            _move(fs, aside.of_new(row["path"]), path)
    return Applied(created=created)


def _replace(fs: FileSystem, aside: Aside, reader: Reader, rows: list[dict[str, Any]]) -> Applied:
    for row in rows:
        path = (aside.top / row["path"]).path
        if row["is_rewritten"]:
            _move(fs, aside.of_new(row["path"]), path, overwrite=True)
        else:
            found = fs.get_file_status(path)
            set_attributes(fs, path, entries.from_row(row), found, aside.tree.inherited)
    return Applied(modified=len(rows))


def _finish(fs: FileSystem, aside: Aside, reader: Reader, rows: list[dict[str, Any]]) -> Applied:
    for row in rows:
        path = (aside.top / row["path"]).path
        wanted = reader.describe(Entry(row["path"], DIRECTORY))
        set_attributes(fs, path, wanted, fs.get_file_status(path), aside.tree.inherited)
    return Applied()


def _move(fs: FileSystem, source: str, target: str, *, overwrite: bool = False) -> None:
    """A rename that may have been done before: then there is nothing to move, and it is there."""
    try:
        fs.rename(source, target, overwrite=overwrite)
    except HdfsError:
        if fs.get_file_link_info(source) is not None:
            raise
        if fs.get_file_link_info(target) is None:
            raise FileNotFoundException(
                f"neither {source} nor {target} is there: somebody else has changed the copy;"
                " remove it, and begin anew"
            ) from None
