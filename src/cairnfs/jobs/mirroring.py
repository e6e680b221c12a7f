"""`mirror`: another cluster is kept equal to a directory, round by round.

The first round copies a snapshot; each later one takes another, applies what changed since the last
(`mirror_round`), and deletes that.  The other cluster may be any HDFS.  Beside the copy, in
`.cairn-mirror-NAME`, is what the next round has to know, and what waits for its turn in this one.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import Unpack

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    IOException,
    SnapshotException,
)
from cairnfs.jobs.changes import changes
from cairnfs.jobs.directories import Directory, find_snapshot
from cairnfs.jobs.entries import DIRECTORY, TOP, Entry
from cairnfs.jobs.inheriting import declared_names
from cairnfs.jobs.mirror_round import Applied, Aside, apply_round
from cairnfs.jobs.plans import Plan, summarize
from cairnfs.jobs.sessions import Options, Run, running
from cairnfs.jobs.sources import SnapshotSource, scan
from cairnfs.jobs.stages import Work, decode
from cairnfs.jobs.trees import CLOSED, Tree, finish_directory, make_closed, write_tree

STATE = "state.json"
PREFIX = "mirror-"  # of the snapshots that are taken


class MirrorResult(msgspec.Struct, frozen=True):
    """What a round has done."""

    snapshot: str
    since: str | None  # None: it was the first one
    created: int
    deleted: int
    moved: int
    modified: int
    copied_files: int
    copied_bytes: int
    seconds: float


class Counts(msgspec.Struct, frozen=True):
    """How much the copy has, by which it is seen whether somebody else has changed it."""

    files: int
    directories: int
    bytes: int


class Mirrored(msgspec.Struct, frozen=True):
    """What the copy is equal to."""

    directory: str
    directory_id: int
    snapshot: str
    snapshot_id: int | None
    copy_id: int
    counts: Counts


class MirrorJob(msgspec.Struct, frozen=True):
    """A round under way, as it is noted."""

    snapshot: str
    since: str | None  # the snapshot of the round before
    moving: int | None = None  # of the first round: the copy's id, when it is to take its place
    written: Applied = Applied()


def mirror(directory: str, target: str, **options: Unpack[Options]) -> MirrorResult:
    """Make `target`, a directory of another cluster, what `directory` is now.

    `mirror("hdfs://namenode:8020/sales", "hdfs://other:8020/sales")`.  Run again, it goes on where
    it was; run once more, it does another round.
    """
    began_s = time.monotonic()
    task = _MirrorTask(directory, target, options)
    with task.source.connect() as fs, task.target.connect() as other:
        last, job = task.begin(fs, other)
        with running("mirror", options) as run:
            applied = task.run(fs, other, last, job, run)
    return MirrorResult(
        job.snapshot,
        None if last is None else last.snapshot,
        **msgspec.structs.asdict(applied),
        seconds=round(time.monotonic() - began_s, 3),
    )


def plan_mirror(directory: str, target: str, **options: Unpack[Options]) -> Plan:
    """What `mirror` would do if nothing changed from now on; nothing is written."""
    task = _MirrorTask(directory, target, options)
    with task.source.connect() as fs, task.target.connect() as other:
        last = task.find_last()
        task.check(fs, other, last)
    to = f"{task.source.path} to {task.target.url}"
    with running("mirror", options) as run:
        if last is None:
            items = scan(run.spark, task.source).selectExpr("*", "'write' as action")
            return summarize(f"Copy {to}", items.withColumnRenamed("length", "cost"))
        told = changes(run.spark, task.source, last.snapshot, "")
        items = told.selectExpr("*", "lower(change) as action", "cast(0 as bigint) as cost")
        return summarize(f"Mirror what changed since {last.snapshot} of {to}", items)


class _MirrorTask:
    """One round, from beginning to end."""

    def __init__(self, directory: str, target: str, options: Options) -> None:
        self.source = Directory.parse(directory, options.get("user"))
        self.target = Directory.parse(target, options.get("user"))
        if self.target.path == "/":
            raise IllegalArgumentException("/ cannot be a mirror: name a directory below it")
        if self.source == self.target:
            raise IllegalArgumentException(f"{directory} cannot be a mirror of itself")
        self._beside = self.target.parent / f".cairn-mirror-{self.target.name}"
        self._work = Work((self._beside / "round").as_place())

    def find_last(self) -> Mirrored | None:
        """What the copy was made equal to, if it ever was."""
        place = self._beside.as_place()
        try:
            return decode(place.read(STATE), Mirrored, f"{place}/{STATE}")
        except FileNotFoundException:
            return None

    def begin(self, fs: FileSystem, other: FileSystem) -> tuple[Mirrored | None, MirrorJob]:
        """The round that is to be done, or was begun before; its snapshot is there."""
        last, job = self.find_last(), self._work.find(MirrorJob)
        if job is not None and last is not None and job.snapshot == last.snapshot:
            self._clean(fs, other, job)  # it was over but for that
            job = None
        if job is None:
            self.check(fs, other, last)
            other.mkdirs(self.target.parent.path)
            make_closed(other, self._beside)
            since = None if last is None else last.snapshot
            job = MirrorJob(f"{PREFIX}{uuid.uuid4().hex[:12]}", since)
            self._work.begin(job)
        for name in ("parts", "moved", "new"):
            other.mkdirs((self._beside / name).path, CLOSED)
        self._take(fs, job.snapshot)
        return last, job

    def check(self, fs: FileSystem, other: FileSystem, last: Mirrored | None) -> None:
        """Whether a round can be begun."""
        found = other.get_file_info(self.target.path)
        if last is None:
            if found is not None and (not found.is_directory or other.list_status(found.path)):
                raise FileAlreadyExistsException(
                    f"{self.target.url} is there, and not as a mirror: begin with a new directory,"
                    " or empty it"
                )
            return
        status = fs.get_file_status(self.source.path)
        if (self.source.path, status.id) != (last.directory, last.directory_id):
            raise FileAlreadyExistsException(
                f"{self.target.url} is the mirror of another directory: of {last.directory}"
            )
        try:
            snapshot = find_snapshot(fs, self.source, last.snapshot)
        except SnapshotException:
            snapshot = None
        if snapshot is None or snapshot.id != last.snapshot_id:
            raise SnapshotException(
                f"the snapshot {last.snapshot} of {self.source.path}, which {self.target.url} is"
                f" equal to, is gone: remove the copy and {self._beside.path}, and begin anew"
            )
        if found is None or found.id != last.copy_id or _count(other, self.target) != last.counts:
            raise IOException(
                f"{self.target.url} is not as the last round has left it: undo what was changed, or"
                f" remove it and {self._beside.path}, and begin anew"
            )

    def run(
        self,
        fs: FileSystem,
        other: FileSystem,
        last: Mirrored | None,
        job: MirrorJob,
        run: Run,
    ) -> Applied:
        source = SnapshotSource(self.source.snapshot(job.snapshot))
        parts = self._beside / "parts"
        inherited = declared_names(fs) | declared_names(other)
        if last is None:
            tree = Tree(self._beside / "tree", parts, inherited)
            applied = self._copy(other, job, source, tree, run)
        else:
            tree = Tree(self.target, parts, inherited)
            aside = Aside(self.target, self._beside / "moved", self._beside / "new", tree)
            told = changes(run.spark, self.source, last.snapshot, job.snapshot)
            applied = apply_round(self._work, told, source, aside, run)
        self._note(fs, other, job)
        self._clean(fs, other, job)
        return applied

    def _copy(
        self, other: FileSystem, job: MirrorJob, source: SnapshotSource, tree: Tree, run: Run
    ) -> Applied:
        """The first round: all of it, into place by one rename."""
        if job.moving is None:
            written = write_tree(
                self._work, lambda: scan(run.spark, source.tree), source, tree, run
            )
            id = other.get_file_status(tree.top.path).id
            count = written.files + written.directories + written.symlinks
            applied = Applied(count, 0, 0, 0, written.files, written.bytes)
            job = msgspec.structs.replace(job, moving=id, written=applied)
            self._work.begin(job)
        found = other.get_file_info(tree.top.path)
        if found is not None and found.id == job.moving:
            other.rename(tree.top.path, self.target.path, overwrite=True)
        with source.open() as reader:
            wanted = reader.describe(Entry(TOP, DIRECTORY))
        finish_directory(other, self.target.path, wanted, tree)
        return job.written

    def _take(self, fs: FileSystem, name: str) -> None:
        """The snapshot of this round, unless it was taken before."""
        try:
            find_snapshot(fs, self.source, name)
        except SnapshotException:
            fs.create_snapshot(self.source.path, name)

    def _note(self, fs: FileSystem, other: FileSystem, job: MirrorJob) -> None:
        """From now on the copy is equal to this snapshot."""
        mirrored = Mirrored(
            self.source.path,
            fs.get_file_status(self.source.path).id,
            job.snapshot,
            find_snapshot(fs, self.source, job.snapshot).id,
            other.get_file_status(self.target.path).id,
            _count(other, self.target),
        )
        self._beside.as_place().write(STATE, msgspec.json.encode(mirrored))

    def _clean(self, fs: FileSystem, other: FileSystem, job: MirrorJob) -> None:
        """Delete the snapshot of the round before, and what was kept for this one."""
        if job.since is not None:
            with suppress(SnapshotException):  # it is deleted already
                fs.delete_snapshot(self.source.path, job.since)
        for name in ("parts", "moved", "new"):
            other.delete((self._beside / name).path, recursive=True)
        self._work.end()


def _count(fs: FileSystem, directory: Directory) -> Counts:
    found = fs.get_content_summary(directory.path)
    return Counts(found.files, found.directories, found.length_bytes)
