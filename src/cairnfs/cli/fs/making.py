"""mkdir, touch, touchz, concat, truncate and setrep."""

from __future__ import annotations

import posixpath
import time
from datetime import datetime

from cairnfs.cli.fs.errors import (
    EXISTS,
    IS_NOT_DIRECTORY,
    NOT_FOUND,
    PathError,
    UsageError,
    VerbError,
)
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY, pop_value
from cairnfs.cli.fs.verb import Verb
from cairnfs.clock import SystemClock

WAIT_S = 1.0
REPLICATION_MAX = (1 << 15) - 1


def mkdir(verb: Verb) -> None:
    options = verb.options(1, ANY, "p")

    def refuse(item: Item) -> None:
        if not item.found.is_directory:
            raise PathError(item, IS_NOT_DIRECTORY)
        if "p" not in options:
            raise PathError(item, EXISTS)

    def make(item: Item) -> None:
        if "p" not in options:
            parent = posixpath.dirname(item.path)
            if item.files.get_file_info(parent) is None:
                raise PathError(item.place.url + parent, NOT_FOUND)
        if not item.files.mkdirs(item.path):
            raise PathError(item)

    verb.for_each(refuse, missing=make)


def touchz(verb: Verb) -> None:
    verb.options(1, ANY)

    def touch_again(item: Item) -> None:
        if item.check_is_file().length_bytes:
            raise PathError(item, "Not a zero-length file")
        verb.properties.create(item).close()

    verb.for_each(touch_again, missing=lambda item: _make_empty(verb, item))


def touch(verb: Verb) -> None:
    stamp = pop_value(verb.arguments, "-t")
    options = verb.options(1, ANY, "t", "a", "m", "c")
    only_changed = "m" in options and "a" not in options
    only_read = "a" in options and "m" not in options

    def set_times(item: Item) -> None:
        time_ms = SystemClock().now_ms() if stamp is None else _parse_time_ms(stamp)
        mtime_ms, atime_ms = None if only_read else time_ms, None if only_changed else time_ms
        item.remote.set_times(item.path, mtime_ms, atime_ms)

    def make(item: Item) -> None:
        if "c" in options and item.has_parent:
            return
        _make_empty(verb, item)
        if stamp is not None:
            set_times(item)

    verb.for_each(set_times, missing=make)


def concat(verb: Verb) -> None:
    form = "<target path> <src path> <src path> ..."
    items = verb.expand()
    if not items:
        raise VerbError(f"Target path not specified. {form}")
    target, *sources = items
    if len(sources) < 2:
        raise VerbError(f"The number of source paths is less than 2. {form}")
    if target.status is None or not target.status.is_file:
        raise VerbError(f"Target path {target.qualified} does not exist or is not file.")
    for source in sources:
        if source.status is None or not source.status.is_file:
            raise VerbError(f"{source.qualified} does not exist or is not file.")
    target.remote.concat(target.path, [source.path for source in sources])


def truncate(verb: Verb) -> None:
    options = verb.options(2, ANY, "w")
    text = verb.arguments.pop(0)
    if not text.isdecimal():
        raise UsageError(f"{text!r} is no length: it must be a number >= 0")
    length = int(text)
    waiting: list[Item] = []

    def cut(item: Item) -> None:
        old_length = item.check_is_file().length_bytes
        if length > old_length:
            raise UsageError(
                f"Cannot truncate to a larger file size. Current size: {old_length},"
                f" truncate size: {length}."
            )
        if item.remote.truncate(item.path, length):
            verb.out.print(f"Truncated {item} to length: {length}")
        elif "w" in options:
            waiting.append(item)
        else:
            verb.out.print(
                f"Truncating {item} to length: {length}. Wait for block recovery to complete"
                " before further updating this file."
            )

    verb.for_each(cut)
    for item in waiting:
        verb.out.print(f"Waiting for {item} ...")
        verb.out.flush()
        while not item.remote.is_file_closed(item.path):
            time.sleep(WAIT_S)
        verb.out.print(f"Truncated {item} to length: {length}")


def setrep(verb: Verb) -> None:
    options = verb.options(2, ANY, "R", "w")
    text = verb.arguments.pop(0)
    try:
        replication = int(text)
    except ValueError:
        raise UsageError(f"Illegal replication, a positive integer expected: {text!r}") from None
    if not 1 <= replication <= REPLICATION_MAX:
        raise UsageError("replication must be >= 1")
    waiting: list[Item] = []

    def set_replication(item: Item) -> None:
        if item.found.is_symlink:
            raise PathError(item, "Symlinks unsupported")
        if not item.found.is_file:
            return
        if item.found.is_erasure_coded:
            verb.out.print(
                f"Did not set replication for: {item}, because it's an erasure coded file."
            )
            return
        if not item.remote.set_replication(item.path, replication):
            raise VerbError(f"Could not set replication for: {item}")
        verb.show(
            {"path": item.text, "replication": replication},
            f"Replication {replication} set: {item}",
        )
        waiting.append(item)

    verb.for_each(set_replication, is_recursive=True)
    if "w" in options:
        for item in waiting:
            _wait_for_replication(verb, item, replication)


def _wait_for_replication(verb: Verb, item: Item, replication: int) -> None:
    verb.out.print(f"Waiting for {item} ...", end="")
    has_warned = False
    while True:
        verb.out.flush()
        found = [len(each.datanodes) for each in item.remote.get_block_locations(item.path)]
        if all(count == replication for count in found):
            break
        if not has_warned and any(count > replication for count in found):
            has_warned = True
            verb.out.print(
                "\nWARNING: the waiting time may be long for DECREASING the number of replications."
            )
        verb.out.print(".", end="")
        verb.out.flush()
        time.sleep(WAIT_S)
    verb.out.print(" done")


def _make_empty(verb: Verb, item: Item) -> None:
    if not item.has_parent:
        raise PathError(item, NOT_FOUND, qualified=item.qualified)
    verb.properties.create(item).close()


def _parse_time_ms(text: str) -> int:
    try:
        return int(datetime.strptime(text, "%Y%m%d:%H%M%S").timestamp() * 1000)
    except ValueError:
        raise UsageError(
            f"Unable to parse the specified timestamp {text}. The expected format is"
            " yyyyMMdd:HHmmss"
        ) from None
