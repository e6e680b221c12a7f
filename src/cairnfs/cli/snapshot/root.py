"""The root snapshot: taken before an upgrade, gone back to if that fails, finalized if not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.errors import CommandError
from cairnfs.cli.output import Output, format_bytes, format_table
from cairnfs.cli.progress import Waiting
from cairnfs.cli.snapshot.changing import tell
from cairnfs.cli.snapshot.listing import when
from cairnfs.cli.snapshot.work import describe, wait_until_reclaimed

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import RootSnapshotStatus, SnapshotWork


def root(fs: FileSystem, given: argparse.Namespace) -> int:
    if given.name is not None and given.what != "create":
        raise CommandError(f"there is one root snapshot: {given.what} takes no --name")
    if given.wait and given.what != "finalize":
        raise CommandError(f"{given.what} has nothing to --wait for")
    actions = {"create": _create, "status": _status, "rollback": _rollback, "finalize": _finalize}
    actions[given.what](fs, given)
    return 0


def _create(fs: FileSystem, given: argparse.Namespace) -> None:
    taken = fs.create_root_snapshot(given.name)
    tell(
        given,
        {"name": taken.name, "txid": taken.txid, "created_ms": taken.created_ms},
        f"Created root snapshot /.snapshot/{taken.name} of transaction {taken.txid}",
    )


def _rollback(fs: FileSystem, given: argparse.Namespace) -> None:
    """What is given up is in a snapshot, whose name is told: so this can be undone."""
    with Waiting("rolling / back"):
        safety = fs.rollback_root_snapshot()
    tell(
        given,
        {"safety_snapshot": safety},
        f"Rolled / back to the root snapshot; to undo that: cairn snapshot rollback / {safety}",
    )


def _finalize(fs: FileSystem, given: argparse.Namespace) -> None:
    deleted = fs.finalize_root_snapshot()
    tell(
        given,
        {"deleted": deleted},
        f"Finalized the root snapshot; deleted of /: {', '.join(deleted)}",
    )
    if given.wait:
        wait_until_reclaimed(fs)


def _status(fs: FileSystem, given: argparse.Namespace) -> None:
    status = fs.root_snapshot_status()
    work = fs.snapshot_work()
    out = Output()
    if given.json:
        out.print_json(_as_record(status, work))
    else:
        for line in _as_lines(status, work):
            out.print(line)
    out.flush()


def _as_record(status: RootSnapshotStatus | None, work: SnapshotWork) -> dict[str, object]:
    import msgspec

    told = None if status is None else msgspec.to_builtins(status)
    return {"root_snapshot": told, "work": msgspec.to_builtins(work)}


def _as_lines(status: RootSnapshotStatus | None, work: SnapshotWork) -> list[str]:
    lines = []
    if status is None:
        lines.append("There is no root snapshot; `cairn snapshot root create`")
    else:
        taken = status.snapshot
        lines.append(f"Root snapshot: /.snapshot/{taken.name}")
        lines.append(f"Taken: {when(taken.created_ms)} by {taken.user}, transaction {taken.txid}")
        lines.append(f"Since then: {status.transactions} transactions")
        lines += format_table(_compare(status), frozenset((1, 2)))
        if taken.rolled_back_ms is not None:
            lines.append(f"Rolled back: {when(taken.rolled_back_ms)}")
        lines += [f"Given up by a roll-back: /.snapshot/{n}" for n in taken.safety_snapshots]
        lines += [
            f"A roll-back is refused: it would remove {path}, which has snapshots of its own"
            for path in status.hindrances
        ]
    if not work.is_done:
        by = f", by NameNode {work.namenode}" if work.namenode else ""
        lines.append(f"Reclaiming{by}: {describe(work)}")
    return lines


def _compare(status: RootSnapshotStatus) -> list[list[str]]:
    then, now = status.then, status.now
    return [
        ["", "THEN", "NOW"],
        ["Files", str(then.files), str(now.files)],
        ["Directories", str(then.directories), str(now.directories)],
        ["Length", format_bytes(then.length_bytes), format_bytes(now.length_bytes)],
        ["With replicas", format_bytes(then.space_bytes), format_bytes(now.space_bytes)],
    ]
