"""The file system as Python programs see it: Hadoop's calls, blocking, from any thread.

    with cairnfs.connect("hdfs://namenode:8020") as fs:
        with fs.create("/data/hello") as file:
            file.write(b"hello")
        with fs.open("/data/hello") as file:
            print(file.read())

Errors have Hadoop's classes (`cairnfs.errors`), which are also Python's own where there is
one: FileNotFoundError, FileExistsError, PermissionError, NotADirectoryError, ...
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cairnfs.client.addresses import default_user, parse_url
from cairnfs.client.administration import Administration
from cairnfs.client.balancing import Balancer
from cairnfs.client.calls import PathLike
from cairnfs.client.inherited_xattrs import InheritedXAttrs
from cairnfs.client.messages import decode_block_location, decode_server_defaults
from cairnfs.client.namenode import NameNodes
from cairnfs.client.outstanding import OutstandingWork
from cairnfs.client.records import BlockLocation, FileChecksum, ServerDefaults
from cairnfs.errors import HadoopIllegalArgumentException, HdfsError
from cairnfs.network.address import Address
from cairnfs.wire.proto import client_namenode_pb2 as pb

if TYPE_CHECKING:
    from cairnfs.client.copying import Copied, ProgressCallback
    from cairnfs.client.reader import InputStream
    from cairnfs.client.streams import Streams
    from cairnfs.client.verifying import BlockCheck
from cairnfs.client.writer import OutputStream

TIMEOUT_S = 60.0
PATIENCE_S = 60.0
READAHEAD_BYTES = 1 << 20  # asked for at first; a reader that goes on gets the whole block
COPY_THREADS = 4


_file_systems: weakref.WeakSet[FileSystem] = weakref.WeakSet()


def connect(
    url: str,
    *,
    user: str | None = None,
    real_user: str | None = None,
    timeout_s: float = TIMEOUT_S,
    patience_s: float = PATIENCE_S,
) -> FileSystem:
    """Open the file system at `hdfs://host:8020`, or at `hdfs://one:8020,two:8020`.

    `cairn://` means the same; `hdfs:///` is that of the configuration in HADOOP_CONF_DIR.
    Without a user it is HADOOP_USER_NAME, or whoever runs this process; `real_user` is who acts
    in the user's name, if that is somebody else.  A NameNode has `timeout_s` to answer; one that
    has answered before, and does not now, is asked again for `patience_s`, and others beside
    it.  Nothing is sent as yet.
    """
    location = parse_url(url)
    return FileSystem(
        location.namenodes,
        user or location.user or default_user(),
        timeout_s=timeout_s,
        patience_s=patience_s,
        real_user=real_user,
    )


class FileSystem(OutstandingWork, InheritedXAttrs, Balancer, Administration):
    """A connection to a cluster; `close` it, or use it in a `with` statement."""

    def __init__(
        self,
        namenodes: tuple[Address, ...],
        user: str,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        real_user: str | None = None,
    ) -> None:
        self._arguments = (namenodes, user, timeout_s, patience_s, real_user)
        self._patience_s = patience_s
        self._namenodes = NameNodes(
            namenodes, user, timeout_s=timeout_s, patience_s=patience_s, real_user=real_user
        )
        self._client_name = _new_client_name()
        self._defaults: ServerDefaults | None = None
        self._lock = threading.Lock()
        self._opened: Streams | None = None
        _file_systems.add(self)

    def _begin_anew(self) -> None:
        """In a forked child: share nothing with the parent."""
        self._client_name = _new_client_name()
        self._lock = threading.Lock()
        self._namenodes.begin_anew()
        if self._opened is not None:
            self._opened.disown()
            self._opened = None

    @property
    def user(self) -> str:
        """In whose name calls are made."""
        return self._namenodes.user

    @property
    def url(self) -> str:
        """Where this is, as `connect` understands it."""
        return f"hdfs://{','.join(map(str, self._namenodes.addresses))}"

    def __repr__(self) -> str:
        return f"<FileSystem {self.url} as {self.user}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Copied to another process, it is a connection of its own."""
        return _rebuild, self._arguments

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files that are open for writing, and all connections."""
        try:
            if self._opened is not None:
                self._opened.close()
        finally:
            self._namenodes.close()

    # Content

    def open(self, path: PathLike, *, readahead_bytes: int = READAHEAD_BYTES) -> InputStream:
        """Open a file to read it: a binary stream that can seek."""
        return self._streams.open(self.absolute_path(path), readahead_bytes)

    def create(
        self,
        path: PathLike,
        *,
        overwrite: bool = False,
        mode: int | None = None,
        unmasked_mode: int | None = None,
        replication: int | None = None,
        block_size: int | None = None,
        create_parents: bool = True,
    ) -> OutputStream:
        """Make a file and open it for writing; it exists at once, and ends with `close`.

        `unmasked_mode` counts instead of `mode` below a directory with a default ACL.
        """
        defaults = self.get_server_defaults()
        block_size = block_size or defaults.block_size_bytes
        replication = replication or defaults.replication
        if block_size % defaults.bytes_per_checksum:
            raise HadoopIllegalArgumentException(
                f"a block size of {block_size} is not a multiple of {defaults.bytes_per_checksum},"
                " the size of what is checksummed"
            )
        request = pb.CreateRequestProto(
            src=self.absolute_path(path),
            clientName=self._client_name,
            createFlag=pb.CREATE | (pb.OVERWRITE if overwrite else 0),
            createParent=create_parents,
            replication=replication,
            blockSize=block_size,
        )
        # A default access control list takes the place of Hadoop's umask, 022.
        request.masked.perm = 0o644 if mode is None else mode
        if unmasked_mode is None:
            unmasked_mode = 0o666 if mode is None else mode
        request.unmasked.perm = unmasked_mode
        response = self._namenodes.call_path("create", request, pb.CreateResponseProto)
        return self._streams.write(request.src, response.fs, defaults)

    def append(self, path: PathLike, *, new_block: bool = False) -> OutputStream:
        """Open a file to write at its end; with `new_block`, its last block stays as it is."""
        defaults = self.get_server_defaults()
        request = pb.AppendRequestProto(
            src=self.absolute_path(path),
            clientName=self._client_name,
            flag=pb.APPEND | (pb.NEW_BLOCK if new_block else 0),
        )
        response = self._namenodes.call_path("append", request, pb.AppendResponseProto)
        try:
            status = response.stat
            if not response.HasField("stat"):
                found = pb.GetFileInfoRequestProto(src=request.src)
                status = self._namenodes.call("getFileInfo", found, pb.GetFileInfoResponseProto).fs
            last = response.block if response.HasField("block") else None
            if new_block:
                return self._streams.write(request.src, status, defaults, previous=last)
            return self._streams.write(request.src, status, defaults, appended=last)
        except BaseException:
            # The lease is ours, and other files of ours would keep it from expiring.
            with contextlib.suppress(HdfsError, OSError):
                self.recover_lease(request.src)
            raise

    def truncate(self, path: PathLike, length: int) -> bool:
        """Cut a file; False if its last block is still being cut (see `is_file_closed`)."""
        request = pb.TruncateRequestProto(
            src=self.absolute_path(path), newLength=length, clientName=self._client_name
        )
        return self._namenodes.call_path("truncate", request, pb.TruncateResponseProto).result

    def recover_lease(self, path: PathLike) -> bool:
        """Have a file closed whose writer is gone; whether it is closed already."""
        request = pb.RecoverLeaseRequestProto(
            src=self.absolute_path(path), clientName=self._client_name
        )
        return self._namenodes.call_path(
            "recoverLease", request, pb.RecoverLeaseResponseProto
        ).result

    def is_file_closed(self, path: PathLike) -> bool:
        """Whether nobody writes the file."""
        request = pb.IsFileClosedRequestProto(src=self.absolute_path(path))
        return self._namenodes.call_path(
            "isFileClosed", request, pb.IsFileClosedResponseProto
        ).result

    def get_block_locations(
        self, path: PathLike, offset: int = 0, length: int | None = None
    ) -> list[BlockLocation]:
        """The blocks of a file, or of a range of it, and who has them."""
        request = pb.GetBlockLocationsRequestProto(
            src=self.absolute_path(path),
            offset=offset,
            length=(1 << 63) - 1 if length is None else length,
        )
        located = self._namenodes.call_path(
            "getBlockLocations", request, pb.GetBlockLocationsResponseProto
        ).locations
        return [
            decode_block_location(
                block,
                is_complete=located.isLastBlockComplete
                or block.b.blockId != located.lastBlock.b.blockId,
            )
            for block in located.blocks
        ]

    def verify_replicas(
        self,
        path: PathLike,
        offset: int = 0,
        length: int | None = None,
        *,
        pace: Callable[[int], object] = lambda _: None,
    ) -> list[BlockCheck]:
        """Read every replica of a file, or of a range of it, and compare it with its checksums.

        What is bad is reported to the NameNode, if another replica of the block is good.  `pace` is
        called before so many bytes are read: it may wait.
        """
        end = (1 << 63) - 1 if length is None else length
        return self._streams.verify(self.absolute_path(path), offset, end, pace)

    def upload(
        self,
        local: PathLike,
        remote: PathLike,
        *,
        threads: int = COPY_THREADS,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Copied:
        """Copy a local file or tree to `remote`, or into it if that ends with a slash.

        It appears under its final name when it is complete.  `progress` is called with a
        `Progress` from time to time, by one thread at a time.  With `overwrite`, a file is
        replaced, and a tree adds its files to a directory that exists.
        """
        from cairnfs.client.copying import upload

        return upload(self, local, remote, threads=threads, progress=progress, overwrite=overwrite)

    def download(
        self,
        remote: PathLike,
        local: PathLike,
        *,
        threads: int = COPY_THREADS,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Copied:
        """The same in the other direction; parts of a large file are fetched at once."""
        from cairnfs.client.copying import download

        return download(
            self, remote, local, threads=threads, progress=progress, overwrite=overwrite
        )

    def get_file_checksum(self, path: PathLike) -> FileChecksum:
        """A checksum of the content, which DataNodes make: the same as Hadoop's client gives."""
        return self._streams.checksum(self.absolute_path(path))

    # What files get when nobody chooses

    def get_server_defaults(self) -> ServerDefaults:
        """Block size, replication and so on; asked for once."""
        if self._defaults is None:
            response = self._namenodes.call(
                "getServerDefaults",
                pb.GetServerDefaultsRequestProto(),
                pb.GetServerDefaultsResponseProto,
            )
            self._defaults = decode_server_defaults(response.serverDefaults)
        return self._defaults

    @property
    def _streams(self) -> Streams:
        """Made, and its modules imported, when a file is opened: most commands need none."""
        with self._lock:
            if self._opened is None:
                from cairnfs.client.streams import Streams

                self._opened = Streams(self._namenodes, self._client_name, self._patience_s)
            return self._opened


def _new_client_name() -> str:
    return f"DFSClient_cairnfs_{os.urandom(8).hex()}"


def _rebuild(
    namenodes: tuple[Address, ...],
    user: str,
    timeout_s: float,
    patience_s: float,
    real_user: str | None,
) -> FileSystem:
    return FileSystem(
        namenodes, user, timeout_s=timeout_s, patience_s=patience_s, real_user=real_user
    )


def _begin_all_anew() -> None:
    for fs in list(_file_systems):
        fs._begin_anew()


os.register_at_fork(after_in_child=_begin_all_anew)
