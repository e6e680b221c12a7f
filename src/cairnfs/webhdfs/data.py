"""WebHDFS operations that move data: OPEN, CREATE, APPEND and GETFILECHECKSUM.

A DataNode serves them, and a NameNode that is told to.  Whoever does is a client of the file
system, in threads (`lane`), and holds no more of a file than some pieces of it.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from aiohttp import web

from cairnfs.errors import HdfsError, IOException
from cairnfs.webhdfs import data_parameters
from cairnfs.webhdfs.clients import Clients
from cairnfs.webhdfs.data_parameters import APPEND, CHECKSUM, CREATE, OPEN
from cairnfs.webhdfs.lane import Lane, Threads
from cairnfs.webhdfs.parameters import Target, encode_path
from cairnfs.webhdfs.requests import answer_json, cut_short, send_continue, user_of
from cairnfs.webhdfs.transfers import Download, Transfer, Upload, tell_failures, told_as_missing

THREADS_MAX = 64
PIECE_BYTES = 1 << 20
PATIENCE_S = 60.0  # with a client that neither sends nor reads
CLOSE_LIMIT_S = 5.0
FILE_MODE = 0o644


class Data:
    """Serves the data of one file system."""

    def __init__(self, url: str) -> None:
        self._authority = url.removeprefix("hdfs://")
        self._clients = Clients(url)
        self._threads = Threads("webhdfs", THREADS_MAX)

    async def answer(
        self, request: web.Request, target: Target, operation: str
    ) -> web.StreamResponse:
        """Answer one of the four operations."""
        operations = {
            OPEN: self._open,
            CREATE: self._create,
            APPEND: self._append,
            CHECKSUM: self._get_checksum,
        }
        return await operations[operation](request, target)

    async def close(self) -> None:
        """Give what is under way a moment to end as it should."""
        await asyncio.to_thread(self._threads.stop, CLOSE_LIMIT_S)
        await asyncio.to_thread(self._clients.close)

    # Reading

    async def _open(self, request: web.Request, target: Target) -> web.StreamResponse:
        parameters = target.parameters
        data_parameters.buffer_size(parameters)
        offset, length = parameters.number("offset") or 0, parameters.number("length")
        lane, download = Lane(self._threads), Download(self._clients, *user_of(target))
        try:
            left = await lane.run(tell_failures(download.open), target.path, offset, length)
            # The first piece before anything is promised: it may be that nobody has it.
            piece = b""
            if request.method != "HEAD":
                piece = await lane.run(tell_failures(download.read), min(left, PIECE_BYTES))
            response = web.StreamResponse()
            response.content_type = "application/octet-stream"
            response.content_length = left
            await response.prepare(request)
            if request.method != "HEAD":
                await self._send(request, response, lane, download, piece, left)
            return response
        finally:
            lane.leave(download.end)

    async def _send(
        self,
        request: web.Request,
        response: web.StreamResponse,
        lane: Lane,
        download: Download,
        piece: bytes,
        left: int,
    ) -> None:
        """Send what was promised, or end the connection."""
        try:
            while left:
                async with asyncio.timeout(PATIENCE_S):
                    await response.write(piece)
                left -= len(piece)
                piece = await lane.run(tell_failures(download.read), min(left, PIECE_BYTES))
            await response.write_eof()
        except (HdfsError, TimeoutError) as error:
            cut_short(request, str(error) or "nobody reads")

    async def _get_checksum(self, request: web.Request, target: Target) -> web.StreamResponse:
        lane, transfer = Lane(self._threads), Transfer(self._clients, *user_of(target))

        def ask() -> dict[str, object]:
            with told_as_missing(target.path):
                checksum = transfer.begin().get_file_checksum(target.path)
            # Hadoop's buffer is longer than what is in it, and all of it is told.
            told = checksum.digest.hex() + "00" * 4
            return {"algorithm": checksum.algorithm, "bytes": told, "length": len(checksum.digest)}

        try:
            return answer_json({"FileChecksum": await lane.run(tell_failures(ask))})
        finally:
            lane.leave(transfer.end)

    # Writing

    async def _create(self, request: web.Request, target: Target) -> web.StreamResponse:
        parameters = target.parameters
        mode, flags = parameters.mode("permission"), data_parameters.create_flags(parameters)
        data_parameters.buffer_size(parameters)
        lane, upload = Lane(self._threads), Upload(self._clients, *user_of(target))
        try:
            await lane.run(
                tell_failures(upload.create),
                target.path,
                overwrite=parameters.boolean("overwrite") or "OVERWRITE" in flags,
                mode=FILE_MODE if mode is None else mode,
                unmasked_mode=parameters.mode("unmaskedpermission"),
                replication=data_parameters.replication(parameters),
                block_size=data_parameters.block_size(parameters),
                create_parents=parameters.boolean("createparent", True),
            )
            await self._receive(request, lane, upload)
        finally:
            lane.leave(upload.end)
        address = parameters.text("namenoderpcaddress") or self._authority
        location = f"hdfs://{quote(address, safe=':,[]')}{encode_path(target.path)}"
        return web.Response(status=201, headers={"Location": location})

    async def _append(self, request: web.Request, target: Target) -> web.StreamResponse:
        data_parameters.buffer_size(target.parameters)
        lane, upload = Lane(self._threads), Upload(self._clients, *user_of(target))
        try:
            await lane.run(tell_failures(upload.append), target.path)
            await self._receive(request, lane, upload)
        finally:
            lane.leave(upload.end)
        return web.Response()

    async def _receive(self, request: web.Request, lane: Lane, upload: Upload) -> None:
        """Write all of the body, which has to be whole."""
        await send_continue(request)
        try:
            while True:
                async with asyncio.timeout(PATIENCE_S):
                    piece = await request.content.readany()
                if not piece:
                    break
                await lane.run(tell_failures(upload.write), piece)
        except TimeoutError:
            raise IOException(f"no data has come for {PATIENCE_S:.0f} s") from None
        except web.RequestPayloadError as error:
            raise IOException(f"the data cannot be read: {error}") from None
        await lane.run(tell_failures(upload.finish))
