"""WebHDFS operations that change something: those of PUT, POST and DELETE, but for data."""

from __future__ import annotations

import uuid

from aiohttp import web
from google.protobuf.message import Message

from cairnfs.blocks.records import StorageType
from cairnfs.client.messages import encode_acl_entries, encode_xattr
from cairnfs.errors import EOFException, IllegalArgumentException
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.looking import Operation
from cairnfs.webhdfs.parameters import ACL_PATTERN, LONG_MAX, SHORT_MAX
from cairnfs.webhdfs.requests import answer_json, answer_nothing
from cairnfs.wire.proto import acl_pb2, erasure_coding_pb2, xattr_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL
from cairnfs.xattr_text import decode_value

DIRECTORY_MODE = 0o755
_RENAME_OPTIONS = ("NONE", "OVERWRITE", "TO_TRASH")
_XATTR_FLAGS = {"CREATE": xattr_pb2.XATTR_CREATE, "REPLACE": xattr_pb2.XATTR_REPLACE}
_QUOTA_DONT_SET = LONG_MAX
_UNSIGNED_MASK = 2**64 - 1


async def _answer_bool(call: WebCall, method: str, message: Message) -> web.Response:
    return answer_json({"boolean": (await call.rpc(method, message)).result})


async def answer_nothing_to(call: WebCall, method: str, message: Message) -> web.Response:
    await call.rpc(method, message)
    return answer_nothing()


def told_the_path(method: str, field: str = "src") -> Operation:
    """An operation of which the path is all that there is to say."""
    request_type = CLIENT_PROTOCOL[method].request_type

    async def operate(call: WebCall) -> web.Response:
        return await answer_nothing_to(call, method, request_type(**{field: call.path}))

    return operate


# Names


async def mkdirs(call: WebCall) -> web.Response:
    mode = call.parameters.mode("permission")
    unmasked = call.parameters.mode("unmaskedpermission")
    message = pb.MkdirsRequestProto(src=call.path, createParent=True)
    message.masked.perm = DIRECTORY_MODE if mode is None else mode
    if unmasked is not None:
        message.unmasked.perm = unmasked
    return await _answer_bool(call, "mkdirs", message)


async def create_symlink(call: WebCall) -> web.Response:
    call.required("destination")
    message = pb.CreateSymlinkRequestProto(
        target=call.parameters.absolute_path("destination"),
        link=call.path,
        createParent=call.parameters.boolean("createparent", True),
    )
    message.dirPerm.perm = 0o777
    return await answer_nothing_to(call, "createSymlink", message)


async def rename(call: WebCall) -> web.Response:
    call.required("destination")
    destination = call.parameters.absolute_path("destination")
    options = call.parameters.options(
        "renameoptions", "org.apache.hadoop.fs.Options.Rename", _RENAME_OPTIONS
    )
    if not options:
        return await _answer_bool(
            call, "rename", pb.RenameRequestProto(src=call.path, dst=destination)
        )
    message = pb.Rename2RequestProto(
        src=call.path,
        dst=destination,
        overwriteDest="OVERWRITE" in options,
        moveToTrash="TO_TRASH" in options,
    )
    return await answer_nothing_to(call, "rename2", message)


async def delete(call: WebCall) -> web.Response:
    recursive = call.parameters.boolean("recursive")
    return await _answer_bool(
        call, "delete", pb.DeleteRequestProto(src=call.path, recursive=recursive)
    )


async def concat(call: WebCall) -> web.Response:
    sources = call.required("sources").split(",")
    return await answer_nothing_to(
        call, "concat", pb.ConcatRequestProto(trg=call.path, srcs=sources)
    )


async def truncate(call: WebCall) -> web.Response:
    length = call.parameters.number("newlength")
    if length is None:
        call.required("newlength")
    # As in HDFS, each request is a client of its own.
    client = f"DFSClient_WebHDFS_{uuid.uuid4().hex}"
    return await _answer_bool(
        call,
        "truncate",
        pb.TruncateRequestProto(src=call.path, newLength=length, clientName=client),
    )


# Attributes


async def set_replication(call: WebCall) -> web.Response:
    replication = call.parameters.number("replication", least=1, type_max=SHORT_MAX)
    if replication is None:
        replication = (await call.server_defaults()).replication
    return await _answer_bool(
        call,
        "setReplication",
        pb.SetReplicationRequestProto(src=call.path, replication=replication),
    )


async def set_permission(call: WebCall) -> web.Response:
    mode = call.parameters.mode("permission")
    message = pb.SetPermissionRequestProto(src=call.path)
    message.permission.perm = DIRECTORY_MODE if mode is None else mode
    return await answer_nothing_to(call, "setPermission", message)


async def set_owner(call: WebCall) -> web.Response:
    owner, group = call.parameters.text("owner"), call.parameters.text("group")
    if owner is None and group is None:
        raise IllegalArgumentException("Both owner and group are empty.")
    message = pb.SetOwnerRequestProto(src=call.path, username=owner, groupname=group)
    return await answer_nothing_to(call, "setOwner", message)


async def set_times(call: WebCall) -> web.Response:
    times = [call.parameters.number(name, least=-1) for name in ("modificationtime", "accesstime")]
    mtime, atime = (_UNSIGNED_MASK if time is None else time & _UNSIGNED_MASK for time in times)
    return await answer_nothing_to(
        call, "setTimes", pb.SetTimesRequestProto(src=call.path, mtime=mtime, atime=atime)
    )


# Access control lists


async def modify_acl_entries(call: WebCall) -> web.Response:
    message = acl_pb2.ModifyAclEntriesRequestProto(src=call.path, aclSpec=_entries(call))
    return await answer_nothing_to(call, "modifyAclEntries", message)


async def remove_acl_entries(call: WebCall) -> web.Response:
    entries = _entries(call, with_permissions=False)
    message = acl_pb2.RemoveAclEntriesRequestProto(src=call.path, aclSpec=entries)
    return await answer_nothing_to(call, "removeAclEntries", message)


async def set_acl(call: WebCall) -> web.Response:
    message = acl_pb2.SetAclRequestProto(src=call.path, aclSpec=_entries(call))
    return await answer_nothing_to(call, "setAcl", message)


def _entries(call: WebCall, *, with_permissions: bool = True) -> list[acl_pb2.AclEntryProto]:
    spec = call.required("aclspec", ACL_PATTERN)
    return encode_acl_entries(spec, with_permissions=with_permissions)


# Quotas


async def set_quota(call: WebCall) -> web.Response:
    namespace = call.parameters.number("namespacequota", least=-1)
    return await _set_quota(call, pb.SetQuotaRequestProto(path=call.path), namespace)


async def set_quota_by_storage_type(call: WebCall) -> web.Response:
    name = call.required("storagetype").upper()
    if name not in StorageType.__members__:
        raise IllegalArgumentException(f"No enum constant org.apache.hadoop.fs.StorageType.{name}")
    message = pb.SetQuotaRequestProto(path=call.path)
    message.storageType = StorageType[name].value  # type: ignore[assignment]
    return await _set_quota(call, message, None)


async def _set_quota(
    call: WebCall, message: pb.SetQuotaRequestProto, namespace: int | None
) -> web.Response:
    space = call.parameters.number("storagespacequota", least=-1)
    quotas = [_QUOTA_DONT_SET if quota is None else quota for quota in (namespace, space)]
    message.namespaceQuota, message.storagespaceQuota = (each & _UNSIGNED_MASK for each in quotas)
    return await answer_nothing_to(call, "setQuota", message)


# Extended attributes


async def set_xattr(call: WebCall) -> web.Response:
    name = call.required("xattr.name")
    call.required("flag")
    flags = call.parameters.options("flag", "org.apache.hadoop.fs.XAttrSetFlag", _XATTR_FLAGS)
    value = decode_value(call.parameters.text("xattr.value") or "")
    message = xattr_pb2.SetXAttrRequestProto(
        src=call.path,
        xAttr=encode_xattr(name, value),
        flag=sum({_XATTR_FLAGS[flag] for flag in flags}),
    )
    return await answer_nothing_to(call, "setXAttr", message)


async def remove_xattr(call: WebCall) -> web.Response:
    attribute = encode_xattr(call.required("xattr.name"))
    message = xattr_pb2.RemoveXAttrRequestProto(src=call.path, xAttr=attribute)
    return await answer_nothing_to(call, "removeXAttr", message)


# Storage policies and erasure coding


async def set_storage_policy(call: WebCall) -> web.Response:
    name = call.parameters.text("storagepolicy")
    if name is None:
        raise IllegalArgumentException("Storage policy name is empty.")
    message = pb.SetStoragePolicyRequestProto(src=call.path, policyName=name)
    return await answer_nothing_to(call, "setStoragePolicy", message)


async def set_ec_policy(call: WebCall) -> web.Response:
    message = erasure_coding_pb2.SetErasureCodingPolicyRequestProto(
        src=call.path, ecPolicyName=call.required("ecpolicy")
    )
    return await answer_nothing_to(call, "setErasureCodingPolicy", message)


def _told_the_ec_policy(method: str) -> Operation:
    """An operation on a policy, whatever the path."""
    request_type = CLIENT_PROTOCOL[method].request_type

    async def operate(call: WebCall) -> web.Response:
        message = request_type(ecPolicyName=call.required("ecpolicy"))
        return await answer_nothing_to(call, method, message)

    return operate


# Delegation tokens: nobody has one


async def renew_delegation_token(call: WebCall) -> web.Response:
    call.required("token")
    raise EOFException("the token cannot be read: this NameNode gives none")


PUT: dict[str, Operation] = {
    "MKDIRS": mkdirs,
    "CREATESYMLINK": create_symlink,
    "RENAME": rename,
    "SETREPLICATION": set_replication,
    "SETPERMISSION": set_permission,
    "SETOWNER": set_owner,
    "SETTIMES": set_times,
    "MODIFYACLENTRIES": modify_acl_entries,
    "REMOVEACLENTRIES": remove_acl_entries,
    "REMOVEDEFAULTACL": told_the_path("removeDefaultAcl"),
    "REMOVEACL": told_the_path("removeAcl"),
    "SETACL": set_acl,
    "SETQUOTA": set_quota,
    "SETQUOTABYSTORAGETYPE": set_quota_by_storage_type,
    "SETXATTR": set_xattr,
    "REMOVEXATTR": remove_xattr,
    "SETSTORAGEPOLICY": set_storage_policy,
    "SATISFYSTORAGEPOLICY": told_the_path("satisfyStoragePolicy"),
    "SETECPOLICY": set_ec_policy,
    "ENABLEECPOLICY": _told_the_ec_policy("enableErasureCodingPolicy"),
    "DISABLEECPOLICY": _told_the_ec_policy("disableErasureCodingPolicy"),
    "RENEWDELEGATIONTOKEN": renew_delegation_token,
    "CANCELDELEGATIONTOKEN": renew_delegation_token,
}
POST: dict[str, Operation] = {
    "CONCAT": concat,
    "TRUNCATE": truncate,
    "UNSETSTORAGEPOLICY": told_the_path("unsetStoragePolicy"),
    "UNSETECPOLICY": told_the_path("unsetErasureCodingPolicy"),
}
DELETE: dict[str, Operation] = {"DELETE": delete}
