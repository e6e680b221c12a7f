"""ClientNamenodeProtocol: reading and listing, with the places of blocks."""

from __future__ import annotations

import hashlib

from cairnfs.errors import HdfsError, IllegalArgumentException
from cairnfs.namenode.block_messages import fill_blocks
from cairnfs.namenode.datanode_protocol import run_bad_blocks
from cairnfs.namenode.messages import encode_listing, encode_page, to_signed
from cairnfs.namenode.responses import NOTHING, encode_bool, fill_status
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import answers, attributes, files, listings, located
from cairnfs.namesystem.located import BatchedListing, LocatedListing, LocatedStatus
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text, message_decoder

CALLS = Service(CLIENT_PROTOCOL)

BATCHED_PATHS_MAX = 100  # dfs.batched.ls.limit

_parse = FsPath.parse
_decode_listing_key = message_decoder(hdfs_pb2.BatchedListingKeyProto)


@CALLS.handler
def is_file_closed(call: IncomingCall, request: pb.IsFileClosedRequestProto) -> None:
    call.run(files.is_file_closed, encode_bool, _parse(request.src))


@CALLS.handler
def get_block_locations(call: IncomingCall, request: pb.GetBlockLocationsRequestProto) -> None:
    def encode(located: answers.LocatedBlocks) -> pb.GetBlockLocationsResponseProto:
        if located.access_time_is_stale and not call.namenode.safe_mode.is_on:
            # To read is not refused because this cannot be written.
            call.start(attributes.update_access_time, _ignore, located.inode_id)
        response = pb.GetBlockLocationsResponseProto()
        fill_blocks(response.locations, call.namenode, located, call.caller.address)
        return response

    call.run(
        located.get_block_locations,
        encode,
        _parse(request.src),
        to_signed(request.offset),
        to_signed(request.length),
    )


@CALLS.handler
def get_located_file_info(call: IncomingCall, request: pb.GetLocatedFileInfoRequestProto) -> None:
    def encode(found: LocatedStatus | None) -> pb.GetLocatedFileInfoResponseProto:
        response = pb.GetLocatedFileInfoResponseProto()
        if found is not None:
            _fill_located(response.fs, call, found)
        return response

    call.run(located.get_located_file_info, encode, _parse(request.src))


@CALLS.handler
def get_listing(call: IncomingCall, request: pb.GetListingRequestProto) -> None:
    path = _parse(request.src)
    if path.is_exactly_reserved:
        call.run(listings.get_listing, encode_listing, path, request.startAfter)
        return
    if not request.needLocation:
        call.run(listings.get_listed_inodes, encode_page, path, request.startAfter)
        return

    def encode(listing: LocatedListing | None) -> pb.GetListingResponseProto:
        response = pb.GetListingResponseProto()
        if listing is not None:
            response.dirList.remainingEntries = listing.remaining
            for entry in listing.entries:
                _fill_located(response.dirList.partialListing.add(), call, entry)
        return response

    call.run(located.get_located_listing, encode, path, request.startAfter)


@CALLS.handler
def get_batched_listing(call: IncomingCall, request: pb.GetBatchedListingRequestProto) -> None:
    if len(request.paths) > BATCHED_PATHS_MAX:
        raise IllegalArgumentException(
            f"Too many source paths ({len(request.paths)} > {BATCHED_PATHS_MAX})"
        )
    checksum = hashlib.md5("\0".join(map(as_text, request.paths)).encode()).digest()
    index, start_after = 0, b""
    if request.startAfter:
        key = _decode_listing_key(request.startAfter)
        if key.checksum != checksum:
            raise IllegalArgumentException("A listing goes on with the paths that it began with")
        index, start_after = key.pathIndex, key.startAfter

    def encode(batch: BatchedListing) -> pb.GetBatchedListingResponseProto:
        response = pb.GetBatchedListingResponseProto()
        for path_index, listing in batch.listings:
            message = response.listings.add()
            message.parentIdx = path_index
            if isinstance(listing, HdfsError):
                message.exception.className = listing.java_class
                message.exception.message = str(listing)
            else:
                for entry in listing.entries:
                    _fill_located(message.partialListing.add(), call, entry)
        response.hasMore = batch.next_index < len(request.paths)
        if response.hasMore:
            response.startAfter = hdfs_pb2.BatchedListingKeyProto(
                checksum=checksum, pathIndex=batch.next_index, startAfter=batch.next_start_after
            ).SerializeToString()
        else:
            response.startAfter = b""
        return response

    paths = map(_parse, request.paths)
    call.run(located.get_batched_listing, encode, index, start_after, request.needLocation, *paths)


@CALLS.handler
def report_bad_blocks(call: IncomingCall, request: pb.ReportBadBlocksRequestProto) -> None:
    run_bad_blocks(call, request.blocks, lambda: call.answer(NOTHING))


def _fill_located(
    message: hdfs_pb2.HdfsFileStatusProto, call: IncomingCall, found: LocatedStatus
) -> None:
    fill_status(message, found.status)
    if found.blocks is not None:
        fill_blocks(message.locations, call.namenode, found.blocks, call.caller.address)


def _ignore(result: object, error: BaseException | None) -> None:
    pass
