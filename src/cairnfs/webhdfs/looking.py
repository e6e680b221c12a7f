"""WebHDFS operations that look: those of GET, but for data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from cairnfs.client.messages import encode_xattr
from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.webhdfs import answers
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.parameters import ACTION_PATTERN, LONG_MAX
from cairnfs.webhdfs.requests import answer_json, answer_nothing, encode_json
from cairnfs.wire.proto import acl_pb2, hdfs_pb2, xattr_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.xattr_text import ENCODINGS

Operation = Callable[[WebCall], Awaitable[web.StreamResponse]]


# Files and directories


async def get_file_status(call: WebCall) -> web.Response:
    response = await call.rpc("getFileInfo", pb.GetFileInfoRequestProto(src=call.path))
    return _answer_status(call, response)


async def get_file_link_status(call: WebCall) -> web.Response:
    response = await call.rpc("getFileLinkInfo", pb.GetFileLinkInfoRequestProto(src=call.path))
    return _answer_status(call, response)


def _answer_status(
    call: WebCall, response: pb.GetFileInfoResponseProto | pb.GetFileLinkInfoResponseProto
) -> web.Response:
    if not response.HasField("fs"):
        raise FileNotFoundException(f"File does not exist: {call.path}")
    return answer_json({"FileStatus": answers.describe_status(response.fs)})


async def get_link_target(call: WebCall) -> web.Response:
    response = await call.rpc("getLinkTarget", pb.GetLinkTargetRequestProto(path=call.path))
    return answer_json({"Path": response.targetPath})


async def list_status(call: WebCall) -> web.StreamResponse:
    """All of a directory, a page at a time: it is never in memory as a whole."""
    pages = _get_pages(call, call.path)
    page = await anext(pages)
    if not page.remainingEntries:
        statuses = [answers.describe_status(status) for status in page.partialListing]
        return answer_json({"FileStatuses": {"FileStatus": statuses}})

    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(call.request)
    await response.write(b'{"FileStatuses":{"FileStatus":[' + _encode_statuses(page))
    async for page in pages:
        if page.partialListing:
            await response.write(b",\n" + _encode_statuses(page))
    await response.write(b"]}}")
    await response.write_eof()
    return response


def _encode_statuses(page: hdfs_pb2.DirectoryListingProto) -> bytes:
    return b",\n".join(encode_json(answers.describe_status(each)) for each in page.partialListing)


async def list_status_batch(call: WebCall) -> web.Response:
    start_after = call.parameters.text("startafter") or ""
    page = await _get_page(call, call.path, start_after.encode())
    return answer_json(answers.describe_page(page))


async def _get_pages(call: WebCall, path: str) -> AsyncIterator[hdfs_pb2.DirectoryListingProto]:
    """Everything in a directory; FileNotFoundException if it is not there, or not any more."""
    start_after = b""
    while True:
        page = await _get_page(call, path, start_after)
        yield page
        if not page.remainingEntries:
            return
        start_after = page.partialListing[-1].path


async def _get_page(
    call: WebCall, path: str, start_after: bytes = b""
) -> hdfs_pb2.DirectoryListingProto:
    response: pb.GetListingResponseProto = await call.rpc(
        "getListing",
        pb.GetListingRequestProto(src=path, startAfter=start_after, needLocation=False),
    )
    if not response.HasField("dirList"):
        raise FileNotFoundException(f"File {path} does not exist.")
    return response.dirList


async def check_access(call: WebCall) -> web.Response:
    letters = call.required("fsaction", ACTION_PATTERN)
    action = sum(bit for letter, bit in zip(letters, (4, 2, 1), strict=True) if letter != "-")
    await call.rpc(
        "checkAccess",
        pb.CheckAccessRequestProto(path=call.path, mode=action),  # type: ignore[arg-type]
    )
    return answer_nothing()


async def get_acl_status(call: WebCall) -> web.Response:
    response = await call.rpc("getAclStatus", acl_pb2.GetAclStatusRequestProto(src=call.path))
    return answer_json(answers.describe_acl(response.result))


def encoding_of(call: WebCall, default: str | None = None) -> str:
    """How values of attributes are to be written; HDFS wants it to be said."""
    given = call.required("encoding") if default is None else call.parameters.text("encoding")
    encoding = (given or default or "").lower()
    if encoding not in ENCODINGS:
        raise IllegalArgumentException(
            'Invalid value for webhdfs parameter "encoding": No enum constant'
            f" org.apache.hadoop.fs.XAttrCodec.{encoding.upper()}"
        )
    return encoding


async def get_xattrs(call: WebCall) -> web.Response:
    encoding = encoding_of(call)
    names = map(encode_xattr, call.parameters.texts("xattr.name"))
    response = await call.rpc(
        "getXAttrs", xattr_pb2.GetXAttrsRequestProto(src=call.path, xAttrs=names)
    )
    return answer_json(answers.describe_xattrs(response.xAttrs, encoding))


async def list_xattrs(call: WebCall) -> web.Response:
    response = await call.rpc("listXAttrs", xattr_pb2.ListXAttrsRequestProto(src=call.path))
    return answer_json(answers.describe_xattr_names(response.xAttrs))


# Blocks


async def get_block_locations(call: WebCall) -> web.Response:
    return answer_json(answers.describe_blocks(await _locate(call)))


async def get_file_block_locations(call: WebCall) -> web.Response:
    return answer_json(answers.describe_locations((await _locate(call)).blocks))


async def _locate(call: WebCall) -> hdfs_pb2.LocatedBlocksProto:
    length = call.parameters.number("length")
    response: pb.GetBlockLocationsResponseProto = await call.rpc(
        "getBlockLocations",
        pb.GetBlockLocationsRequestProto(
            src=call.path,
            offset=call.parameters.number("offset") or 0,
            length=LONG_MAX if length is None else length,
        ),
    )
    return response.locations


# Space


async def get_content_summary(call: WebCall) -> web.Response:
    response = await call.rpc("getContentSummary", pb.GetContentSummaryRequestProto(path=call.path))
    return answer_json(answers.describe_content(response.summary))


async def get_quota_usage(call: WebCall) -> web.Response:
    response = await call.rpc("getQuotaUsage", pb.GetQuotaUsageRequestProto(path=call.path))
    return answer_json(answers.describe_usage(response.usage))


async def get_status(call: WebCall) -> web.Response:
    stats = await call.rpc("getFsStats", pb.GetFsStatusRequestProto())
    status = {"capacity": stats.capacity, "remaining": stats.remaining, "used": stats.used}
    return answer_json({"FsStatus": status})


# The file system


async def get_home_directory(call: WebCall) -> web.Response:
    return answer_json({"Path": f"/user/{call.caller.user}"})


async def get_trash_root(call: WebCall) -> web.Response:
    return answer_json({"Path": f"/user/{call.caller.user}/.Trash"})


async def get_trash_roots(call: WebCall) -> web.Response:
    """The trash of the caller, or of everybody, where there is any."""
    homes = [f"/user/{call.caller.user}"]
    if call.parameters.boolean("allusers"):
        try:
            homes = [
                f"/user/{status.path.decode(errors='replace')}"
                async for page in _get_pages(call, "/user")
                for status in page.partialListing
            ]
        except FileNotFoundException:  # nobody has a home
            homes = []
    found = []
    for path in (f"{home}/.Trash" for home in homes):
        response = await call.rpc("getFileInfo", pb.GetFileInfoRequestProto(src=path))
        if response.HasField("fs"):
            found.append(answers.describe_path(path, response.fs))
    return answer_json({"Paths": found or None})


async def get_server_defaults(call: WebCall) -> web.Response:
    return answer_json(answers.describe_defaults(await call.server_defaults()))


async def get_all_storage_policy(call: WebCall) -> web.Response:
    response = await call.rpc("getStoragePolicies", pb.GetStoragePoliciesRequestProto())
    policies = list(map(answers.describe_policy, response.policies))
    return answer_json({"BlockStoragePolicies": {"BlockStoragePolicy": policies}})


async def get_storage_policy(call: WebCall) -> web.Response:
    response = await call.rpc("getStoragePolicy", pb.GetStoragePolicyRequestProto(path=call.path))
    return answer_json({"BlockStoragePolicy": answers.describe_policy(response.storagePolicy)})


async def get_ec_policy(call: WebCall) -> web.Response:
    """No path has one: data is replicated."""
    return answer_json(None)


async def get_ec_policies(call: WebCall) -> web.Response:
    return answer_json({"ErasureCodingPolicies": {"ErasureCodingPolicyInfo": None}})


async def get_ec_codecs(call: WebCall) -> web.Response:
    return answer_json({"ErasureCodingCodecs": {}})


async def get_delegation_token(call: WebCall) -> web.Response:
    """None is given, as by any HDFS without Kerberos."""
    return answer_json({"Token": None})


GET: dict[str, Operation] = {
    "GETFILESTATUS": get_file_status,
    "GETFILELINKSTATUS": get_file_link_status,
    "GETLINKTARGET": get_link_target,
    "LISTSTATUS": list_status,
    "LISTSTATUS_BATCH": list_status_batch,
    "CHECKACCESS": check_access,
    "GETACLSTATUS": get_acl_status,
    "GETXATTRS": get_xattrs,
    "LISTXATTRS": list_xattrs,
    "GET_BLOCK_LOCATIONS": get_block_locations,
    "GETFILEBLOCKLOCATIONS": get_file_block_locations,
    "GETCONTENTSUMMARY": get_content_summary,
    "GETQUOTAUSAGE": get_quota_usage,
    "GETSTATUS": get_status,
    "GETHOMEDIRECTORY": get_home_directory,
    "GETTRASHROOT": get_trash_root,
    "GETTRASHROOTS": get_trash_roots,
    "GETSERVERDEFAULTS": get_server_defaults,
    "GETALLSTORAGEPOLICY": get_all_storage_policy,
    "GETSTORAGEPOLICY": get_storage_policy,
    "GETECPOLICY": get_ec_policy,
    "GETECPOLICIES": get_ec_policies,
    "GETECCODECS": get_ec_codecs,
    "GETDELEGATIONTOKEN": get_delegation_token,
}
