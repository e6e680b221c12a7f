"""ls and find."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from cairnfs.cli.fs.errors import UsageError, VerbError
from cairnfs.cli.fs.formats import format_minute, format_size, status_as_json
from cairnfs.cli.fs.globs import compile_pattern
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.verb import Verb
from cairnfs.cli.output import BLUE, CYAN
from cairnfs.modes import format_mode

GROUP = 100  # entries whose columns are aligned, where a directory is shown as it is read
_UNPRINTABLE = ("Cc", "Cf", "Co", "Cs", "Cn")


def ls(verb: Verb) -> None:
    Listing(verb).run()


class Listing:
    """One call of ls: columns only ever get wider."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb
        self._options = verb.options_and_paths("C", "d", "h", "q", "R", "r", "t", "S", "u", "e")
        self._is_recursive = "R" in self._options and "d" not in self._options
        self._replication_width, self._length_width = 3, 10
        self._owner_width = self._group_width = 0

    def run(self) -> None:
        for item in self._verb.expand():
            with self._verb.telling():
                if item.found.is_directory and "d" not in self._options:
                    self._list(item)
                else:
                    self._show_all([item])

    def _list(self, directory: Item) -> None:
        if self._is_recursive:
            children = directory.children()
            while group := list(itertools.islice(children, GROUP)):
                self._show_all(group)
            return
        items = self._sorted(directory.children())
        if items and "C" not in self._options and not self._verb.as_json:
            self._verb.out.print(f"Found {len(items)} items")
        self._show_all(items)

    def _sorted(self, children: Iterable[Item]) -> list[Item]:
        is_reverse = "r" in self._options
        by_time, by_size = "t" in self._options, "S" in self._options
        by_name = not by_time and not by_size
        items = sorted(children, key=lambda item: item.path, reverse=is_reverse and by_name)
        if by_time:
            items.sort(key=self._time, reverse=not is_reverse)
        elif by_size:
            items.sort(key=lambda item: item.found.length_bytes, reverse=not is_reverse)
        return items

    def _time(self, item: Item) -> int:
        return item.found.atime_ms if "u" in self._options else item.found.mtime_ms

    def _show_all(self, items: list[Item]) -> None:
        statuses = [item.found for item in items]
        self._replication_width = _widest(
            self._replication_width, (s.replication for s in statuses)
        )
        self._length_width = _widest(self._length_width, (s.length_bytes for s in statuses))
        self._owner_width = _widest(self._owner_width, (s.owner for s in statuses))
        self._group_width = _widest(self._group_width, (s.group for s in statuses))
        for item in items:
            with self._verb.telling():
                line = "" if self._verb.as_json else self._line(item)
                self._verb.show(status_as_json(item.text, item.found), line)
                if self._is_recursive and item.is_directory:
                    self._list(item)

    def _line(self, item: Item) -> str:
        status = item.found
        name = _printable(item.text) if "q" in self._options else item.text
        if "C" in self._options:
            return name
        if status.is_directory:
            name = self._verb.out.paint(name, BLUE)
        elif status.is_symlink:
            name = self._verb.out.paint(name, CYAN)
        columns = [
            f"{'d' if status.is_directory else '-'}{format_mode(status.mode)}"
            f"{'+' if status.has_acl else ' '}"
            f"{status.replication if status.is_file else '-':>{self._replication_width}}",
            status.owner.ljust(self._owner_width),
            status.group.ljust(self._group_width),
        ]
        if "e" in self._options:
            policy = item.remote.get_content_summary(item.path).erasure_coding_policy
            columns.append(policy)
        length = format_size(status.length_bytes, "h" in self._options)
        columns += [length.rjust(self._length_width), format_minute(self._time(item)), name]
        return " ".join(column for column in columns if column)  # nobody owns /.reserved


def _widest(width: int, values: Iterable[object]) -> int:
    return max(width, max((len(str(value)) for value in values), default=0))


def _printable(text: str) -> str:
    import unicodedata

    return "".join("?" if unicodedata.category(sign) in _UNPRINTABLE else sign for sign in text)


# Finding

Test = Callable[[Item], bool]


def find(verb: Verb) -> None:
    verb.options(1, 1 << 30, "L", "H", is_lenient=True)
    first = next((at for at, each in enumerate(verb.arguments) if each.startswith("-")), None)
    paths, words = verb.arguments[:first], [] if first is None else verb.arguments[first:]
    tests = _parse_expression(verb, words)

    def apply(item: Item) -> None:
        for test in tests:
            if not test(item):
                return

    verb.arguments = paths or ["."]
    verb.for_each(apply, is_recursive=True)


def _parse_expression(verb: Verb, words: list[str]) -> list[Test]:
    """What an item has to pass, one after the other: `and` is all that joins them."""
    tests: list[Test] = []
    has_action = False
    while words:
        match words.pop(0):
            case "-name" | "-iname" as name:
                if not words:
                    raise UsageError(f"{name} wants a pattern")
                tests.append(_name_test(words.pop(0), ignores_case=name == "-iname"))
            case "-print" | "-print0" as name:
                tests.append(_print_action(verb, "\n" if name == "-print" else "\0"))
                has_action = True
            case "-a" | "-and" | "(" | ")":
                pass
            case word:
                raise VerbError(f"Unexpected argument: {word}")
    return tests if has_action else [*tests, _print_action(verb, "\n")]


def _name_test(pattern: str, *, ignores_case: bool) -> Test:
    matches = compile_pattern(pattern.lower() if ignores_case else pattern)
    return lambda item: bool(matches(item.name.lower() if ignores_case else item.name))


def _print_action(verb: Verb, end: str) -> Test:
    def show(item: Item) -> bool:
        if verb.as_json:
            verb.out.print_json(status_as_json(item.text, item.found))
        else:
            verb.out.print(item, end=end)
        return True

    return show
