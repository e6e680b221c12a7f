"""Hadoop's sequence files as text: a line for each record, key and value parted by a tab.

Version 6 of the format, plain, with compressed values or in compressed blocks; keys and values
of Hadoop's plain types.
"""

from __future__ import annotations

import bz2
import io
import struct
import zlib
from collections.abc import Callable, Iterator

from cairnfs.cli.fs.files import Source

MAGIC = b"SEQ\x06"

_SYNC_BYTES = 16
_SYNC_ESCAPE = -1  # in place of a record's length
_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "DefaultCodec": zlib.decompress,
    "DeflateCodec": zlib.decompress,
    "GzipCodec": lambda data: zlib.decompress(data, wbits=31),
    "BZip2Codec": bz2.decompress,
}


class NotShown(Exception):
    """The file is damaged, or holds something that is not known here."""


def read_records(source: Source) -> Iterator[str]:
    """The lines of a sequence file, from its beginning."""
    try:
        yield from _read_records(source)
    except (struct.error, zlib.error, ValueError, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise NotShown(f"is a damaged sequence file: {error}") from None


def _read_records(source: Source) -> Iterator[str]:
    stream = _Stream(source)
    magic = stream.read(len(MAGIC))
    if magic != MAGIC:
        raise NotShown(f"is a sequence file of version {magic[-1]}; only 6 is shown")
    show_key, show_value = (_choose_format(stream.read_text()) for _ in range(2))
    is_compressed, is_in_blocks = stream.read(2)
    codec = _choose_codec(stream.read_text()) if is_compressed else None
    for _ in range(2 * stream.read_int()):  # names and values that describe the file
        stream.read_text()
    stream.read(_SYNC_BYTES)
    records = _read_blocks(stream, codec or bytes) if is_in_blocks else _read_singly(stream, codec)
    for key, value in records:
        yield f"{show_key(_Stream(io.BytesIO(key)))}\t{show_value(_Stream(io.BytesIO(value)))}\n"


def _read_singly(
    stream: _Stream, codec: Callable[[bytes], bytes] | None
) -> Iterator[tuple[bytes, bytes]]:
    while not stream.is_at_end:
        length = stream.read_int()
        if length == _SYNC_ESCAPE:
            stream.read(_SYNC_BYTES)
            continue
        key_length = stream.read_int()
        key, value = stream.read(key_length), stream.read(length - key_length)
        yield key, codec(value) if codec is not None else value


def _read_blocks(stream: _Stream, codec: Callable[[bytes], bytes]) -> Iterator[tuple[bytes, bytes]]:
    while not stream.is_at_end:
        stream.read_int()
        stream.read(_SYNC_BYTES)
        count = stream.read_vint()
        parts = (codec(stream.read(stream.read_vint())) for _ in range(4))
        key_lengths, keys, value_lengths, values = (_Stream(io.BytesIO(part)) for part in parts)
        for _ in range(count):
            key = keys.read(key_lengths.read_vint())
            yield key, values.read(value_lengths.read_vint())


class _Stream:
    """Reads exactly as much as it is asked for, in the ways of Java's Writables."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._peeked = b""

    @property
    def is_at_end(self) -> bool:
        self._peeked = self._peeked or self._source.read(1)
        return not self._peeked

    def read(self, size: int) -> bytes:
        if size < 0:
            raise ValueError(f"a length of {size}")
        data, self._peeked = self._peeked[:size], self._peeked[size:]
        data += self._source.read(size - len(data)) if size > len(data) else b""
        if len(data) < size:
            raise EOFError("it ends too soon")
        return data

    def read_int(self) -> int:
        return int.from_bytes(self.read(4), "big", signed=True)

    def read_vint(self) -> int:
        first = int.from_bytes(self.read(1), "big", signed=True)
        if first >= -112:
            return first
        is_negative = first < -120
        value = int.from_bytes(self.read(-120 - first if is_negative else -112 - first), "big")
        return ~value if is_negative else value

    def read_text(self) -> str:
        return self.read(self.read_vint()).decode(errors="replace")

    def read_bytes(self) -> str:
        return self.read(self.read_int()).hex(" ")


_FORMATS: dict[str, Callable[[_Stream], object]] = {
    "Text": _Stream.read_text,
    "IntWritable": _Stream.read_int,
    "LongWritable": lambda stream: int.from_bytes(stream.read(8), "big", signed=True),
    "VIntWritable": _Stream.read_vint,
    "VLongWritable": _Stream.read_vint,
    "BooleanWritable": lambda stream: "true" if stream.read(1)[0] else "false",
    "BytesWritable": _Stream.read_bytes,
    "NullWritable": lambda stream: "(null)",
}
_PACKAGE = "org.apache.hadoop.io."


def _choose_format(java_class: str) -> Callable[[_Stream], object]:
    name = java_class.removeprefix(_PACKAGE)
    if name not in _FORMATS:
        raise NotShown(f"holds {java_class}, which is not shown here")
    return _FORMATS[name]


def _choose_codec(java_class: str) -> Callable[[bytes], bytes]:
    name = java_class.removeprefix(f"{_PACKAGE}compress.")
    if name not in _CODECS:
        raise NotShown(f"is compressed by {java_class}, which is not known here")
    return _CODECS[name]
