"""ClientNamenodeProtocol: names, attributes, access control lists and quotas."""

from __future__ import annotations

from cairnfs.blocks.records import StorageType
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.namenode.messages import (
    from_acl_entries,
    to_acl_status,
    to_content_summary,
    to_quota_usage,
    to_signed,
)
from cairnfs.namenode.responses import (
    encode_bool,
    encode_first_field,
    encode_found_status,
    encode_nothing,
)
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import (
    acl_operations,
    attributes,
    concat,
    delete,
    directories,
    files,
    quota_operations,
    rename,
    symlinks,
)
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.rename import RenameOption
from cairnfs.wire.proto import acl_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)

_parse = FsPath.parse
_OVERWRITE = RenameOption.OVERWRITE.value
_TO_TRASH = RenameOption.TO_TRASH.value


# Looking


@CALLS.handler
def get_file_info(call: IncomingCall, request: pb.GetFileInfoRequestProto) -> None:
    call.run(directories.get_file_info, encode_found_status, _parse(request.src))


@CALLS.handler
def get_file_link_info(call: IncomingCall, request: pb.GetFileLinkInfoRequestProto) -> None:
    call.run(directories.get_file_link_info, encode_found_status, _parse(request.src))


@CALLS.handler
def get_link_target(call: IncomingCall, request: pb.GetLinkTargetRequestProto) -> None:
    call.run(symlinks.get_link_target, _encode_text, _parse(request.path))


@CALLS.handler
def get_content_summary(call: IncomingCall, request: pb.GetContentSummaryRequestProto) -> None:
    call.run(
        directories.get_content_summary,
        lambda summary: pb.GetContentSummaryResponseProto(summary=to_content_summary(summary)),
        _parse(request.path),
    )


@CALLS.handler
def get_preferred_block_size(
    call: IncomingCall, request: pb.GetPreferredBlockSizeRequestProto
) -> None:
    path = _parse(request.filename)

    def encode(status: FileStatus | None) -> pb.GetPreferredBlockSizeResponseProto:
        if status is None or status.is_directory:
            raise FileNotFoundException(f"File does not exist: {path}")
        return pb.GetPreferredBlockSizeResponseProto(bsize=status.block_size_bytes)

    call.run(directories.get_file_info, encode, path)


@CALLS.handler
def check_access(call: IncomingCall, request: pb.CheckAccessRequestProto) -> None:
    call.run(attributes.check_access, encode_nothing, _parse(request.path), request.mode)


# Making, moving and removing


@CALLS.handler
def mkdirs(call: IncomingCall, request: pb.MkdirsRequestProto) -> None:
    call.run(
        directories.mkdirs,
        encode_bool,
        _parse(request.src),
        request.masked.perm,
        request.unmasked.perm if request.HasField("unmasked") else None,
        request.createParent,
    )


@CALLS.handler
def create_symlink(call: IncomingCall, request: pb.CreateSymlinkRequestProto) -> None:
    call.run(
        symlinks.create_symlink,
        encode_nothing,
        as_text(request.target),
        _parse(request.link),
        request.createParent,
    )


@CALLS.handler
def rename_(call: IncomingCall, request: pb.RenameRequestProto) -> None:
    call.run(rename.rename, encode_bool, _parse(request.src), _parse(request.dst))


@CALLS.handler
def rename2(call: IncomingCall, request: pb.Rename2RequestProto) -> None:
    options = _OVERWRITE if request.overwriteDest else 0
    if request.moveToTrash:
        options |= _TO_TRASH
    call.run(rename.rename2, encode_nothing, _parse(request.src), _parse(request.dst), options)


@CALLS.handler
def delete_(call: IncomingCall, request: pb.DeleteRequestProto) -> None:
    call.run(delete.delete, encode_bool, _parse(request.src), request.recursive)


@CALLS.handler
def concat_(call: IncomingCall, request: pb.ConcatRequestProto) -> None:
    call.run(concat.concat, encode_nothing, _parse(request.trg), *map(_parse, request.srcs))


@CALLS.handler
def get_enclosing_root(
    call: IncomingCall, request: pb.GetEnclosingRootRequestProto
) -> pb.GetEnclosingRootResponseProto:
    """Within which a rename is possible: there are no zones, so anywhere."""
    _parse(request.filename)
    return pb.GetEnclosingRootResponseProto(enclosingRootPath="/")


# Attributes


@CALLS.handler
def set_permission(call: IncomingCall, request: pb.SetPermissionRequestProto) -> None:
    call.run(
        attributes.set_permission, encode_nothing, _parse(request.src), request.permission.perm
    )


@CALLS.handler
def set_owner(call: IncomingCall, request: pb.SetOwnerRequestProto) -> None:
    call.run(
        attributes.set_owner,
        encode_nothing,
        _parse(request.src),
        as_text(request.username) if request.HasField("username") else None,
        as_text(request.groupname) if request.HasField("groupname") else None,
    )


@CALLS.handler
def set_times(call: IncomingCall, request: pb.SetTimesRequestProto) -> None:
    mtime_ms, atime_ms = to_signed(request.mtime), to_signed(request.atime)
    for which, time_ms in (("modification", mtime_ms), ("access", atime_ms)):
        if time_ms < -1:
            raise IOException(f"Invalid {which} time {time_ms}: it is -1 or later than 1970")
    call.run(attributes.set_times, encode_nothing, _parse(request.src), mtime_ms, atime_ms)


@CALLS.handler
def set_replication(call: IncomingCall, request: pb.SetReplicationRequestProto) -> None:
    call.run(files.set_replication, encode_bool, _parse(request.src), request.replication)


# Access control lists


@CALLS.handler
def modify_acl_entries(call: IncomingCall, request: acl_pb2.ModifyAclEntriesRequestProto) -> None:
    entries = from_acl_entries(request.aclSpec)
    call.run(acl_operations.modify_acl_entries, encode_nothing, _parse(request.src), entries)


@CALLS.handler
def remove_acl_entries(call: IncomingCall, request: acl_pb2.RemoveAclEntriesRequestProto) -> None:
    entries = from_acl_entries(request.aclSpec)
    call.run(acl_operations.remove_acl_entries, encode_nothing, _parse(request.src), entries)


@CALLS.handler
def remove_default_acl(call: IncomingCall, request: acl_pb2.RemoveDefaultAclRequestProto) -> None:
    call.run(acl_operations.remove_default_acl, encode_nothing, _parse(request.src))


@CALLS.handler
def remove_acl(call: IncomingCall, request: acl_pb2.RemoveAclRequestProto) -> None:
    call.run(acl_operations.remove_acl, encode_nothing, _parse(request.src))


@CALLS.handler
def set_acl(call: IncomingCall, request: acl_pb2.SetAclRequestProto) -> None:
    entries = from_acl_entries(request.aclSpec)
    call.run(acl_operations.set_acl, encode_nothing, _parse(request.src), entries)


@CALLS.handler
def get_acl_status(call: IncomingCall, request: acl_pb2.GetAclStatusRequestProto) -> None:
    call.run(acl_operations.get_acl_status, to_acl_status, _parse(request.src))


# Quotas


@CALLS.handler
def set_quota(call: IncomingCall, request: pb.SetQuotaRequestProto) -> None:
    call.run(
        quota_operations.set_quota,
        encode_nothing,
        _parse(request.path),
        to_signed(request.namespaceQuota),
        to_signed(request.storagespaceQuota),
        StorageType(request.storageType) if request.HasField("storageType") else None,
    )


@CALLS.handler
def get_quota_usage(call: IncomingCall, request: pb.GetQuotaUsageRequestProto) -> None:
    call.run(
        quota_operations.get_quota_usage,
        lambda usage: pb.GetQuotaUsageResponseProto(usage=to_quota_usage(usage)),
        _parse(request.path),
    )


def _encode_text(text: str) -> bytes:
    return encode_first_field(text.encode())
