"""A whole tree at one moment: for whoever reads all of it, in parts, from several places."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import UnsupportedOperationException
from cairnfs.namesystem.snapshot_changes import Change
from cairnfs.namesystem.tree_parts import (
    FORMAT,
    KnownStorage,
    Listed,
    Part,
    Split,
    decode_page,
    decode_page_of_rows,
)
from cairnfs.wire.proto import cairn_pb2

PART_INODES = 100_000
RENEWAL_S = 60.0
HOLD_S = 600.0  # by default

_WHOLE = Part()

_encode = msgspec.msgpack.Encoder().encode
_decode_split = msgspec.msgpack.Decoder(Split).decode
_decode_storages = msgspec.msgpack.Decoder(list[KnownStorage]).decode
_decode_changes = msgspec.msgpack.Decoder(list[Change]).decode


class Page(NamedTuple):
    """Some of a view."""

    listed: list[Listed]
    storages: list[KnownStorage]  # of the replicas on it


def open_view(
    fs: FileSystem, path: str, *, txid: int = 0, hold_s: float = HOLD_S, label: str = ""
) -> View:
    """A directory with all that is below it, as it is now, or in a snapshot as it was.

    With a TxID it is as it was after that, if a snapshot or a view still has that moment.  It is
    held until it is closed, or was not renewed for `hold_s`.
    """
    request = cairn_pb2.OpenViewRequestProto(
        path=fs.absolute_path(path), txid=txid, limitMs=round(1000 * hold_s), label=label
    )
    response = fs._call_cairn("openView", request, cairn_pb2.OpenViewResponseProto, "path")
    return View(fs, response.view)


def find_view(fs: FileSystem, number: int) -> View:
    """One that is open already, also from elsewhere; it is renewed."""
    request = cairn_pb2.RenewViewRequestProto(number=number)
    response = fs._call_cairn("renewView", request, cairn_pb2.RenewViewResponseProto)
    return View(fs, response.view)


def is_view_current(fs: FileSystem, number: int) -> bool:
    """Whether nothing has changed since a view was opened, for certain; it is not renewed."""
    request = cairn_pb2.IsViewCurrentRequestProto(number=number)
    response = fs._call_cairn("isViewCurrent", request, cairn_pb2.IsViewCurrentResponseProto)
    return response.isCurrent


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
        self.label = message.label
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
        for page in self.pages(part):
            yield page.listed

    def pages(
        self, part: Part = _WHOLE, details: int = 0, *, is_decoded: bool = True
    ) -> Iterator[Page]:
        """The same with what else is to be told; `details` are flags of `Detail`.

        For who only counts inodes they need not be decoded.
        """
        decode = decode_page if is_decoded else decode_page_of_rows
        request = cairn_pb2.ScanViewRequestProto(
            number=self.number, part=_encode(part), details=details
        )
        while True:
            self.keep()
            response = self._call("scanView", request, cairn_pb2.ScanViewResponseProto)
            storages = _decode_storages(response.storages) if response.storages else []
            yield Page(decode(response.page), storages)
            if not response.cursor:
                return
            request.cursor = response.cursor

    def keep(self) -> None:
        """Renew it, if that is due: for whoever goes on reading for long."""
        if time.monotonic() - self._renewed_s > RENEWAL_S:
            self.renew()

    def changes_to(self, later: View) -> Iterator[list[Change]]:
        """What happened from this view to another one, page by page, in an order to apply.

        See `FileSystem.snapshot_changes` for the order; names are relative to the directory.
        """
        request = cairn_pb2.GetViewChangesRequestProto(
            fromNumber=self.number, toNumber=later.number
        )
        while True:
            self.keep()
            later.keep()
            response = self._call("getViewChanges", request, cairn_pb2.GetViewChangesResponseProto)
            yield _decode_changes(response.page)
            if not response.cursor:
                return
            request.cursor = response.cursor
