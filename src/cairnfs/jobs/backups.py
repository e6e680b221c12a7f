"""`backup`: a snapshot of a directory, copied to any file system.

The first one copies everything; those that follow copy what changed since the latest one of which
the snapshot is still there, and refer to the others for the rest.  See `manifests` for what a
backup is made of.
"""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import msgspec
import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.records import Snapshot
from cairnfs.errors import (
    ClusterStorageCapacityExceededException,
    FileAlreadyExistsException,
    IllegalArgumentException,
)
from cairnfs.jobs import entries, records
from cairnfs.jobs.backup_plan import COPY, KEEP, plan_full, plan_incremental
from cairnfs.jobs.batches import Batch
from cairnfs.jobs.changes import changes
from cairnfs.jobs.directories import Directory, find_snapshot
from cairnfs.jobs.entries import DIRECTORY, FILE, SYMLINK, Entry
from cairnfs.jobs.manifests import (
    DATA,
    FORMAT,
    HEAD,
    MANIFEST,
    WORK,
    Declared,
    Head,
    Pack,
    Part,
    Snapshotted,
    list_heads,
    read_head,
    write_head,
)
from cairnfs.jobs.packs import PackWriter
from cairnfs.jobs.places import Place
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.sources import SnapshotSource, scan
from cairnfs.jobs.stages import Stage, Work, tell_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BackupResult(msgspec.Struct, frozen=True):
    """What was backed up; `copied` is what was moved for it."""

    backup: str
    base: str | None
    files: int
    directories: int
    symlinks: int
    bytes: int
    copied_files: int
    copied_bytes: int
    seconds: float
    was_done: bool = False  # it was there already


class BackupJob(msgspec.Struct, frozen=True):
    """What is under way, as it is noted."""

    snapshot: Snapshotted
    base: str | None
    declared: list[Declared]


class BackedUp(msgspec.Struct, frozen=True):
    """What one batch has come to."""

    part: Part
    pack: Pack | None
    used_packs: list[str]  # of the base, and those before it
    files: int = 0
    directories: int = 0
    symlinks: int = 0
    bytes: int = 0
    space_bytes: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    has_policies: bool = False


def backup(
    directory: str,
    snapshot: str,
    target: str,
    *,
    name: str | None = None,
    full: bool = False,
    **options: Unpack[Options],
) -> BackupResult:
    """Back a snapshot up: `backup("hdfs://namenode:8020/sales", "monday", "file:///backups/sales")`.

    It is called as the snapshot, or `name`.  Run again, it goes on where it was.
    """
    began_s = time.monotonic()
    source = Directory.parse(directory, options.get("user"))
    task = _BackupTask(source, snapshot, Place(target, source.user), name or snapshot)
    with source.connect() as fs:
        job = task.begin(fs, full=full)
    if job is None:
        return _result(read_head(task.backups, task.name), began_s, was_done=True)
    with running("backup", options) as run:
        head = task.run(job, run)
    return _result(head, began_s)


def plan_backup(
    directory: str,
    snapshot: str,
    target: str,
    *,
    name: str | None = None,
    full: bool = False,
    **options: Unpack[Options],
) -> Plan:
    """What `backup` would do; nothing is written."""
    source = Directory.parse(directory, options.get("user"))
    task = _BackupTask(source, snapshot, Place(target, source.user), name or snapshot)
    with source.connect() as fs:
        job = task.choose(fs, full=full)
    since = f"what changed since the backup {job.base}" if job.base else "everything"
    title = f"Back up {since} of {source.path} in snapshot {snapshot} to {task.backups / task.name}"
    with running("backup", options) as run:
        return summarize(title, task.make_plan(job, run))


class _BackupTask:
    """One backup, from beginning to end."""

    def __init__(self, source: Directory, snapshot: str, backups: Place, name: str) -> None:
        if not name or "/" in name or name.startswith("."):
            raise IllegalArgumentException(f"{name!r} cannot be the name of a backup")
        self._source = source
        self._snapshot = snapshot
        self.backups = backups
        self.name = name
        self._work = Work(backups / name / WORK)

    def begin(self, fs: FileSystem, *, full: bool) -> BackupJob | None:
        """What is to be done, or was begun before; None if it is done."""
        wanted = self._identify(fs)
        where = self.backups / self.name
        if where.exists(HEAD):
            if read_head(self.backups, self.name).snapshot != wanted:
                raise FileAlreadyExistsException(
                    f"{where} is a backup of another snapshot: choose another name, or remove it"
                )
            self._work.end()
            return None
        begun = self._work.find(BackupJob)
        if begun is None:
            if where.sizes().keys() - {WORK}:
                raise FileAlreadyExistsException(
                    f"{where} is not empty, and no backup: choose another name, or remove it"
                )
            begun = self.choose(fs, full=full)
            self._work.begin(begun)
        elif begun.snapshot != wanted:
            raise FileAlreadyExistsException(
                f"{where} is an unfinished backup of another snapshot: finish or remove it"
            )
        return begun

    def choose(self, fs: FileSystem, *, full: bool) -> BackupJob:
        """What to go on from: the latest backup whose snapshot is still there."""
        wanted = self._identify(fs)
        declared = [
            Declared(each.name, each.kind) for each in fs.list_declared_xattrs() if each.is_used
        ]
        base = None if full else self._find_base(fs, wanted)
        return BackupJob(wanted, base, declared)

    def run(self, job: BackupJob, run: Run) -> Head:
        stage = Stage(self._work, "entries", "backing up", BackedUp)
        tell_of(run.tell, "planning")
        planned = stage.plan(lambda: self.make_plan(job, run), run.batch)
        self._check_room(planned)
        for folder in (MANIFEST, DATA):
            (self.backups / self.name / folder).make()
        task = _BackUp(SnapshotSource(self._tree), self.backups, self.name)
        head = self._make_head(job, stage.apply(run.spark, task, run.tell))
        write_head(self.backups, head)
        self._clean(head)
        return head

    def make_plan(self, job: BackupJob, run: Run) -> DataFrame:
        inodes = scan(run.spark, self._tree)
        if job.base is None:
            return plan_full(inodes)
        base = read_head(self.backups, job.base)
        return plan_incremental(
            inodes,
            changes(run.spark, self._source, base.snapshot.name, self._snapshot).cache(),
            records.load(
                run.spark, self.backups / job.base / MANIFEST, base.tables, entries.SCHEMA
            ),
            # What is inherited changes without a change to those who inherit it.
            reads_all=base.has_policies or bool(job.declared or base.declared),
        )

    @property
    def _tree(self) -> Directory:
        return self._source.snapshot(self._snapshot)

    def _identify(self, fs: FileSystem) -> Snapshotted:
        found = find_snapshot(fs, self._source, self._snapshot)
        return _snapshotted(fs, self._source, found)

    def _find_base(self, fs: FileSystem, wanted: Snapshotted) -> str | None:
        there = {
            _snapshotted(fs, self._source, each)
            for each in fs.list_snapshots(self._source.path)
            if not each.is_deleted
        }
        earlier = [
            head
            for head in list_heads(self.backups)
            if head.snapshot in there and head.snapshot.taken_ms <= wanted.taken_ms
        ]
        return earlier[-1].name if earlier else None

    def _check_room(self, planned: list[Batch]) -> None:
        needed, free = sum(batch.bytes for batch in planned), self.backups.free_bytes()
        if free is not None and free < needed:
            raise ClusterStorageCapacityExceededException(
                f"{self.backups} has room for {free:,} bytes, and the backup needs {needed:,}: make"
                " room, and run it again"
            )

    def _make_head(self, job: BackupJob, results: list[BackedUp]) -> Head:
        def total(name: str) -> int:
            return sum(getattr(result, name) for result in results)

        packs = [result.pack for result in results if result.pack is not None]
        used = {path for result in results for path in result.used_packs}
        if used and job.base is not None:
            before = {pack.path: pack for pack in read_head(self.backups, job.base).packs}
            packs += [before[path] for path in sorted(used)]
        return Head(
            FORMAT,
            self.name,
            job.snapshot,
            job.base,
            files=total("files"),
            directories=total("directories"),
            symlinks=total("symlinks"),
            bytes=total("bytes"),
            space_bytes=total("space_bytes"),
            copied_files=total("copied_files"),
            copied_bytes=total("copied_bytes"),
            finished_ms=time.time_ns() // 1_000_000,
            has_policies=any(result.has_policies for result in results),
            declared=job.declared,
            parts=[result.part for result in results],
            packs=packs,
        )

    def _clean(self, head: Head) -> None:
        """Remove what attempts that came to nothing have left, and then the plan."""
        where = self.backups / self.name
        needed = {part.name for part in head.parts} | {
            pack.path.rpartition("/")[2] for pack in head.packs
        }
        for folder in (MANIFEST, DATA):
            for name in (where / folder).sizes():
                if name not in needed:
                    (where / folder).remove(name)
        self._work.end()


@dataclass(frozen=True)
class _BackUp:
    """The task: content of files goes to a pack, entries to a part of the manifest."""

    source: SnapshotSource
    backups: Place
    name: str

    def __call__(self, items: pa.Table) -> BackedUp:
        attempt = uuid.uuid4().hex
        pack_path = f"{self.name}/{DATA}/{attempt}.pack"
        written: list[Entry] = []
        copied = []
        with ExitStack() as stack:
            reader = stack.enter_context(self.source.open())
            pack: PackWriter | None = None
            for row in items.to_pylist():
                entry = entries.from_row(row)
                if row["action"] != KEEP:
                    entry = reader.describe(entry)
                if row["action"] == COPY:
                    copied.append(entry.length)
                    if entry.length and pack is None:
                        pack = PackWriter(stack.enter_context(self.backups.create(pack_path)))
                    entry = msgspec.structs.replace(entry, pack=None, offset=0, sha256="")
                    if pack is not None and entry.length:
                        offset, sha256 = pack.add(reader.chunks(entry))
                        entry = msgspec.structs.replace(
                            entry, pack=pack_path, offset=offset, sha256=sha256
                        )
                written.append(entry)
        part = f"{attempt}.parquet"
        sha256 = records.write_table(
            self.backups / self.name / MANIFEST, part, entries.to_table(written)
        )
        files = [entry for entry in written if entry.kind == FILE]
        return BackedUp(
            Part(part, len(written), sha256),
            Pack(pack_path, pack.length) if pack is not None else None,
            sorted({entry.pack for entry in files if entry.pack} - {pack_path}),
            files=len(files),
            directories=sum(entry.kind == DIRECTORY for entry in written),
            symlinks=sum(entry.kind == SYMLINK for entry in written),
            bytes=sum(entry.length for entry in files),
            space_bytes=sum(entry.length * entry.replication for entry in files),
            copied_files=len(copied),
            copied_bytes=sum(copied),
            has_policies=any(entry.policy for entry in written),
        )


def _snapshotted(fs: FileSystem, directory: Directory, snapshot: Snapshot) -> Snapshotted:
    id = fs.get_file_status(directory.path).id
    taken_ms = snapshot.status.mtime_ms
    return Snapshotted(directory.path, id, snapshot.status.name, snapshot.id, taken_ms)


def _result(head: Head, began_s: float, *, was_done: bool = False) -> BackupResult:
    return BackupResult(
        head.name,
        head.base,
        head.files,
        head.directories,
        head.symlinks,
        head.bytes,
        head.copied_files,
        head.copied_bytes,
        round(time.monotonic() - began_s, 3),
        was_done,
    )
