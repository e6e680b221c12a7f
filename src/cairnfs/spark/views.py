"""A whole tree at one moment: for whoever reads all of it, in parts, from several places."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import UnsupportedOperationException
from cairnfs.namesystem.tree_scan import FORMAT, Listed, Part, Split
from cairnfs.wire.proto import cairn_pb2

PART_INODES = 100_000
RENEWAL_S = 60.0

_WHOLE = Part()

_encode = msgspec.msgpack.Encoder().encode
_decode_split = msgspec.msgpack.Decoder(Split).decode
_decode_page = msgspec.msgpack.Decoder(list[Listed]).decode


def open_view(fs: FileSystem, path: str) -> View:
    """A directory with all that is below it, as it is now.

    It is held until it is closed, or was not renewed for ten minutes.
    """
    request = cairn_pb2.OpenViewRequestProto(path=fs.absolute_path(path))
    response = fs._call_cairn("openView", request, cairn_pb2.OpenViewResponseProto, "path")
    return View(fs, response.view)


def find_view(fs: FileSystem, number: int) -> View:
    """One that is open already, also from elsewhere; it is renewed."""
    request = cairn_pb2.RenewViewRequestProto(number=number)
    response = fs._call_cairn("renewView", request, cairn_pb2.RenewViewResponseProto)
    return View(fs, response.view)


def list_views(fs: FileSystem) -> list[View]:
    """Those of this user that are open; the superuser sees all."""
    request = cairn_pb2.ListViewsRequestProto()
    response = fs._call_cairn("listViews", request, cairn_pb2.ListViewsResponseProto)
    return [View(fs, each) for each in response.views]


class View:
    """An open view; with `with` it is closed at the end."""

    def __init__(self, fs: FileSystem, message: cairn_pb2.ViewProto) -> None:
        if message.format != FORMAT:
            raise UnsupportedOperationException(
                f"{message.path} cannot be read as a whole: the NameNode tells of inodes in format"
                f" {message.format}, and this client knows {FORMAT}; use the same version of both"
            )
        self._call = fs._call_cairn
        self.number = message.number
        self.txid = message.txid
        self.path = message.path
        self.user = message.user
        self.renewed_ms = message.renewedMs
        self._renewed_s = time.monotonic()

    def __repr__(self) -> str:
        return f"View({self.number}, {self.path!r} after transaction {self.txid})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def renew(self) -> None:
        """Say that it is still read."""
        request = cairn_pb2.RenewViewRequestProto(number=self.number)
        response = self._call("renewView", request, cairn_pb2.RenewViewResponseProto)
        self.renewed_ms = response.view.renewedMs
        self._renewed_s = time.monotonic()

    def close(self) -> None:
        """Let it go."""
        request = cairn_pb2.CloseViewRequestProto(number=self.number)
        self._call("closeView", request, cairn_pb2.CloseViewResponseProto)

    def split(self, inodes: int = PART_INODES) -> Iterator[Part]:
        """Parts of about as many inodes, which together are the whole tree."""
        waiting = [_WHOLE]
        while waiting:
            request = cairn_pb2.SplitViewRequestProto(
                number=self.number, part=_encode(waiting.pop()), inodes=inodes
            )
            response = self._call("splitView", request, cairn_pb2.SplitViewResponseProto)
            split = _decode_split(response.split)
            yield from (sized.part for sized in split.parts if not sized.is_large)
            waiting += [sized.part for sized in split.parts if sized.is_large]
            if split.rest is not None:
                waiting.append(split.rest)

    def read(self, part: Part = _WHOLE) -> Iterator[list[Listed]]:
        """The inodes of a part, page by page; the view is renewed meanwhile."""
        request = cairn_pb2.ScanViewRequestProto(number=self.number, part=_encode(part))
        while True:
            if time.monotonic() - self._renewed_s > RENEWAL_S:
                self.renew()
            response = self._call("scanView", request, cairn_pb2.ScanViewResponseProto)
            yield _decode_page(response.page)
            if not response.cursor:
                return
            request.cursor = response.cursor
