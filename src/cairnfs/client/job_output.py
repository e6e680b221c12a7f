"""The output of a job, put in its place by one transaction.  Only on CairnFS."""

from __future__ import annotations

from typing import Final

import msgspec

from cairnfs.client.calls import PathLike
from cairnfs.client.root_snapshot import RootSnapshots
from cairnfs.errors import IllegalArgumentException
from cairnfs.wire.proto import cairn_pb2

_MODES: Final = {
    "overwrite": cairn_pb2.CommitOutputRequestProto.REPLACE,
    "append": cairn_pb2.CommitOutputRequestProto.ADD,
    "overwrite-partitions": cairn_pb2.CommitOutputRequestProto.REPLACE_PARTITIONS,
}


class CommittedOutput(msgspec.Struct, frozen=True):
    """How many entries have changed their place; a directory counts once, with all below it."""

    moved: int
    removed: int


class JobOutput(RootSnapshots):
    """From one moment to the next."""

    def commit_output(
        self, staging: PathLike, destination: PathLike, mode: str = "overwrite"
    ) -> CommittedOutput:
        """Make what is in one directory the content of another; the first one is gone then.

        "overwrite": all that was there goes.  "append": it stays, and a name that is taken is an
        error.  "overwrite-partitions": of directories without others below them, those that are
        in the output go.  Readers see what was before or what is after, and so do snapshots; the
        destination keeps its attributes and its snapshots.
        """
        check_output_mode(mode)
        response = self._call_cairn(
            "commitOutput",
            cairn_pb2.CommitOutputRequestProto(
                src=self.absolute_path(staging),
                dst=self.absolute_path(destination),
                mode=_MODES[mode],
            ),
            cairn_pb2.CommitOutputResponseProto,
        )
        return CommittedOutput(response.moved, response.removed)


def check_output_mode(mode: str) -> None:
    """Raise IllegalArgumentException if it is none."""
    if mode not in _MODES:
        raise IllegalArgumentException(f"{mode!r} is none of {', '.join(_MODES)}")
