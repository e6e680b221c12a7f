"""Access control lists as text, with the grammar and the words of Hadoop's AclEntry.

    user:ada:rw-,default:group::r-x

Numbers are those of acl.proto.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cairnfs.errors import HadoopIllegalArgumentException
from cairnfs.modes import RWX, format_mode

DEFAULT = "default:"
_SCOPES = ("", DEFAULT)
_TYPES = ("user", "group", "mask", "other")


class Entry(NamedTuple):
    """One entry; if its permission is left out, that is 0."""

    scope: int
    type: int
    name: str | None
    permission: int


def format_entry(scope: int, type: int, name: str | None, permission: int) -> str:
    """One entry in the form `parse_spec` reads."""
    return f"{_SCOPES[scope]}{_TYPES[type]}:{name or ''}:{RWX[permission]}"


def parse_spec(spec: str | Iterable[str], *, with_permissions: bool = True) -> list[Entry]:
    """Read entries, separated by commas or one by one; removals leave permissions out."""
    parts = spec.split(",") if isinstance(spec, str) else spec
    return [_parse_entry(part.strip(), with_permissions) for part in parts if part.strip()]


def _parse_entry(text: str, with_permission: bool) -> Entry:
    # Trailing empty fields do not count, as in Java's split.
    fields = text.rstrip(":").split(":")
    scope = int(fields[0] == "default")
    fields = fields[scope:]
    if not fields or fields == [""]:
        raise HadoopIllegalArgumentException(f"Invalid <aclSpec> : {text}")
    if fields[0].lower() not in _TYPES:
        raise HadoopIllegalArgumentException(f"Invalid type of acl in <aclSpec> :{text}")
    if len(fields) > 2 + with_permission or (with_permission and len(fields) < 3):
        raise HadoopIllegalArgumentException(f"Invalid <aclSpec> : {text}")
    permission = 0
    if with_permission:
        if fields[2] not in RWX:
            raise HadoopIllegalArgumentException(f"Invalid permission in <aclSpec> : {text}")
        permission = RWX.index(fields[2])
    name = fields[1] if len(fields) > 1 and fields[1] else None
    return Entry(scope, _TYPES.index(fields[0].lower()), name, permission)


def full_entries(mode: int, entries: list[str]) -> list[str]:
    """The whole list, with what the mode says put in its places."""
    user, group, other = (format_mode(mode & 0o777)[at : at + 3] for at in (0, 3, 6))
    access = [entry for entry in entries if not entry.startswith(DEFAULT)]
    middle = [*access, f"mask::{group}"] if access else [f"group::{group}"]
    defaults = [entry for entry in entries if entry.startswith(DEFAULT)]
    return [f"user::{user}", *middle, f"other::{other}", *defaults]
