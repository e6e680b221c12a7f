"""Hadoop's BlockListAsLongs: the replicas of a full block report, in both of its forms.

A report may have millions of replicas, so it is decoded page by page, as it is taken up.
What cannot be a block of ours, such as one with a negative id, is left out: HDFS keeps
striped blocks under those, and whatever they are they are not ours to delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cairnfs.blocks.records import BlockId, GenerationStamp
from cairnfs.blocks.reports import ReportedReplica, ReportedState
from cairnfs.errors import IOException
from cairnfs.wire.framing import ProtocolError, decode_varint
from cairnfs.wire.proto import datanode_pb2 as pb

INT64_END = 1 << 63

_STATES = {state.value: state for state in ReportedState}
_SEPARATOR_LONGS = 3
_CUT_SHORT = "A block report that is cut short"


def decode_report(
    report: pb.StorageBlockReportProto, page_size: int
) -> Iterator[list[ReportedReplica]]:
    """The replicas of a storage, so many at a time; raises IOException where it is malformed."""
    if report.HasField("numberOfBlocks"):
        replicas = _decode_buffers(b"".join(report.blocksBuffers), report.numberOfBlocks)
    else:
        replicas = _decode_longs(report.blocks)
    page = []
    for replica in replicas:
        if replica is not None:
            page.append(replica)
            if len(page) == page_size:
                yield page
                page = []
    if page:
        yield page


def reported(id: int, length: int, stamp: int, state: int) -> ReportedReplica | None:
    """A replica as a DataNode describes it; None if it cannot be one of ours."""
    if not (0 < id < INT64_END and 0 <= length < INT64_END and 0 <= stamp < INT64_END):
        return None
    known = _STATES.get(state)
    if known is None:
        return None
    return ReportedReplica(BlockId(id), GenerationStamp(stamp), length, known)


def _decode_buffers(data: bytes, count: int) -> Iterator[ReportedReplica | None]:
    """Four varints for each replica: the id in zigzag, length, generation stamp, state."""
    at = 0
    try:
        for _ in range(count):
            id, at = decode_varint(data, at)
            length, at = decode_varint(data, at)
            stamp, at = decode_varint(data, at)
            state, at = decode_varint(data, at)
            yield reported((id >> 1) ^ -(id & 1), length, stamp, state)
    except ProtocolError:
        raise IOException(_CUT_SHORT) from None


def _decode_longs(longs: Sequence[int]) -> Iterator[ReportedReplica | None]:
    """The older form: two counts, triples, a separator, quadruples with a state."""
    if not longs:
        return
    if len(longs) < 2:
        raise IOException(_CUT_SHORT)
    finalized, others = longs[0], longs[1]
    start = 2 + 3 * finalized
    end = start + (_SEPARATOR_LONGS + 4 * others if others else 0)
    if len(longs) < end:
        raise IOException(_CUT_SHORT)
    for n in range(2, start, 3):
        yield reported(longs[n], longs[n + 1], longs[n + 2], ReportedState.FINALIZED)
    for n in range(start + _SEPARATOR_LONGS, end, 4):
        yield reported(longs[n], longs[n + 1], longs[n + 2], longs[n + 3])
