"""cat, text, head, tail, checksum, stat and test."""

from __future__ import annotations

import bz2
import time
import zlib
from collections.abc import Callable
from typing import Protocol

from cairnfs.cli.fs.errors import PathError, UsageError
from cairnfs.cli.fs.files import Source
from cairnfs.cli.fs.formats import format_second_utc, status_as_json
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY
from cairnfs.cli.fs.verb import Verb
from cairnfs.errors import AccessControlException
from cairnfs.modes import format_mode

PIECE_BYTES = 1 << 20
END_BYTES = 1024  # that head and tail show
FOLLOW_MS = 5000


def cat(verb: Verb) -> None:
    verb.options(1, ANY, "ignoreCrc")
    verb.for_each(lambda item: _pour(verb, item, None))


def text(verb: Verb) -> None:
    verb.options(1, ANY, "ignoreCrc")
    verb.for_each(lambda item: _pour(verb, item, _choose_decoder))


def head(verb: Verb) -> None:
    verb.options(1, 1)

    def show(item: Item) -> None:
        item.check_is_file()
        source = item.files.open(item.path)
        try:
            verb.out.write(source.read(END_BYTES))
        finally:
            source.close()

    verb.for_each(show, [verb.paths.find(verb.arguments[0])])


def tail(verb: Verb) -> None:
    options = verb.options(1, 1, "f", valued=("s",))
    follow_s = max(1, options.number("s", FOLLOW_MS)) / 1000

    def show(item: Item) -> None:
        item.check_is_file()
        offset = _pour_from(verb, item, max(0, item.refresh().length_bytes - END_BYTES))
        while "f" in options:
            verb.out.flush()
            time.sleep(follow_s)
            if item.refresh().length_bytes > offset:
                offset = _pour_from(verb, item, offset)

    verb.for_each(show, [verb.paths.find(verb.arguments[0])])


def checksum(verb: Verb) -> None:
    options = verb.options(1, ANY, "v")

    def show(item: Item) -> None:
        status = item.check_is_file()
        found = item.remote.get_file_checksum(item.path)
        size = f"\tBlockSize={status.block_size_bytes}" if "v" in options else ""
        verb.show(
            {"path": item.text, "algorithm": found.algorithm, "digest": found.digest.hex()},
            f"{item}\t{found.algorithm}\t{found.digest.hex()}{size}",
        )

    verb.for_each(show)


_STAT: dict[str, Callable[[Item], object]] = {
    "a": lambda item: f"{item.found.mode:o}",
    "A": lambda item: format_mode(item.found.mode),
    "b": lambda item: item.found.length_bytes,
    "F": lambda item: _kind(item),
    "g": lambda item: item.found.group,
    "n": lambda item: item.name,
    "o": lambda item: item.found.block_size_bytes,
    "r": lambda item: item.found.replication,
    "u": lambda item: item.found.owner,
    "x": lambda item: format_second_utc(item.found.atime_ms),
    "X": lambda item: item.found.atime_ms,
    "y": lambda item: format_second_utc(item.found.mtime_ms),
    "Y": lambda item: item.found.mtime_ms,
}


def stat(verb: Verb) -> None:
    options = verb.options(1, ANY, "R")
    form = verb.arguments.pop(0) if "%" in verb.arguments[0] else "%y"
    verb.options(1, ANY, "R")
    verb.for_each(
        lambda item: verb.show(status_as_json(item.text, item.found), _format_stat(form, item)),
        is_recursive="R" in options,
    )


def test(verb: Verb) -> None:
    """Answers by its exit code."""
    options = verb.options(1, 1, "e", "d", "f", "s", "z", "w", "r")
    if len(options.flags) != 1:
        raise UsageError("Only one test flag is allowed" if options.flags else "No test flag given")
    (flag,) = options.flags
    tests: dict[str, Callable[[Item], bool]] = {
        "e": lambda item: True,
        "d": lambda item: item.found.is_directory,
        "f": lambda item: item.found.is_file,
        "s": lambda item: item.found.length_bytes > 0,
        "z": lambda item: item.found.length_bytes == 0,
        "w": lambda item: _may(item, "w"),
        "r": lambda item: _may(item, "r"),
    }

    def refuse(item: Item) -> None:
        verb.exit_code = 1

    def check(item: Item) -> None:
        if not tests[flag](item):
            refuse(item)

    verb.for_each(check, missing=refuse)


# Content


class _Decoder(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


def _pour(
    verb: Verb, item: Item, choose: Callable[[Item, bytes], Callable[[], _Decoder] | None] | None
) -> None:
    """Write a whole file out, decoded if `choose` knows how."""
    item.check_is_file()
    source = item.files.open(item.path)
    try:
        start = source.read(3) if choose is not None else b""
        make = choose(item, start) if choose is not None else None
        if choose is not None and start == b"SEQ":
            source.seek(0)
            _pour_records(verb, item, source)
        elif make is None:
            verb.out.write(start)
            _pour_rest(verb, source)
        else:
            _pour_decoded(verb, item, source, start, make)
    finally:
        source.close()


def _pour_from(verb: Verb, item: Item, offset: int) -> int:
    """Write the end of a file out; how long it was."""
    source = item.files.open(item.path)
    try:
        source.seek(offset)
        return offset + _pour_rest(verb, source)
    finally:
        source.close()


def _pour_rest(verb: Verb, source: Source) -> int:
    buffer = memoryview(bytearray(PIECE_BYTES))
    total = 0
    while count := source.readinto(buffer):
        verb.out.write(buffer[:count])
        total += count
    return total


def _pour_decoded(
    verb: Verb, item: Item, source: Source, start: bytes, make: Callable[[], _Decoder]
) -> None:
    decoder = make()
    data = start
    try:
        while data:
            verb.out.write(decoder.decompress(data))
            # Streams may follow each other, as when files were put together.
            data = getattr(decoder, "unused_data", b"")
            if data:
                decoder = make()
            else:
                data = source.read(PIECE_BYTES)
                if data and getattr(decoder, "eof", False):
                    decoder = make()
    except (zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise PathError(item, f"cannot be decoded: {error}") from None


def _pour_records(verb: Verb, item: Item, source: Source) -> None:
    from cairnfs.cli.fs.sequence_files import NotShown, read_records

    try:
        for line in read_records(source):
            verb.out.print(line, end="")
    except NotShown as error:
        raise PathError(item, str(error)) from None


def _choose_decoder(item: Item, start: bytes) -> Callable[[], _Decoder] | None:
    """How to make text of a file, by how it begins or what it is called."""
    if start[:2] == b"\x1f\x8b":
        return lambda: zlib.decompressobj(wbits=31)
    if start == b"Obj":
        raise PathError(item, "is an Avro file, which is not shown as text here; Spark reads it")
    if item.name.endswith(".bz2"):
        return bz2.BZ2Decompressor
    if item.name.endswith(".deflate"):
        return zlib.decompressobj
    return None


def _format_stat(form: str, item: Item) -> str:
    parts: list[str] = []
    signs = iter(form)
    for sign in signs:
        if sign != "%":
            parts.append(sign)
            continue
        letter = next(signs, "")
        parts.append(str(_STAT[letter](item)) if letter in _STAT else letter)
    return "".join(parts)


def _kind(item: Item) -> str:
    if item.found.is_directory:
        return "directory"
    return "regular file" if item.found.is_file else "symlink"


def _may(item: Item, right: str) -> bool:
    try:
        item.remote.check_access(item.path, right)
    except (AccessControlException, FileNotFoundError):
        return False
    return True
