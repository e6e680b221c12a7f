"""ClientNamenodeProtocol: writing files, from create to complete, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cairnfs.blocks.records import Block, StorageNumber
from cairnfs.errors import UnsupportedOperationException
from cairnfs.namenode.block_messages import (
    fill_block_to_write,
    from_extended_block,
)
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.responses import encode_bool, encode_found_status, encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namenode.taking_over import run_or_release
from cairnfs.namesystem import answers, file_blocks, files, leases, pipelines
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)

COMPLETE_WAIT_S = 3.0  # for a DataNode to report the last block
COMPLETE_WAIT_FOR_ALL_S = 0.1  # for every DataNode of the pipeline to do so
COMPLETE_POLL_S = 0.02  # reports may come to another NameNode

_parse = FsPath.parse


# Writing


@CALLS.handler
def create(call: IncomingCall, request: pb.CreateRequestProto) -> None:
    if request.ecPolicyName:
        raise UnsupportedOperationException("create is not supported with an erasure coding policy")
    run_or_release(
        call,
        files.create,
        lambda status: call.answer(encode_found_status(status)),
        _parse(request.src),
        request.masked.perm,
        request.unmasked.perm if request.HasField("unmasked") else None,
        as_text(request.clientName),
        request.createFlag,
        request.createParent,
        request.replication,
        to_signed(request.blockSize),
        call.namenode.lease_soft_limit_ms,
    )


@CALLS.handler
def add_block(call: IncomingCall, request: pb.AddBlockRequestProto) -> None:
    path = _parse(request.src)
    flags = 0
    for flag in request.flags:
        flags |= flag
    choose = call.namenode.datanodes.chooser(
        call.caller.address,
        path,
        excluded=[node.id.datanodeUuid for node in request.excludeNodes],
        favored=list(map(as_text, request.favoredNodes)),
        flags=flags,
    )
    call.run(
        file_blocks.add_block,
        lambda block: _encode_block(call, pb.AddBlockResponseProto(), block),
        path,
        as_text(request.clientName),
        from_extended_block(request.previous) if request.HasField("previous") else None,
        InodeId(request.fileId),
        choose,
    )


@CALLS.handler
def get_additional_datanode(
    call: IncomingCall, request: pb.GetAdditionalDatanodeRequestProto
) -> None:
    """Storages to mend a pipeline with, after those that it still has."""
    path = _parse(request.src)
    datanodes = call.namenode.datanodes
    existing = _find_storages(
        call, [node.id.datanodeUuid for node in request.existings], request.existingStorageUuids
    )
    choose = datanodes.chooser(
        call.caller.address,
        path,
        excluded=[node.id.datanodeUuid for node in request.excludes],
        existing=existing,
        count=request.numAdditionalNodes,
    )
    block = from_extended_block(request.blk)

    def encode(additional: tuple[StorageNumber, ...]) -> bytes:
        located = answers.LocatedBlock(block, 0, (*existing, *additional))
        return _encode_block(call, pb.GetAdditionalDatanodeResponseProto(), located)

    call.run(
        pipelines.get_additional_datanode,
        encode,
        path,
        as_text(request.clientName),
        InodeId(request.fileId),
        choose,
    )


@CALLS.handler
def update_block_for_pipeline(
    call: IncomingCall, request: pb.UpdateBlockForPipelineRequestProto
) -> None:
    call.run(
        pipelines.update_block_for_pipeline,
        lambda block: _encode_block(call, pb.UpdateBlockForPipelineResponseProto(), block),
        as_text(request.clientName),
        from_extended_block(request.block),
    )


@CALLS.handler
def update_pipeline(call: IncomingCall, request: pb.UpdatePipelineRequestProto) -> None:
    targets = _find_storages(
        call, [node.datanodeUuid for node in request.newNodes], request.storageIDs
    )
    call.run(
        pipelines.update_pipeline,
        encode_nothing,
        as_text(request.clientName),
        from_extended_block(request.oldBlock),
        from_extended_block(request.newBlock),
        targets,
    )


@CALLS.handler
def abandon_block(call: IncomingCall, request: pb.AbandonBlockRequestProto) -> None:
    call.run(
        file_blocks.abandon_block,
        encode_nothing,
        _parse(request.src),
        as_text(request.holder),
        from_extended_block(request.b),
        InodeId(request.fileId),
    )


@CALLS.handler
def fsync(call: IncomingCall, request: pb.FsyncRequestProto) -> None:
    call.run(
        pipelines.fsync,
        encode_nothing,
        _parse(request.src),
        as_text(request.client),
        InodeId(request.fileId),
        request.lastBlockLength,
    )


@CALLS.handler
def complete(call: IncomingCall, request: pb.CompleteRequestProto) -> None:
    path, file_id = _parse(request.src), InodeId(request.fileId)
    if not request.HasField("last"):  # of an empty file: there is nothing to wait for
        call.run(files.complete, encode_bool, path, as_text(request.clientName), None, file_id)
        return
    call.namenode.safe_mode.check_off("complete", (path,))
    last = from_extended_block(request.last)
    Completion(call, path, as_text(request.clientName), last, file_id).attempt()


class Completion:
    """Closes a file as soon as its last block is known to be written.

    HDFS answers "not yet", and its clients ask again after 400 ms and then ever later.  The
    report of the DataNode is on its way already: so the answer waits for it instead.
    """

    def __init__(
        self, call: IncomingCall, path: FsPath, holder: str, last: Block, file_id: InodeId
    ) -> None:
        self._call = call
        self._arguments = (call.caller, path, holder, last, file_id)
        self._last = last
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def attempt(self) -> None:
        waits_for_all = self._loop.time() - self._began_s < COMPLETE_WAIT_FOR_ALL_S
        self._call.start(files.complete, self._attempted, *self._arguments, waits_for_all)

    def _attempted(self, is_closed: bool | None, error: BaseException | None) -> None:
        if error is not None:
            self._call.fail(error)
        elif is_closed:
            self._call.answer(encode_bool(True))
        elif self._loop.time() - self._began_s >= COMPLETE_WAIT_S:
            self._call.answer(encode_bool(False))
        else:
            self._call.namenode.datanodes.when_reported(self._last.id, self._again)
            self._timer = self._loop.call_later(COMPLETE_POLL_S, self._again)

    def _again(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._call.namenode.datanodes.stop_waiting(self._last.id, self._again)
        self.attempt()


@CALLS.handler
def renew_lease(call: IncomingCall, request: pb.RenewLeaseRequestProto) -> None:
    call.run(leases.renew_lease, encode_nothing, as_text(request.clientName))


def _encode_block(
    call: IncomingCall,
    response: pb.AddBlockResponseProto
    | pb.GetAdditionalDatanodeResponseProto
    | pb.UpdateBlockForPipelineResponseProto,
    located: answers.LocatedBlock,
) -> bytes:
    fill_block_to_write(response.block, call.namenode, located)
    return response.SerializeToString()


def _find_storages(
    call: IncomingCall, uuids: Sequence[str], storage_ids: Sequence[str]
) -> list[StorageNumber]:
    """The storages that a client names by DataNode and id, without those nobody knows."""
    found = map(call.namenode.datanodes.number_of, uuids, storage_ids)
    return [number for number in found if number is not None]
