"""What a WebHDFS request asks for: its path and its parameters, checked as Hadoop checks them.

The target of the request is read as it came: a library that tidies paths up would make `/a/../b`
another file than the one that was named.  Invariant: whatever the target is, what comes of it is a
`Target`, or an HdfsError in the words that Hadoop's parameters have for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from cairnfs.errors import IllegalArgumentException

PREFIX = "/webhdfs/v1"

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
SHORT_MAX = 2**15 - 1
MODE_MAX = 0o1777

# dfs.webhdfs.user.provider.user.pattern, dfs.webhdfs.acl.provider.permission.pattern
USER_PATTERN = "^[A-Za-z_][A-Za-z0-9._-]*[$]?$"
_ACL_ENTRY = "(default:)?(user|group|mask|other):[[A-Za-z_][A-Za-z0-9._-]]*:([rwx-]{3})?"
ACL_PATTERN = f"^{_ACL_ENTRY}(,{_ACL_ENTRY})*$"
ACTION_PATTERN = "[r-][w-][x-]"

# Java's unions of character classes are written in another way here.
_PATTERNS = {
    pattern: re.compile(pattern.replace("[[A-Za-z_][A-Za-z0-9._-]]", "[A-Za-z0-9._-]"))
    for pattern in (USER_PATTERN, ACL_PATTERN, ACTION_PATTERN)
}
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"[+-]?[0-9]+")

_KINDS = {SHORT_MAX: "short integer", INT_MAX: "integer", LONG_MAX: "long integer"}


class Target(NamedTuple):
    """The path and the parameters of a request."""

    path: str
    parameters: Parameters

    @classmethod
    def parse(cls, raw: str) -> Target:
        """Read the target of a request whose path begins with `PREFIX`."""
        path, _, query = raw.removeprefix(PREFIX).partition("?")
        return cls(_decode(path) or "/", Parameters(query))


class Parameters:
    """The parameters by name, in lower case; the first wins where one is given twice."""

    def __init__(self, query: str) -> None:
        self._values: dict[str, list[str]] = {}
        for part in query.split("&"):
            name, _, value = part.partition("=")
            if name:
                key = _decode(name.replace("+", " ")).lower()
                self._values.setdefault(key, []).append(_decode(value.replace("+", " ")))

    def text(self, name: str, pattern: str | None = None) -> str | None:
        """A text, None if there is none or an empty one."""
        value = self._values.get(name, [""])[0]
        if not value:
            return None
        if pattern is not None and not _PATTERNS[pattern].fullmatch(value):
            raise _invalid(
                name, f'Invalid value: "{value}" does not belong to the domain {pattern}'
            )
        return value

    def texts(self, name: str) -> list[str]:
        """Every text that is given by this name."""
        return [value for value in self._values.get(name, []) if value]

    def required(self, name: str, operation: str, pattern: str | None = None) -> str:
        value = self.text(name, pattern)
        if value is None:
            raise IllegalArgumentException(
                f"Required param {name} for op: {operation} is null or empty"
            )
        return value

    def boolean(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name, [""])[0]
        if not value:
            return default
        if value.lower() not in ("true", "false"):
            raise _invalid(name, f'Failed to parse "{value}" to Boolean.')
        return value.lower() == "true"

    def number(
        self,
        name: str,
        *,
        least: int = 0,
        most: int = LONG_MAX,
        type_max: int = LONG_MAX,
        radix: int = 10,
    ) -> int | None:
        """A number, None if there is none; `type_max` is the greatest of Java's type for it."""
        value = self._values.get(name, [""])[0]
        if not value or value == "null":
            return None
        try:
            if not _INTEGER.fullmatch(value):
                raise ValueError
            number = int(value, radix)
            if not -type_max - 1 <= number <= type_max:
                raise ValueError
        except ValueError:
            raise _invalid(
                name, f'Failed to parse "{value}" as a radix-{radix} {_KINDS[type_max]}.'
            ) from None
        for wrong, sign, bound in ((number < least, "<", least), (number > most, ">", most)):
            if wrong:
                digits = "o" if radix == 8 else "d"
                raise _invalid(
                    name,
                    f"Invalid parameter range: {name} = {number:{digits}} {sign} {bound:{digits}}",
                )
        return number

    def mode(self, name: str) -> int | None:
        return self.number(name, most=MODE_MAX, type_max=SHORT_MAX, radix=8)

    def options(self, name: str, java_class: str, known: Iterable[str]) -> list[str]:
        """The names of an enum that are given, separated by commas; none by an empty text."""
        value = self._values.get(name, [""])[0]
        chosen = [part.strip().upper() for part in value.split(",")] if value else []
        for option in chosen:
            if option not in known:
                raise _invalid(name, f"No enum constant {java_class}.{option}")
        return chosen

    def absolute_path(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None and not value.startswith("/"):
            raise _invalid(
                name, f'Invalid parameter value: {name} = "{value}" is not an absolute path.'
            )
        return value


def encode_path(path: str) -> str:
    """A path as it stands in the target of a request."""
    return quote(path, safe="/!$&'()*+,;=:@-._~")


def invalid_operation(method: str, operation: str) -> IllegalArgumentException:
    return _invalid("op", f"{operation} is not a valid {method} operation.")


def _invalid(name: str, reason: str) -> IllegalArgumentException:
    return IllegalArgumentException(f'Invalid value for webhdfs parameter "{name}": {reason}')


def _decode(text: str) -> str:
    """Undo percent-encoding; what is not UTF-8 becomes U+FFFD, as Java reads it."""
    if "%" not in text and text.isascii():
        return text
    if _BAD_ESCAPE.search(text):
        raise IllegalArgumentException(f"The request is not percent-encoded as a URL is: {text!r}")
    # A server that reads raw bytes as text keeps those that are not UTF-8 as surrogates.
    decoded = unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode(errors="replace")
    if "\0" in decoded:
        raise IllegalArgumentException(f"The request has a NUL in it: {text!r}")
    return decoded
