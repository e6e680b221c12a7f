"""Where a WebHDFS request for data is sent on to: a DataNode that has it, or is to have it.

The new address is as Hadoop's NameNode makes it, down to the order of its parameters.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from aiohttp import web

from cairnfs.blocks.records import AdminState, DataNode
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.data_parameters import CREATE, Parameter, given_parameters
from cairnfs.webhdfs.parameters import PREFIX, encode_path
from cairnfs.webhdfs.requests import answer_json
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("", "0.0.0.0", "::")


async def redirect_to_datanode(call: WebCall, rpc_address: str) -> web.Response:
    """Send a request on to a DataNode; `rpc_address` is where this NameNode's RPC port listens."""
    query = make_query(call, rpc_address)
    datanode = await _choose(call)
    host = f"[{datanode.host_name}]" if ":" in datanode.host_name else datanode.host_name
    return answer_location(call, f"{host}:{datanode.info_port}", query)


def redirect_to_self(call: WebCall, rpc_address: str) -> web.Response:
    """Let the client send its data to this address: it expects to be sent somewhere."""
    return answer_location(call, call.request.host, f"{make_query(call, rpc_address)}&data=true")


def make_query(call: WebCall, rpc_address: str) -> str:
    """The parameters that matter for the operation, each of them checked."""
    given: list[Parameter] = [("op", call.operation)]
    for name in ("doas", "user.name"):
        value = call.parameters.text(name)
        if value is not None:
            given.append((name, value))
    given.append(("namenoderpcaddress", reachable(rpc_address, _local_address(call))))
    given += given_parameters(call.operation, call.parameters)
    return "&".join(f"{name}={quote(value, safe=':')}" for name, value in given)


def reachable(address: str, local: str) -> str:
    """An address to connect to, for one that may stand for all of this machine's."""
    host, _, port = address.rpartition(":")
    return f"{local if host in _EVERYWHERE else host}:{port}"


def _local_address(call: WebCall) -> str:
    """The address of this machine by which the client has reached it."""
    transport = call.request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return LOOPBACK if name is None else str(name[0])


def answer_location(call: WebCall, address: str, query: str) -> web.Response:
    location = f"http://{address}{PREFIX}{encode_path(call.path)}?{query}"
    if call.parameters.boolean("noredirect"):
        return answer_json({"Location": location})
    return web.Response(
        status=307, headers={"Location": location}, content_type="application/octet-stream"
    )


async def _choose(call: WebCall) -> DataNode:
    """The DataNode for a request: near the data, if there is any."""
    excluded = [
        part.strip() for part in (call.parameters.text("excludedatanodes") or "").split(",")
    ]
    if call.operation != CREATE:
        replicas = await _find_replicas(call)
        if replicas is not None:
            return _choose_replica(call, replicas, excluded)
    return _choose_any(call, excluded)


async def _find_replicas(call: WebCall) -> list[hdfs_pb2.DatanodeInfoProto] | None:
    """Who has the first block that is asked for, nearest first; None of an empty file."""
    response = await call.rpc("getFileInfo", pb.GetFileInfoRequestProto(src=call.path))
    if not response.HasField("fs"):
        raise FileNotFoundException(f"File {call.path} not found.")
    length = response.fs.length
    offset = length - 1
    if call.operation == "OPEN":
        offset = call.parameters.number("offset") or 0
        if offset >= length > 0:
            raise IOException(
                f"Offset={offset} out of the range [0, {length}); OPEN, path={call.path}"
            )
    if not length:
        return None
    located = await call.rpc(
        "getBlockLocations",
        pb.GetBlockLocationsRequestProto(src=call.path, offset=offset, length=1),
    )
    if not located.locations.blocks:
        raise IOException(f"Block could not be located. Path={call.path}, offset={offset}")
    return list(located.locations.blocks[0].locs)


def _choose_replica(
    call: WebCall, replicas: list[hdfs_pb2.DatanodeInfoProto], excluded: Collection[str]
) -> DataNode:
    for replica in replicas:
        node = call.server.namenode.datanodes.get(replica.id.datanodeUuid)
        if node is not None and _is_fit(node.record, excluded):
            return node.record
    raise IOException("No active and not excluded nodes contain this block")


def _choose_any(call: WebCall, excluded: Collection[str]) -> DataNode:
    """One that is alive, of the client's own host if there is one."""
    datanodes = call.server.namenode.datanodes
    fit = [
        node for node in datanodes if datanodes.is_alive(node) and _is_fit(node.record, excluded)
    ]
    fresh = [node.record for node in fit if not datanodes.is_stale(node)]
    candidates = fresh or [node.record for node in fit]
    local = [each for each in candidates if each.ip_address == call.request.remote]
    if not candidates:
        raise IOException(
            "Failed to find datanode, suggest to check cluster health."
            f" excludeDatanodes={call.parameters.text('excludedatanodes')}"
        )
    return datanodes.random.choice(local or candidates)


def _is_fit(datanode: DataNode, excluded: Collection[str]) -> bool:
    names = (datanode.ip_address, datanode.host_name)
    # Hadoop's client names the port that it was sent to, its NameNode means the other one.
    ports = (datanode.transfer_port, datanode.info_port)
    addresses = [f"{name}:{port}" for name in names for port in ports]
    return (
        datanode.info_port > 0
        and datanode.admin_state is not AdminState.DECOMMISSIONED
        and not any(each in excluded for each in (*names, *addresses))
    )
