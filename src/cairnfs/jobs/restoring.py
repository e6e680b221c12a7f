"""`restore`: a backup becomes a directory again, with all that it had.

It is written beside its place, in `.cairn-restore-NAME`, and takes it by one rename: until then
there is nothing, or an empty directory.  Attributes that follow the path, storage policies among
them, are set after it, since a rename takes those of where it leads to; until that is done the
directory is closed to everybody else, and it opens last of all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Unpack

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import (
    ClusterStorageCapacityExceededException,
    FileAlreadyExistsException,
    IllegalArgumentException,
    IOException,
    UnsupportedOperationException,
)
from cairnfs.jobs import entries, records
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.failures import explained
from cairnfs.jobs.inheriting import SetInherited, plan_inherited
from cairnfs.jobs.manifests import MANIFEST, Declared, Head, check_packs, list_heads, read_head
from cairnfs.jobs.packs import PackSource
from cairnfs.jobs.places import Place
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.stages import Stage, Work
from cairnfs.jobs.trees import CLOSED, Tree, Written, finish_directory, make_closed, write_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RestoreResult(msgspec.Struct, frozen=True):
    """What was restored."""

    backup: str
    directory: str
    files: int
    directories: int
    symlinks: int
    bytes: int
    seconds: float


class RestoreJob(msgspec.Struct, frozen=True):
    """What is under way, as it is noted."""

    backups: str
    backup: str
    finished_ms: int
    moving: int | None = None  # the id of the tree, from when it is to take its place
    written: Written = Written()


def restore(
    backups: str, directory: str, *, name: str | None = None, **options: Unpack[Options]
) -> RestoreResult:
    """Restore a backup, the latest if none is named, to a directory that is new or empty.

    `restore("file:///backups/sales", "hdfs://namenode:8020/sales")`.  Run again, it goes on where
    it was.
    """
    began_s = time.monotonic()
    task = _RestoreTask(backups, name, Directory.parse(directory, options.get("user")))
    with task.target.connect() as fs:
        job = task.begin(fs)
    with running("restore", options) as run:
        written = task.run(job, run)
    return RestoreResult(
        task.head.name,
        task.target.path,
        written.files,
        written.directories,
        written.symlinks,
        written.bytes,
        round(time.monotonic() - began_s, 3),
    )


def plan_restore(
    backups: str, directory: str, *, name: str | None = None, **options: Unpack[Options]
) -> Plan:
    """What `restore` would do; nothing is written."""
    from pyspark.sql import functions as f

    task = _RestoreTask(backups, name, Directory.parse(directory, options.get("user")))
    with task.target.connect() as fs:
        task.check(fs)
    title = (
        f"Restore backup {task.head.name} of {task.head.snapshot.directory} to {task.target.path}"
    )
    with running("restore", options) as run:
        items = task.entries(run.spark)
        return summarize(
            title, items.withColumn("action", f.lit("write")).withColumn("cost", f.col("length"))
        )


class _RestoreTask:
    """One restore, from beginning to end."""

    def __init__(self, backups: str, name: str | None, target: Directory) -> None:
        if target.path == "/":
            raise IllegalArgumentException("/ cannot be restored in place: name a new directory")
        self.target = target
        self._backups = Place(backups, target.user)
        self._staging = target.parent / f".cairn-restore-{target.name}"
        self._work = Work((self._staging / "work").as_place())
        self.head = self._find(name)
        self._tree = Tree(
            self._staging / "tree",
            self._staging / "parts",
            frozenset(each.name for each in self.head.declared),
        )

    def _find(self, name: str | None) -> Head:
        begun = self._work.find(RestoreJob)
        if name is None and begun is not None and begun.backups == self._backups.url:
            name = begun.backup  # the latest when it was begun
        if name is not None:
            return read_head(self._backups, name)
        found = list_heads(self._backups)
        if not found:
            raise IOException(f"there is no complete backup in {self._backups}")
        return found[-1]

    def begin(self, fs: FileSystem) -> RestoreJob:
        """What is to be done, or was begun before."""
        wanted = RestoreJob(self._backups.url, self.head.name, self.head.finished_ms)
        begun = self._work.find(RestoreJob)
        if begun is None:
            self.check(fs)
            fs.mkdirs(self.target.parent.path)
            make_closed(fs, self._staging)
            fs.mkdirs(self._tree.parts.path, CLOSED)
            self._work.begin(wanted)
            return wanted
        if (begun.backups, begun.backup, begun.finished_ms) != (
            wanted.backups,
            wanted.backup,
            wanted.finished_ms,
        ):
            raise FileAlreadyExistsException(
                f"{self._staging.path} is an unfinished restore of backup {begun.backup} in"
                f" {begun.backups}: finish that, or remove it"
            )
        if begun.moving is None:
            self.check(fs)
        return begun

    def check(self, fs: FileSystem) -> None:
        """What would only be noticed later, or not at all."""
        found = fs.get_file_link_info(self.target.path)
        if found is not None:
            if not found.is_directory:
                raise FileAlreadyExistsException(f"{self.target.path} is there, and no directory")
            if fs.list_status(self.target.path):
                raise FileAlreadyExistsException(
                    f"{self.target.path} is not empty: restore to a new directory, or empty it"
                )
        check_packs(self._backups, self.head)
        room = fs.get_status().remaining_bytes
        if room < self.head.space_bytes:
            raise ClusterStorageCapacityExceededException(
                f"{self.target.cluster} has room for {room:,} bytes, and with its replicas the"
                f" backup needs {self.head.space_bytes:,}: add DataNodes, or make room"
            )
        check_declared(fs, self.head.declared)

    def entries(self, spark: SparkSession) -> DataFrame:
        return records.load(
            spark, self._backups / self.head.name / MANIFEST, self.head.tables, entries.SCHEMA
        )

    def run(self, job: RestoreJob, run: Run) -> Written:
        source = PackSource(self._backups)
        with self.target.connect() as fs:
            if job.moving is None:
                declare(fs, self.head.declared)
                written = write_tree(
                    self._work, lambda: self.entries(run.spark), source, self._tree, run
                )
                id = fs.get_file_status(self._tree.top.path).id
                job = msgspec.structs.replace(job, moving=id, written=written)
                self._work.begin(job)
            self._move(fs, job)
            self._finish(fs, run)
        return job.written

    def _move(self, fs: FileSystem, job: RestoreJob) -> None:
        """Into its place, unless it is there already."""
        found = fs.get_file_info(self._tree.top.path)
        if found is not None and found.id == job.moving:
            fs.rename(self._tree.top.path, self.target.path, overwrite=True)
        there = fs.get_file_info(self.target.path)
        if there is None or there.id != job.moving:
            raise IOException(
                f"{self.target.path} was moved or replaced while it was restored: remove"
                f" {self._staging.path}, and begin anew"
            )

    def _finish(self, fs: FileSystem, run: Run) -> None:
        names = self._tree.inherited
        stage = Stage(self._work, "inherited", "setting inherited attributes", Written)
        if names or self.head.has_policies:
            stage.plan(lambda: plan_inherited(self.entries(run.spark), names), run.batch)
            stage.apply(run.spark, SetInherited(self.target), run.tell)
        with explained():
            top = self.entries(run.spark).where(f"path = '{entries.TOP}'").toArrow()
        (entry,) = entries.from_table(top)
        finish_directory(fs, self.target.path, entry, self._tree)
        fs.delete(self._staging.path, recursive=True)


def check_declared(fs: FileSystem, declared: list[Declared]) -> None:
    """Names that are inherited in the backup are so here, or nobody has declared them."""
    if not declared:
        return
    try:
        here = {each.name: each.kind for each in fs.list_declared_xattrs()}
    except UnsupportedOperationException:
        raise UnsupportedOperationException(
            f"the backup has inherited attributes ({', '.join(each.name for each in declared)}),"
            f" which {fs.url} does not know: restore it to a CairnFS"
        ) from None
    for each in declared:
        if here.get(each.name, each.kind) != each.kind:
            raise IOException(
                f"the attribute {each.name} is {each.kind} in the backup, and {here[each.name]} on"
                f" {fs.url}: it cannot be restored there"
            )


def declare(fs: FileSystem, declared: list[Declared]) -> None:
    if not declared:
        return
    here = {each.name for each in fs.list_declared_xattrs()}
    for each in declared:
        if each.name not in here:
            fs.declare_xattr(each.name, each.kind)
