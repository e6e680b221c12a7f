"""The checksum of a file, put together from those of its blocks: Hadoop's getFileChecksum.

An MD5 of the MD5s that DataNodes make of the checksums they store: nothing is read but these.
It depends on block size and checksum chunks, so that it tells equal files only among those
written alike.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence

from cairnfs.client.records import FileChecksum
from cairnfs.client.transfers import address_of, ask, base_header, connect
from cairnfs.errors import BlockMissingException, IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op

_SUMMARY = struct.Struct(">iq16s")  # bytes per CRC, CRCs per block, MD5
_BUFFER_BYTES = 32  # of Java's, which is hashed with the zeros at its end and doubles when full


def file_checksum(path: str, blocks: Sequence[hdfs_pb2.LocatedBlockProto]) -> FileChecksum:
    """The same as Hadoop's client makes of these blocks."""
    if not blocks:
        return _summarize("CRC32", 0, 0, [])
    answers = [_ask_any(path, block) for block in blocks]
    first = answers[0]
    if any((a.bytesPerCrc, a.crcType) != (first.bytesPerCrc, first.crcType) for a in answers):
        raise IOException(f"{path}: the blocks were not checksummed alike")
    kind = hdfs_pb2.ChecksumTypeProto.Name(first.crcType).removeprefix("CHECKSUM_")
    crcs_per_block = first.crcPerBlock if len(blocks) > 1 else 0
    return _summarize(
        kind, first.bytesPerCrc, crcs_per_block, [answer.blockChecksum for answer in answers]
    )


def _summarize(
    kind: str, bytes_per_crc: int, crcs_per_block: int, digests: Iterable[bytes]
) -> FileChecksum:
    joined = b"".join(digests)
    size = _BUFFER_BYTES
    while size < len(joined):
        size *= 2
    digest = hashlib.md5(joined.ljust(size, b"\0"), usedforsecurity=False).digest()
    return FileChecksum(
        f"MD5-of-{crcs_per_block}MD5-of-{bytes_per_crc}{kind}",
        _SUMMARY.pack(bytes_per_crc, crcs_per_block, digest),
    )


def _ask_any(path: str, block: hdfs_pb2.LocatedBlockProto) -> pb.OpBlockChecksumResponseProto:
    """From the first DataNode that answers."""
    request = pb.OpBlockChecksumProto(header=base_header(block))
    failures = []
    for datanode in block.locs:
        address = address_of(datanode)
        try:
            sock = connect(address)
            try:
                what = f"no checksum of blk_{block.b.blockId}"
                return ask(sock, Op.BLOCK_CHECKSUM, request, what).checksumResponse
            finally:
                sock.close()
        except OSError as error:
            failures.append(f"{address}: {error}")
    reasons = "; ".join(failures) or "no DataNode has it"
    raise BlockMissingException(
        f"Could not obtain block: blk_{block.b.blockId} file={path}: {reasons}"
    )
