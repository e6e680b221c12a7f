"""Work that calls have left for later: listing it, and having it done now.  Only on CairnFS.

Duties of NameNodes do it anyway.  Who does not wait for them asks any NameNode, as the superuser;
what two do at once, one of them finds done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from cairnfs.client.job_output import JobOutput
from cairnfs.wire.proto import cairn_pb2 as pb

WorkKind: TypeAlias = Literal["DETACHED", "DELETED_SNAPSHOT", "TO_SETTLE", "POLICY_SCAN"]

RECLAIMING: tuple[WorkKind, ...] = ("DETACHED", "DELETED_SNAPSHOT", "TO_SETTLE")
SATISFYING: tuple[WorkKind, ...] = ("POLICY_SCAN",)


class WorkItem(NamedTuple):
    """Something to be done; of a deleted snapshot it may be a part."""

    kind: str
    id: int  # of an inode
    txid: int = 0  # of the snapshot, or of the moment that content comes from
    begin: int = 0  # of a part: what was superseded after this TxID
    end: int = 0  # and up to this one


class WorkPage(NamedTuple):
    """Some of what is to be done."""

    items: list[WorkItem]
    not_yet: int  # to be done, too, but not at once: another NameNode may not know of it yet


class WorkedOff(NamedTuple):
    """What has been done."""

    rows: int  # looked at
    done: int  # items
    left: list[WorkItem]  # there was no time for these, or for all of them


class OutstandingWork(JobOutput):
    """What is left of deleted trees and snapshots, roll-backs, and changed storage policies."""

    def list_work(
        self, kinds: Collection[WorkKind] = (), rows: int | None = None
    ) -> Iterator[WorkPage]:
        """All that there is, page by page; in parts of about so many rows, where that is known."""
        request = pb.ListWorkRequestProto(kinds=kinds, rows=rows)
        while True:
            response = self._call_cairn("listWork", request, pb.ListWorkResponseProto)
            yield WorkPage(list(map(_decode, response.items)), response.notYet)
            if not response.cursor:
                return
            request.cursor = response.cursor

    def do_work(
        self, items: Sequence[WorkItem], rows: int | None = None, limit_s: float | None = None
    ) -> WorkedOff:
        """Have some of it done, by the NameNode that is asked: so many rows, or for so long."""
        request = pb.DoWorkRequestProto(
            items=map(_encode, items),
            rows=rows,
            limitMs=None if limit_s is None else max(1, int(limit_s * 1000)),
        )
        response = self._call_cairn("doWork", request, pb.DoWorkResponseProto)
        return WorkedOff(response.rows, response.done, list(map(_decode, response.left)))


def _encode(item: WorkItem) -> pb.WorkItemProto:
    return pb.WorkItemProto(
        kind=item.kind,
        id=item.id,
        txid=item.txid or None,
        begin=item.begin or None,
        end=item.end or None,
    )


def _decode(message: pb.WorkItemProto) -> WorkItem:
    kind = pb.WorkItemProto.Kind.Name(message.kind)
    return WorkItem(kind, message.id, message.txid, message.begin, message.end)
