"""Jobs that leave no trace when they fail: directories go back to what they were, together."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import cairnfs
from cairnfs.errors import IllegalArgumentException, SnapshotException

GUARD_PREFIX = "guard-"


class Guard(NamedTuple):
    """What was there before the job: a snapshot of that name of each directory."""

    name: str
    paths: tuple[str, ...]


@contextlib.contextmanager
def guarded(
    *urls: str, job: str | None = None, keep: bool = False, user: str | None = None
) -> Iterator[Guard]:
    """Run what is inside, and if it fails bring all these directories back to what they were.

    For a `with` statement, or to decorate a function.  The directories are snapshottable and of
    one file system; a snapshot of all of them at one moment is taken before, and deleted after
    success unless `keep` says otherwise.  They are rolled back by one transaction; what the job
    had done is in snapshots, which the error names.

    With `job`, a name by which this job is known, a run that was killed is made up for: if its
    snapshot is still there, the directories go back to that first.  So no two runs of a job may
    be under way at once.
    """
    if not urls:
        raise IllegalArgumentException("guarded() is given no directory to guard")
    with cairnfs.connect(urls[0], user=user) as fs:
        paths = tuple(dict.fromkeys(map(fs.absolute_path, urls)))
        guard = Guard(GUARD_PREFIX + (job or uuid.uuid4().hex), paths)
        if job is not None:
            _make_up_for_a_killed_run(fs, guard)
        fs.create_snapshots(paths, guard.name)
        try:
            yield guard
        except BaseException as error:
            _go_back(fs, guard, error)
            raise
        if not keep:
            _drop(fs, guard)


def _go_back(fs: cairnfs.FileSystem, guard: Guard, error: BaseException) -> None:
    try:
        kept = fs.rollback_snapshots(guard.paths, guard.name)
    except Exception as failure:
        error.add_note(
            f"{', '.join(guard.paths)} could not be rolled back ({failure}): what they were before"
            f" is in their snapshots {guard.name}"
        )
        raise error from failure
    places = [f"{path}/.snapshot/{name}" for path, name in zip(guard.paths, kept, strict=True)]
    error.add_note(
        f"{', '.join(guard.paths)} are what they were before; what the job had done is in"
        f" {', '.join(places)}"
    )
    _drop(fs, guard)


def _make_up_for_a_killed_run(fs: cairnfs.FileSystem, guard: Guard) -> None:
    left = [path for path in guard.paths if fs.find_snapshot(path, guard.name) is not None]
    if len(left) == len(guard.paths):
        fs.rollback_snapshots(guard.paths, guard.name)
    elif left:
        raise SnapshotException(
            f"{', '.join(left)} have the snapshot {guard.name} of a run that was killed, but not"
            " all of the directories that are to be guarded now; look at it, and delete it"
        )
    _drop(fs, Guard(guard.name, tuple(left)))


def _drop(fs: cairnfs.FileSystem, guard: Guard) -> None:
    for path in guard.paths:
        fs.delete_snapshot(path, guard.name)
