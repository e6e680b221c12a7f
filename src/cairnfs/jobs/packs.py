"""The content of many files, one after the other in one: small files cost as little as large ones.

A file's content lies in one piece; its entry says where, and has its SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from cairnfs.errors import EOFException, IOException
from cairnfs.jobs.entries import Entry
from cairnfs.jobs.places import Place
from cairnfs.jobs.sources import BUFFER_BYTES, Reader


class Piece(NamedTuple):
    """Where the content of a file has come to."""

    offset: int
    sha256: str


class PackWriter:
    """A pack that is being written."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.length = 0

    def add(self, chunks: Iterable[bytes]) -> Piece:
        begin = self.length
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            self._stream.write(chunk)
            self.length += len(chunk)
        return Piece(begin, digest.hexdigest())


class PackSource(NamedTuple):
    """A backup, which may refer to packs of earlier ones in the same place."""

    place: Place

    @contextmanager
    def open(self) -> Iterator[Reader]:
        reader = PackReader(self.place)
        try:
            yield reader
        finally:
            reader.close()


class PackReader:
    """Reads entries from packs, of which it keeps one open: files that follow each other do there,
    too."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._name = ""
        self._stream: BinaryIO | None = None

    def describe(self, entry: Entry) -> Entry:
        return entry  # the manifest has said it all

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        if not entry.length:
            return
        stream = self._find(entry)
        stream.seek(entry.offset)
        digest = hashlib.sha256()
        left = entry.length
        while left:
            chunk = stream.read(min(left, BUFFER_BYTES))
            if not chunk:
                raise EOFException(
                    f"{self._place}/{entry.pack} is too short for the content of {entry.path}:"
                    " the backup is damaged"
                )
            left -= len(chunk)
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != entry.sha256:
            raise IOException(
                f"{self._place}/{entry.pack} is damaged: the content of {entry.path} is not what"
                " was backed up"
            )

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _find(self, entry: Entry) -> BinaryIO:
        if entry.pack is None:
            raise IOException(f"the backup {self._place} does not say where {entry.path} is")
        if self._stream is None or self._name != entry.pack:
            self.close()
            self._stream, self._name = self._place.open(entry.pack), entry.pack
        return self._stream
