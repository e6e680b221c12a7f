"""Names and attributes: everything about files but their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cairnfs.client.calls import Calls, PathLike
from cairnfs.client.messages import (
    UINT64_MAX,
    decode_acl_status,
    decode_content_summary,
    decode_quota_usage,
    decode_status,
    decode_xattr_name,
    encode_acl_entries,
    encode_action,
    encode_xattr,
)
from cairnfs.client.records import AclStatus, ContentSummary, FileStatus, QuotaUsage, XAttrs
from cairnfs.errors import (
    FileNotFoundException,
    HadoopIllegalArgumentException,
    UnresolvedPathException,
)
from cairnfs.wire.proto import acl_pb2, hdfs_pb2, xattr_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb

_QUOTA_LEAVE = (1 << 63) - 1
_QUOTA_CLEAR = UINT64_MAX

_STORAGE_TYPES = hdfs_pb2.StorageTypeProto.keys()
_ACCESS = {"r": 4, "w": 2, "x": 1}


class Namespace(Calls):
    """Directories, names, permissions, times, quotas, extended attributes."""

    # Looking

    def get_file_info(self, path: PathLike) -> FileStatus | None:
        """What is at a path, at the end of symbolic links; None if there is nothing."""
        name = self.absolute_path(path)
        request = pb.GetFileInfoRequestProto(src=name)
        response = self._namenodes.call_path("getFileInfo", request, pb.GetFileInfoResponseProto)
        return decode_status(response.fs, name) if response.HasField("fs") else None

    def get_file_link_info(self, path: PathLike) -> FileStatus | None:
        """The same, but of a symbolic link itself."""
        name = self.absolute_path(path)
        request = pb.GetFileLinkInfoRequestProto(src=name)
        response = self._namenodes.call_path(
            "getFileLinkInfo", request, pb.GetFileLinkInfoResponseProto
        )
        return decode_status(response.fs, name) if response.HasField("fs") else None

    def get_file_status(self, path: PathLike) -> FileStatus:
        """The same as get_file_info, but nothing is an error."""
        status = self.get_file_info(path)
        if status is None:
            raise FileNotFoundException(f"File does not exist: {self.absolute_path(path)}")
        return status

    def exists(self, path: PathLike) -> bool:
        """Whether there is anything at a path."""
        return self.get_file_info(path) is not None

    def list_status(self, path: PathLike) -> list[FileStatus]:
        """All entries of a directory, by name; of a file, the file alone."""
        return list(self.list_status_iter(path))

    def list_status_iter(self, path: PathLike) -> Iterator[FileStatus]:
        """The same, asking for the next entries only when they are wanted."""
        name = self.absolute_path(path)
        request = pb.GetListingRequestProto(src=name, startAfter=b"", needLocation=False)
        while True:
            response = self._namenodes.call_path("getListing", request, pb.GetListingResponseProto)
            if not response.HasField("dirList"):
                gone = " any more: it was listed in part" if request.startAfter else ""
                raise FileNotFoundException(f"File {name} does not exist{gone}.")
            listing = response.dirList
            for entry in listing.partialListing:
                yield decode_status(entry, name)
            if not listing.remainingEntries or not listing.partialListing:
                return
            request.startAfter = listing.partialListing[-1].path

    def get_content_summary(self, path: PathLike) -> ContentSummary:
        """How much is at and below a path."""
        request = pb.GetContentSummaryRequestProto(path=self.absolute_path(path))
        response = self._namenodes.call_path(
            "getContentSummary", request, pb.GetContentSummaryResponseProto, "path"
        )
        return decode_content_summary(response.summary)

    def check_access(self, path: PathLike, mode: str) -> None:
        """AccessControlException if the user may not do all of `mode`, such as "r" or "wx"."""
        if not mode or not set(mode) <= set(_ACCESS):
            raise HadoopIllegalArgumentException(f"{mode!r} is not made of the letters r, w and x")
        action = sum(_ACCESS[letter] for letter in set(mode))
        request = pb.CheckAccessRequestProto(
            path=self.absolute_path(path), mode=encode_action(action)
        )
        self._namenodes.call_path("checkAccess", request, pb.CheckAccessResponseProto, "path")

    # Making, moving and removing

    def mkdirs(self, path: PathLike, mode: int | None = None, create_parents: bool = True) -> bool:
        """Make a directory, and those above it that are missing; one that exists is fine.

        Without a mode it is 755, or what a default access control list above leaves of 777.
        """
        request = pb.MkdirsRequestProto(src=self.absolute_path(path), createParent=create_parents)
        request.masked.perm = 0o755 if mode is None else mode
        request.unmasked.perm = 0o777 if mode is None else mode
        return self._namenodes.call_path("mkdirs", request, pb.MkdirsResponseProto).result

    def rename(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool | None = None,
        to_trash: bool = False,
    ) -> bool:
        """Move a file or directory.

        As Hadoop's older call does, by default: into `dst` if that is a directory, and False
        where it cannot be done.  With `overwrite` said, as the newer one: `dst` is the new
        name itself, which must be free (False) or is replaced (True); a failure is an error.
        `to_trash` wants the permissions of a deletion, and `overwrite` to be said.
        """
        source, target = self.absolute_path(src), self.absolute_path(dst)
        try:
            return self._rename(source, target, overwrite, to_trash)
        except UnresolvedPathException:
            source, target = self._behind_links(source), self._behind_links(target)
            return self._rename(source, target, overwrite, to_trash)

    def _rename(self, source: str, target: str, overwrite: bool | None, to_trash: bool) -> bool:
        if overwrite is None:
            request = pb.RenameRequestProto(src=source, dst=target)
            return self._namenodes.call("rename", request, pb.RenameResponseProto).result
        request2 = pb.Rename2RequestProto(
            src=source, dst=target, overwriteDest=overwrite, moveToTrash=to_trash
        )
        self._namenodes.call("rename2", request2, pb.Rename2ResponseProto)
        return True

    def _behind_links(self, path: str) -> str:
        """The path without symbolic links, but for the last part."""
        request = pb.GetFileLinkInfoRequestProto(src=path)
        self._namenodes.call_path("getFileLinkInfo", request, pb.GetFileLinkInfoResponseProto)
        return request.src

    def delete(self, path: PathLike, recursive: bool = False) -> bool:
        """Delete; a directory with entries only if `recursive`.  False if there was nothing."""
        request = pb.DeleteRequestProto(src=self.absolute_path(path), recursive=recursive)
        return self._namenodes.call_path("delete", request, pb.DeleteResponseProto).result

    def create_symlink(self, target: str, link: PathLike, *, create_parents: bool = True) -> None:
        """Make a symbolic link at `link` to `target`, which need not exist."""
        request = pb.CreateSymlinkRequestProto(
            target=target, link=self.absolute_path(link), createParent=create_parents
        )
        request.dirPerm.perm = 0o755
        self._namenodes.call_path("createSymlink", request, pb.CreateSymlinkResponseProto, "link")

    def get_link_target(self, path: PathLike) -> str:
        """What a symbolic link says."""
        status = self.get_file_link_info(path)
        if status is None:
            raise FileNotFoundException(f"File does not exist: {self.absolute_path(path)}")
        if status.target is None:
            raise HadoopIllegalArgumentException(f"{status.path} is not a symbolic link")
        return status.target

    def concat(self, target: PathLike, sources: Iterable[PathLike]) -> None:
        """Move the blocks of `sources` to the end of `target`; the sources are gone then."""
        request = pb.ConcatRequestProto(trg=self.absolute_path(target))
        request.srcs.extend(map(self.absolute_path, sources))
        self._namenodes.call("concat", request, pb.ConcatResponseProto)

    # Attributes

    def set_permission(self, path: PathLike, mode: int) -> None:
        """Set the mode, such as 0o750."""
        request = pb.SetPermissionRequestProto(src=self.absolute_path(path))
        request.permission.perm = mode
        self._namenodes.call_path("setPermission", request, pb.SetPermissionResponseProto)

    def set_owner(self, path: PathLike, owner: str | None = None, group: str | None = None) -> None:
        """Set owner, group or both."""
        request = pb.SetOwnerRequestProto(
            src=self.absolute_path(path), username=owner, groupname=group
        )
        self._namenodes.call_path("setOwner", request, pb.SetOwnerResponseProto)

    def set_times(
        self, path: PathLike, mtime_ms: int | None = None, atime_ms: int | None = None
    ) -> None:
        """Set the times of change and access, or one of them."""
        request = pb.SetTimesRequestProto(
            src=self.absolute_path(path),
            mtime=UINT64_MAX if mtime_ms is None else mtime_ms,
            atime=UINT64_MAX if atime_ms is None else atime_ms,
        )
        self._namenodes.call_path("setTimes", request, pb.SetTimesResponseProto)

    def set_replication(self, path: PathLike, replication: int) -> bool:
        """How many replicas a file is to have; False if it is none."""
        request = pb.SetReplicationRequestProto(
            src=self.absolute_path(path), replication=replication
        )
        return self._namenodes.call_path(
            "setReplication", request, pb.SetReplicationResponseProto
        ).result

    # Access control lists; `spec` is text such as "user:ada:rw-,default:group::r-x", or entries

    def get_acl_status(self, path: PathLike) -> AclStatus:
        """The access control list, without what the mode says already."""
        request = acl_pb2.GetAclStatusRequestProto(src=self.absolute_path(path))
        response = self._namenodes.call_path(
            "getAclStatus", request, acl_pb2.GetAclStatusResponseProto
        )
        return decode_acl_status(response.result)

    def set_acl(self, path: PathLike, spec: str | Iterable[str]) -> None:
        """Replace the whole list."""
        request = acl_pb2.SetAclRequestProto(
            src=self.absolute_path(path), aclSpec=encode_acl_entries(spec)
        )
        self._namenodes.call_path("setAcl", request, acl_pb2.SetAclResponseProto)

    def modify_acl_entries(self, path: PathLike, spec: str | Iterable[str]) -> None:
        """Add or change entries; the others stay."""
        request = acl_pb2.ModifyAclEntriesRequestProto(
            src=self.absolute_path(path), aclSpec=encode_acl_entries(spec)
        )
        self._namenodes.call_path(
            "modifyAclEntries", request, acl_pb2.ModifyAclEntriesResponseProto
        )

    def remove_acl_entries(self, path: PathLike, spec: str | Iterable[str]) -> None:
        """Remove entries, named without permissions."""
        request = acl_pb2.RemoveAclEntriesRequestProto(
            src=self.absolute_path(path), aclSpec=encode_acl_entries(spec, with_permissions=False)
        )
        self._namenodes.call_path(
            "removeAclEntries", request, acl_pb2.RemoveAclEntriesResponseProto
        )

    def remove_default_acl(self, path: PathLike) -> None:
        """Remove what children would inherit."""
        request = acl_pb2.RemoveDefaultAclRequestProto(src=self.absolute_path(path))
        self._namenodes.call_path(
            "removeDefaultAcl", request, acl_pb2.RemoveDefaultAclResponseProto
        )

    def remove_acl(self, path: PathLike) -> None:
        """Remove all but what the mode says."""
        request = acl_pb2.RemoveAclRequestProto(src=self.absolute_path(path))
        self._namenodes.call_path("removeAcl", request, acl_pb2.RemoveAclResponseProto)

    # Extended attributes, named with their name space: "user.author"

    def get_xattr(self, path: PathLike, name: str) -> bytes:
        """The value of one attribute, which has to be there."""
        (value,) = self.get_xattrs(path, [name]).values()
        return value

    def get_xattrs(self, path: PathLike, names: Iterable[str] | None = None) -> XAttrs:
        """These attributes, all of which have to be there; or all that the user may see."""
        request = xattr_pb2.GetXAttrsRequestProto(src=self.absolute_path(path))
        request.xAttrs.extend(map(encode_xattr, names or ()))
        response = self._namenodes.call_path("getXAttrs", request, xattr_pb2.GetXAttrsResponseProto)
        return {decode_xattr_name(xattr): xattr.value for xattr in response.xAttrs}

    def list_xattrs(self, path: PathLike) -> list[str]:
        """The names of all attributes that the user may see."""
        request = xattr_pb2.ListXAttrsRequestProto(src=self.absolute_path(path))
        response = self._namenodes.call_path(
            "listXAttrs", request, xattr_pb2.ListXAttrsResponseProto
        )
        return [decode_xattr_name(xattr) for xattr in response.xAttrs]

    def set_xattr(
        self,
        path: PathLike,
        name: str,
        value: bytes = b"",
        *,
        create: bool = True,
        replace: bool = True,
    ) -> None:
        """Set an attribute: a new one if `create`, one that is there if `replace`."""
        flag = (xattr_pb2.XATTR_CREATE if create else 0) | (
            xattr_pb2.XATTR_REPLACE if replace else 0
        )
        request = xattr_pb2.SetXAttrRequestProto(
            src=self.absolute_path(path), xAttr=encode_xattr(name, value), flag=flag
        )
        self._namenodes.call_path("setXAttr", request, xattr_pb2.SetXAttrResponseProto)

    def remove_xattr(self, path: PathLike, name: str) -> None:
        """Remove an attribute."""
        request = xattr_pb2.RemoveXAttrRequestProto(
            src=self.absolute_path(path), xAttr=encode_xattr(name)
        )
        self._namenodes.call_path("removeXAttr", request, xattr_pb2.RemoveXAttrResponseProto)

    # Quotas

    def get_quota_usage(self, path: PathLike) -> QuotaUsage:
        """What counts against the quotas of a directory, and these."""
        request = pb.GetQuotaUsageRequestProto(path=self.absolute_path(path))
        response = self._namenodes.call_path(
            "getQuotaUsage", request, pb.GetQuotaUsageResponseProto, "path"
        )
        return decode_quota_usage(response.usage)

    def set_quota(
        self,
        path: PathLike,
        *,
        namespace_quota: int | None = None,
        space_quota_bytes: int | None = None,
        storage_type: str | None = None,
    ) -> None:
        """Limit a directory; None leaves a quota as it is, -1 removes it.

        With a storage type such as "SSD", the space quota is for that type alone.
        """
        if storage_type is not None and storage_type.upper() not in _STORAGE_TYPES:
            raise HadoopIllegalArgumentException(
                f"{storage_type!r} is no storage type; there are {', '.join(_STORAGE_TYPES)}"
            )
        request = pb.SetQuotaRequestProto(
            path=self.absolute_path(path),
            namespaceQuota=_encode_quota(namespace_quota),
            storagespaceQuota=_encode_quota(space_quota_bytes),
            storageType=storage_type.upper() if storage_type else None,
        )
        self._namenodes.call_path("setQuota", request, pb.SetQuotaResponseProto, "path")


def _encode_quota(value: int | None) -> int:
    if value is None:
        return _QUOTA_LEAVE
    return _QUOTA_CLEAR if value == -1 else value
