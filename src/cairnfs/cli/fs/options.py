"""Options as Hadoop's shell reads them: whole words, before the first argument."""

from __future__ import annotations

import sys
from collections.abc import Collection

from cairnfs.cli.fs.errors import UsageError

ANY = sys.maxsize  # number of arguments


class Options:
    """Which options were given, and the values of those that have one."""

    def __init__(self, flags: set[str], values: dict[str, str]) -> None:
        self._flags = flags
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    @property
    def flags(self) -> set[str]:
        """Those without a value."""
        return self._flags

    def value(self, name: str) -> str | None:
        """What follows an option; "" if nothing does, None if it was not given."""
        return self._values.get(name)

    def number(self, name: str, default: int) -> int:
        """The value of an option as a number."""
        text = self._values.get(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"-{name} wants a number, not {text!r}") from None


def parse_options(
    arguments: list[str],
    least: int,
    most: int,
    names: Collection[str] = (),
    *,
    valued: Collection[str] = (),
    is_lenient: bool = False,
) -> Options:
    """Take the options out of `arguments`, of which `least` to `most` must be left.

    Lenient verbs leave options that they do not know among their arguments.
    """
    flags: set[str] = set()
    values: dict[str, str] = {}
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "-" or not word.startswith("-"):
            break
        name = word[1:]
        if word == "--":
            del arguments[at]
            break
        if name in names:
            del arguments[at]
            flags.add(name)
        elif name in valued:
            del arguments[at]
            values[name] = ""
            if at < len(arguments) > least and not arguments[at].startswith("-"):
                values[name] = arguments.pop(at)
        elif is_lenient:
            at += 1
        else:
            raise UsageError(f"Illegal option {word}")
    if len(arguments) < least:
        raise UsageError(f"Not enough arguments: expected {least} but got {len(arguments)}")
    if len(arguments) > most:
        raise UsageError(f"Too many arguments: expected {most} but got {len(arguments)}")
    return Options(flags, values)


def pop_option(arguments: list[str], name: str) -> bool:
    """Take `name` out of the arguments, wherever before a `--` it is."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if name not in arguments[:end]:
        return False
    arguments.remove(name)
    return True


def pop_value(arguments: list[str], name: str) -> str | None:
    """Take `name` and the word after it out of the arguments."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if name not in arguments[:end]:
        return None
    at = arguments.index(name)
    if at + 1 >= len(arguments):
        raise UsageError(f"option {name} requires 1 argument.")
    value = arguments[at + 1]
    del arguments[at : at + 2]
    return value
