"""Writing a whole tree where nobody looks yet, in stages that may be done again.

Directories come first, then files and links, then the attributes of directories: what is put into a
directory changes its time, and its default list would be inherited.  A file is written under a name
that nobody else has, and takes its place by one rename when it is complete and has its attributes;
so two tasks that write the same one are not in each other's way.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import FileAlreadyExistsException, IOException
from cairnfs.jobs.attributes import set_attributes
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.entries import DIRECTORY, SYMLINK, TOP, Entry, from_table
from cairnfs.jobs.sessions import Run
from cairnfs.jobs.sources import Source
from cairnfs.jobs.stages import Stage, Work, tell_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLOSED = 0o700  # the mode of what is not finished


class Written(msgspec.Struct, frozen=True):
    """What a batch, or all of them, have written."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0


class Tree(NamedTuple):
    """Where a tree is written."""

    top: Directory
    parts: Directory  # for files that are not complete
    inherited: frozenset[str] = frozenset()  # names of attributes that are set later, if at all


def write_tree(
    work: Work, make_items: Callable[[], DataFrame], source: Source, tree: Tree, run: Run
) -> Written:
    """Write all entries of a DataFrame, which need be no more than path, kind and length."""
    directories = Stage(work, "directories", "making directories", Written)
    files = Stage(work, "files", "writing files", Written)
    finished = Stage(work, "attributes", "finishing directories", Written, plan_of="directories")
    tell_of(run.tell, "planning")
    directories.plan(lambda: _only(make_items(), f"kind = '{DIRECTORY}'"), run.batch)
    files.plan(lambda: _only(make_items(), f"kind != '{DIRECTORY}'"), run.batch)
    results = directories.apply(run.spark, _Task(source, tree, _make_directories), run.tell)
    results += files.apply(run.spark, _Task(source, tree, _write_files), run.tell)
    finished.apply(run.spark, _Task(source, tree, _finish_directories), run.tell)
    return add_up(results)


def add_up(results: Iterable[Written]) -> Written:
    listed = list(results)
    return Written(
        *(sum(getattr(each, name) for each in listed) for name in Written.__struct_fields__)
    )


def _only(items: DataFrame, condition: str) -> DataFrame:
    from pyspark.sql import functions as f

    cost = f.coalesce(f.col("length"), f.lit(0)).cast("bigint")
    return items.where(condition).withColumn("cost", cost).withColumn("level", f.lit(0))


_Step = Callable[[FileSystem, Tree, Source, Iterable[Entry]], Written]


@dataclass(frozen=True)
class _Task:
    """One of the steps below, for a batch."""

    source: Source
    tree: Tree
    step: _Step

    def __call__(self, items: pa.Table) -> Written:
        with self.tree.top.connect() as fs:
            return self.step(fs, self.tree, self.source, from_table(items))


def _make_directories(
    fs: FileSystem, tree: Tree, source: Source, entries: Iterable[Entry]
) -> Written:
    count = 0
    for entry in entries:
        fs.mkdirs((tree.top / entry.path).path, CLOSED)
        count += 1
    return Written(directories=count)


def _write_files(fs: FileSystem, tree: Tree, source: Source, entries: Iterable[Entry]) -> Written:
    files = symlinks = volume = 0
    with source.open() as reader:
        for entry in map(reader.describe, entries):
            path = (tree.top / entry.path).path
            if entry.kind == SYMLINK:
                make_link(fs, path, entry)
                symlinks += 1
            else:
                temporary = write_file(fs, tree, entry, reader.chunks(entry))
                fs.rename(temporary, path, overwrite=True)
                files += 1
                volume += entry.length
    return Written(files, 0, symlinks, volume)


def _finish_directories(
    fs: FileSystem, tree: Tree, source: Source, entries: Iterable[Entry]
) -> Written:
    with source.open() as reader:
        for entry in map(reader.describe, entries):
            if entry.path != TOP:
                finish_directory(fs, (tree.top / entry.path).path, entry, tree)
    return Written()


def finish_directory(fs: FileSystem, path: str, entry: Entry, tree: Tree) -> None:
    """Give a directory that is new its attributes; its mode last, which may let others in."""
    set_attributes(fs, path, entry, inherited=tree.inherited)
    fs.set_permission(path, entry.mode)


def make_closed(fs: FileSystem, directory: Directory) -> None:
    """Make a directory for what is not finished: nobody else sees it, and it hands no list down."""
    fs.mkdirs(directory.path, CLOSED)
    if fs.get_file_status(directory.path).has_acl:
        fs.remove_acl(directory.path)


def write_file(fs: FileSystem, tree: Tree, entry: Entry, chunks: Iterable[bytes]) -> str:
    """Write a file with its attributes, aside; where it is."""
    path = (tree.parts / uuid.uuid4().hex).path
    stream = fs.create(
        path,
        mode=entry.mode,
        replication=entry.replication,
        block_size=entry.block_size,
    )
    with stream:
        try:
            for chunk in chunks:
                stream.write(chunk)
        except BaseException:
            stream.abort()
            fs.delete(path)
            raise
    set_attributes(fs, path, entry, inherited=tree.inherited)
    return path


def make_link(fs: FileSystem, path: str, entry: Entry) -> None:
    """Make a symbolic link, unless it is there already."""
    assert entry.target is not None, f"{entry.path} is no link"
    try:
        fs.create_symlink(entry.target, path)
    except FileAlreadyExistsException:
        found = fs.get_file_link_info(path)
        if found is None or found.target != entry.target:
            raise IOException(
                f"{path} is in the way of a link to {entry.target}: somebody else writes there"
            ) from None
