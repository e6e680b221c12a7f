"""The steps of rollbackSnapshot: a snapshot of what is given up, and then the roll-back.

They are transactions of their own, since a snapshot has what was committed before it.  Invariant:
a roll-back that is refused leaves no snapshot behind; a call that is repeated, because its answer
was lost or its NameNode died, goes on where it was and names the same snapshot.
"""

from __future__ import annotations

import hashlib
import os

from cairnfs.errors import RetriableException, SnapshotException
from cairnfs.namenode.service import IncomingCall
from cairnfs.namesystem import rollback, snapshots
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshots import SnapshotInfo
from cairnfs.transaction.calls import CallKey
from cairnfs.wire.proto import cairn_pb2

SAFETY_PREFIX = "before-rollback-"
_TOKEN_BYTES = 6


class RollBack:
    """One call, on its way."""

    def __init__(self, call: IncomingCall, path: FsPath, name: str) -> None:
        self._call = call
        self._path = path
        self._name = name
        self._safety = name_safety_snapshot(call.key)

    def begin(self) -> None:
        """See first whether there is anything to go back to: else nothing is changed."""
        self._call.namenode.safe_mode.check_off("rollback_snapshot", (self._path,))
        self._call.start(snapshots.list_snapshots, self._looked, self._call.caller, self._path)

    def _looked(self, found: list[SnapshotInfo] | None, error: BaseException | None) -> None:
        if found is None:
            raise error or AssertionError
        names = {info.name.decode() for info in found}
        if self._name not in names:
            raise SnapshotException(
                f"Cannot roll {self._path} back to snapshot {self._name}: it does not exist."
            )
        if self._call.is_retry and self._safety in names:
            self._saved((), None)
            return
        self._call.start(
            snapshots.create_snapshots,
            self._saved,
            self._call.caller,
            (self._path,),
            self._safety,
            is_reply=False,
        )

    def _saved(self, result: tuple[str, ...] | None, error: BaseException | None) -> None:
        if error is not None:
            raise error
        self._call.start(
            rollback.rollback_snapshot, self._rolled_back, self._call.caller, self._path, self._name
        )

    def _rolled_back(self, result: None, error: BaseException | None) -> None:
        if error is None:
            self._call.answer(cairn_pb2.RollbackSnapshotResponseProto(safetySnapshot=self._safety))
            return
        refusal = error
        if isinstance(error, RetriableException):  # perhaps it is done: then it may be undone
            raise error

        def removed(result: None, error: BaseException | None) -> None:
            self._call.fail(refusal)

        self._call.start(
            snapshots.delete_snapshot,
            removed,
            self._call.caller,
            self._path,
            self._safety,
            is_reply=False,
        )


def name_safety_snapshot(key: CallKey | None) -> str:
    """A name that no other call gives, and each repetition of this one does."""
    seed = os.urandom(16) if key is None else key.client_id + key.call_id.to_bytes(8, "big")
    return SAFETY_PREFIX + hashlib.blake2s(seed, digest_size=_TOKEN_BYTES).hexdigest()
