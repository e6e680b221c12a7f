"""ClientNamenodeProtocol: opening files again, cutting them, and taking them from writers.

What has to wait for DataNodes is waited for a while, in place of the "not yet" on which Hadoop's
clients sleep, and some give up: most truncates are done when they are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cairnfs.blocks.records import AdminState, Block, StorageNumber
from cairnfs.errors import HdfsError, IllegalArgumentException, IOException
from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.block_messages import fill_block_to_write
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.responses import encode_bool, fill_status
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namenode.taking_over import run_or_release
from cairnfs.namesystem import append as appending
from cairnfs.namesystem import lease_recovery
from cairnfs.namesystem import truncate as truncating
from cairnfs.namesystem.append import ChooseReplicas
from cairnfs.namesystem.files import is_file_closed
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.open_files import OpenFile, get_open_files
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)

RECOVERY_WAIT_S = 5.0  # for DataNodes to recover a block
RECOVERY_POLL_S = 0.2
OPEN_FILES_MAX = 1000  # dfs.namenode.list.openfiles.num.responses

_parse = FsPath.parse


@CALLS.handler
def append(call: IncomingCall, request: pb.AppendRequestProto) -> None:
    def finish(appended: appending.LastBlockWithStatus) -> None:
        response = pb.AppendResponseProto()
        fill_status(response.stat, appended.status)
        if appended.block is not None:
            fill_block_to_write(response.block, call.namenode, appended.block)
            # Where there are fewer DataNodes than replicas wanted, Hadoop's client would insist
            # on more of them, and fail, before it writes anything.
            usable = max(len(appended.block.storages), _count_usable(call.namenode))
            wanted = response.stat.block_replication
            response.stat.block_replication = min(wanted, max(usable, 1))
        call.answer(response)

    path = _parse(request.src)
    run_or_release(
        call,
        appending.append,
        finish,
        path,
        as_text(request.clientName),
        request.flag,
        _choose_replicas(call.namenode, "append", path),
        call.namenode.lease_soft_limit_ms,
        call.namenode.settings.copy_always,
    )


@CALLS.handler
def truncate(call: IncomingCall, request: pb.TruncateRequestProto) -> None:
    path = _parse(request.src)
    arguments = (
        path,
        to_signed(request.newLength),
        as_text(request.clientName),
        _choose_replicas(call.namenode, "truncate", path),
        call.namenode.lease_soft_limit_ms,
    )
    run_or_release(call, truncating.truncate, _Waiting(call, path).told, *arguments)


@CALLS.handler
def recover_lease(call: IncomingCall, request: pb.RecoverLeaseRequestProto) -> None:
    path = _parse(request.src)
    waiting = _Waiting(call, path)
    run_or_release(
        call, lease_recovery.recover_lease, waiting.told, path, as_text(request.clientName)
    )


class _Waiting:
    """Looks whether a file is closed by now, for a while; then the caller may go on asking.

    It only looks.  To do once more what was begun could undo what others have done since.
    """

    def __init__(self, call: IncomingCall, path: FsPath) -> None:
        self._call = call
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._end_s = self._loop.time() + RECOVERY_WAIT_S

    def told(self, is_closed: bool) -> None:
        if is_closed or self._loop.time() >= self._end_s:
            self._call.answer(encode_bool(is_closed))
        else:
            self._loop.call_later(RECOVERY_POLL_S, self._look)

    def _look(self) -> None:
        self._call.start(is_file_closed, self._seen, self._call.caller, self._path)

    def _seen(self, is_closed: bool | None, error: BaseException | None) -> None:
        if isinstance(error, HdfsError):  # it is gone: what was true at first is said
            self._call.answer(encode_bool(False))
        elif error is not None:
            self._call.fail(error)
        else:
            self.told(bool(is_closed))


@CALLS.handler
def list_open_files(call: IncomingCall, request: pb.ListOpenFilesRequestProto) -> None:
    check_superuser(call)
    path = _parse(request.path or "/")
    wants_all = not request.types or pb.ALL_OPEN_FILES in request.types
    if not wants_all and pb.BLOCKING_DECOMMISSION not in request.types:
        raise IllegalArgumentException(f"Unknown OpenFileType: {list(request.types)}")
    after = InodeId(max(0, request.id))
    answer_with(call, _list_open_files(call.namenode, after, path, wants_all, request.types))


async def _list_open_files(
    namenode: NameNode,
    after: InodeId,
    path: FsPath,
    wants_all: bool,
    types: Sequence[pb.OpenFilesTypeProto],
) -> pb.ListOpenFilesResponseProto:
    """Page after page until some are found: to Hadoop's clients an empty answer is the last."""
    leaving = {
        storage.number
        for node in namenode.datanodes
        if node.record.admin_state
        in (AdminState.DECOMMISSION_INPROGRESS, AdminState.ENTERING_MAINTENANCE)
        for storage in node.record.storages
    }
    response = pb.ListOpenFilesResponseProto(hasMore=False, types=types)
    while True:
        page = await namenode.call(get_open_files, after)
        for file in page.files:
            is_below = path == file.path or path.is_ancestor_of(file.path)
            if is_below and (wants_all or leaving.intersection(file.storages)):
                _add_open_file(response, file)
        after = page.next_after
        if not after or len(response.entries) + len(page.files) > OPEN_FILES_MAX:
            response.hasMore = bool(after and response.entries)
            return response


def _add_open_file(response: pb.ListOpenFilesResponseProto, file: OpenFile) -> None:
    response.entries.add(
        id=file.id,
        path=str(file.path),
        clientName=file.holder,
        clientMachine=file.client_machine,
    )


def _count_usable(namenode: NameNode) -> int:
    """The DataNodes that a pipeline can be made of."""
    return sum(
        node.is_alive and not node.is_stale and node.admin_state is AdminState.NORMAL
        for node in namenode.datanodes.cluster.nodes
    )


def _choose_replicas(namenode: NameNode, action: str, path: FsPath) -> ChooseReplicas:
    """Those that are on DataNodes that answer; the others are outdated from then on."""

    def choose(block: Block, storages: Sequence[StorageNumber]) -> tuple[StorageNumber, ...]:
        datanodes = namenode.datanodes
        known = [each for each in map(datanodes.storage, storages) if each is not None]
        alive = [each for each in known if datanodes.is_alive(each[0])]
        fresh = [each for each in alive if not datanodes.is_stale(each[0])]
        if not alive:
            raise IOException(
                f"{action}: lastBlock={block} of src={path} is not sufficiently replicated yet:"
                f" none of its {len(storages)} replicas is on a DataNode that is alive"
            )
        return tuple(storage.number for _, storage in fresh or alive)

    return choose
