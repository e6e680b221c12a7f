"""put, get, cp, getmerge, appendToFile and their kin.

A copy is written beside its target, as `target._COPYING_`, and takes its place when it is
whole.  Invariant: an interrupted copy leaves nothing behind.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import NoReturn

from cairnfs.cli.fs.destinations import (
    check_both_raw,
    check_destination,
    check_not_within,
    choose_target,
    is_raw,
    take_destination,
    take_local_destination,
)
from cairnfs.cli.fs.errors import EXISTS, IS_DIRECTORY, PathError, UsageError, VerbError
from cairnfs.cli.fs.files import Readable, Sink
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.local_files import LocalFiles
from cairnfs.cli.fs.options import ANY, Options
from cairnfs.cli.fs.verb import Verb
from cairnfs.cli.progress import Progress
from cairnfs.errors import HdfsError

SUFFIX = "._COPYING_"
PIECE_BYTES = 4 << 20
THREADS_MAX = 256
QUEUE_MAX = 1024  # files that wait for a thread

# What -p keeps, by its letter.
TIMES, OWNER, MODE, ACL, XATTRS = "topax"


def put(verb: Verb) -> None:
    options = verb.options(1, ANY, "f", "p", "l", "d", valued=("t", "q"))
    destination = take_destination(verb)
    copy = Copy(verb, destination, options)
    if verb.arguments == ["-"]:
        target = choose_target(verb.paths.find_local("-"), destination)
        with _ending_cleanly():
            copy.write(_standard_input(), target)
        return
    copy.run([verb.paths.find_local(each) for each in verb.arguments])


def move_from_local(verb: Verb) -> None:
    if "-t" in verb.arguments:
        raise UsageError("Illegal option -t")
    options = verb.options(1, ANY, "f", "p", "l", "d")
    destination = take_destination(verb)

    def remove(source: Item) -> None:
        source.files.delete(source.path)

    sources = [verb.paths.find_local(each) for each in verb.arguments]
    Copy(verb, destination, options, after=remove).run(sources)


def move_to_local(verb: Verb) -> None:
    raise VerbError("Option '-moveToLocal' is not implemented yet.")


def get(verb: Verb) -> None:
    options = verb.options(1, ANY, "crc", "ignoreCrc", "p", "f", valued=("t", "q"))
    destination = take_local_destination(verb)
    Copy(verb, destination, options).run(verb.expand())


def cp(verb: Verb) -> None:
    kept = _pop_kept(verb.arguments)
    options = verb.options(2, ANY, "f", "d", valued=("t", "q"))
    destination = take_destination(verb)
    Copy(verb, destination, options, kept=kept).run(verb.expand())


class Copy:
    """One call of a verb that copies."""

    def __init__(
        self,
        verb: Verb,
        destination: Item,
        options: Options,
        *,
        kept: str = "",
        after: Callable[[Item], None] | None = None,
    ) -> None:
        """`after` is called with each source that has been copied."""
        self._verb = verb
        self._destination = destination
        self._overwrites = "f" in options
        self._is_direct = "d" in options
        self._is_lazy = "l" in options
        self._kept = kept or (TIMES + OWNER + MODE if "p" in options else "")
        self._after = after
        self._progress = Progress()
        threads = min(THREADS_MAX, options.number("t", 1))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._running: deque[Future[None]] = deque()
        self._running_max = max(1, options.number("q", QUEUE_MAX))
        self._is_stopped = False

    def run(self, sources: list[Item]) -> None:
        """Copy everything; failures are told."""
        check_destination(self._destination, len(sources), overwrites=self._overwrites)
        with _ending_cleanly():
            self._run(sources)

    def _run(self, sources: list[Item]) -> None:
        try:
            if self._progress.is_shown:
                self._progress.expect(sum(map(_measure, sources)))
            for source in sources:
                with self._verb.telling():
                    source.found  # noqa: B018 - an error if there is nothing
                    target = choose_target(source, self._destination)
                    check_not_within(source, target)
                    check_both_raw(source, target)
                    self._copy(source, target)
            while self._running:
                self._wait_for_one()
        finally:
            self._progress.clear()
            if self._pool is not None:
                self._is_stopped = True  # unless all is done, when it means nothing
                self._pool.shutdown(cancel_futures=True)

    def _copy(self, source: Item, target: Item) -> None:
        with self._verb.telling():
            if source.found.is_symlink:
                raise PathError(source, "Operation not supported")
            if source.found.is_directory:
                self._copy_directory(source, target)
            elif self._pool is None:
                self._copy_file(source, target)
            else:
                if len(self._running) >= self._running_max:
                    self._wait_for_one()
                self._running.append(self._pool.submit(self._copy_file, source, target))
            if self._after is not None:
                self._after(source)

    def _wait_for_one(self) -> None:
        with self._verb.telling():
            self._running.popleft().result()

    def _copy_directory(self, source: Item, target: Item) -> None:
        is_new = not target.exists
        if is_new:
            if not target.files.mkdirs(target.path):
                raise PathError(target, operation="mkdir")
            target.refresh()
        target.check_is_directory()
        for child in source.children():
            self._copy(child, target.child(child.name, is_new=is_new))
        self._keep_attributes(source, target)

    def _copy_file(self, source: Item, target: Item) -> None:
        if self._is_direct and source.qualified == target.qualified:
            raise PathError(source, "are identical", target=target)
        self._progress.begin(source.name, source.found.length_bytes)
        stream = source.files.open(source.path)
        try:
            self.write(stream, target)
        finally:
            stream.close()
        self._keep_attributes(source, target)

    def write(self, source: Readable, target: Item) -> None:
        """Make `target` of what can be read; whole, or not at all."""
        if target.exists and (target.is_directory or not self._overwrites):
            raise PathError(target, EXISTS)
        written = target if self._is_direct else target.with_suffix(SUFFIX)
        replication = 1 if self._is_lazy else None
        sink = self._verb.properties.create(written, replication=replication)
        try:
            try:
                pour(source, sink, self._advance)
                sink.close()
            except BaseException:
                _give_up(sink)
                raise
            if not self._is_direct:
                overwrite = target.exists
                if not target.files.rename(written.path, target.path, overwrite=overwrite):
                    raise PathError(written, operation="rename", target=target)
        except BaseException:
            with suppress(Exception):
                target.files.delete(written.path)
            raise

    def _advance(self, count: int) -> None:
        if self._is_stopped:
            raise VerbError("interrupted")
        self._progress.advance(count)

    def _keep_attributes(self, source: Item, target: Item) -> None:
        status, files, path = source.found, target.files, target.path
        if TIMES in self._kept:
            files.set_times(path, status.mtime_ms, status.atime_ms)
        if OWNER in self._kept:
            files.set_owner(path, status.owner, status.group)
        if MODE in self._kept or ACL in self._kept:
            files.set_permission(path, status.mode)
        if ACL in self._kept and status.has_acl:
            from cairnfs.acl_text import full_entries

            found = source.remote.get_acl_status(source.path)
            target.remote.set_acl(path, full_entries(status.mode, found.entries))
        if XATTRS in self._kept or is_raw(source):
            for name, value in source.remote.get_xattrs(source.path).items():
                if XATTRS in self._kept or name.startswith("raw."):
                    target.remote.set_xattr(path, name, value)


def _measure(item: Item) -> int:
    """How many bytes are at and below a path; 0 if that cannot be found out."""
    with suppress(HdfsError, OSError):
        if item.status is None or not item.is_directory:
            return 0 if item.status is None else item.status.length_bytes
        if not isinstance(item.files, LocalFiles):
            return item.remote.get_content_summary(item.path).length_bytes
        return sum(map(_measure, item.children()))
    return 0


def pour(source: Readable, sink: Sink, advance: Callable[[int], None]) -> None:
    """Copy bytes until there are none."""
    buffer = memoryview(bytearray(PIECE_BYTES))
    while count := source.readinto(buffer):
        at = 0
        while at < count:
            at += sink.write(buffer[at:count])
        advance(count)


@contextmanager
def _ending_cleanly() -> Iterator[None]:
    """Whoever is told to end, or loses the terminal, removes the part that was written first."""

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            if before[number] is signal.SIG_DFL:  # nohup has chosen otherwise
                signal.signal(number, end)
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _standard_input() -> Readable:
    return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)


def _give_up(sink: Sink) -> None:
    """End a file that will not be whole; a cluster is not told that it is."""
    from cairnfs.client.writer import OutputStream

    with suppress(Exception):
        if isinstance(sink, OutputStream):
            sink.abort()
        else:
            sink.close()


def _pop_kept(arguments: list[str]) -> str:
    """Take -p, or -p with letters, out of the arguments."""
    for word in arguments:
        if word == "--":
            break
        if word.startswith("-p"):
            arguments.remove(word)
            letters = word[2:].lower() or TIMES + OWNER + MODE
            if unknown := set(letters) - set("topax"):
                raise UsageError(f"No attribute for {unknown.pop()}; there are t, o, p, a and x")
            return letters
    return ""


# Several files to one


def getmerge(verb: Verb) -> None:
    options = verb.options(2, ANY, "nl", "skip-empty-file")
    destination = verb.paths.find_local(verb.arguments.pop())
    if destination.is_directory:
        raise PathError(destination, IS_DIRECTORY)
    sources: list[Item] = []

    def collect(item: Item) -> None:
        if item.found.is_directory:
            sources.extend(child for child in item.children() if not child.is_directory)
        else:
            sources.append(item)

    verb.for_each(collect)
    if verb.exit_code:
        return
    progress = Progress()
    sink = destination.files.create(destination.path, overwrite=True)
    try:
        for source in sources:
            length = source.found.length_bytes
            progress.begin(source.name, length)
            stream = source.files.open(source.path)
            try:
                pour(stream, sink, progress.advance)
            finally:
                stream.close()
            if "nl" in options and (length or "skip-empty-file" not in options):
                sink.write(b"\n")
    finally:
        progress.clear()
        sink.close()


def append_to_file(verb: Verb) -> None:
    if len(verb.arguments) < 2:
        raise VerbError("missing destination argument")
    options = verb.options(2, ANY, "n")
    destination = take_destination(verb)
    if "-" in verb.arguments and len(verb.arguments) > 1:
        raise VerbError("stdin (-) must be the sole input argument when present")
    progress = Progress()
    with ExitStack() as opened:
        streams = [_open_input(name, opened) for name in verb.arguments]
        if not destination.exists:
            verb.properties.create(destination).close()
        with destination.remote.append(destination.path, new_block="n" in options) as sink:
            try:
                for stream in streams:
                    pour(stream, sink, progress.advance)
            finally:
                progress.clear()


def _open_input(name: str, opened: ExitStack) -> Readable:
    if name == "-":
        return _standard_input()
    return opened.enter_context(open(name, "rb", buffering=0))
