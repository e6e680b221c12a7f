"""chmod, chown and chgrp."""

from __future__ import annotations

import re
from typing import NamedTuple

from cairnfs.cli.fs.errors import UsageError, VerbError
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY
from cairnfs.cli.fs.verb import Verb, describe
from cairnfs.errors import HdfsError

_OCTAL = re.compile(r"\s*[+]?([01]?[0-7]{3})\s*")
_SYMBOLIC = re.compile(r"\s*([ugoa]*)([+=-]+)([rwxXt]+)([,\s]*)")
_NAME = r"[-+_./@a-zA-Z0-9]"
_OWNER = re.compile(rf"\s*({_NAME}+)?(?::({_NAME}*))?\s*")
_GROUP = re.compile(rf"\s*({_NAME}+)\s*")

_CAPITAL_X = 8
_BITS = {"r": 4, "w": 2, "x": 1, "X": _CAPITAL_X, "t": 0}
_SHIFTS = {"u": 6, "g": 3, "o": 0}


class Change(NamedTuple):
    """What becomes of the bits of one class: `+`, `-` or `=`, and which."""

    sign: str
    bits: int

    def apply(self, existing: int, has_x: bool) -> int:
        """X counts only where somebody has x already, or for directories."""
        bits = self.bits & ~_CAPITAL_X | (1 if self.bits & _CAPITAL_X else 0)
        changed = {"+": existing | bits, "-": existing & ~bits, "=": bits}[self.sign]
        if self.bits & _CAPITAL_X and not has_x and not existing & 1:
            changed &= ~1
        return changed


_NO_CHANGE = Change("+", 0)


class ModeChange:
    """A mode as chmod understands it: 750, 1777, u=rwx,g-w,+t."""

    def __init__(self, text: str) -> None:
        self._classes = dict.fromkeys("ugo", _NO_CHANGE)
        self._sticky = _NO_CHANGE
        octal = _OCTAL.fullmatch(text)
        if octal is not None:
            mode = int(octal[1], 8)
            self._sticky = Change("=", mode >> 9)
            self._classes = {name: Change("=", mode >> _SHIFTS[name] & 7) for name in "ugo"}
            return
        at, is_first, has_comma = 0, True, False
        while is_first or at < len(text):
            found = _SYMBOLIC.match(text, at)
            if found is None or not (is_first or has_comma):
                raise ValueError(f"{text!r} is not a mode")
            self._add(found[1], found[2][-1], found[3])
            at, is_first, has_comma = found.end(), False, "," in found[4]

    def _add(self, classes: str, sign: str, letters: str) -> None:
        names = set(classes) - {"a"} or set("ugo")
        bits = sum(_BITS[letter] for letter in set(letters))
        for name in names:
            self._classes[name] = Change(sign, bits)
        if "o" in names:
            self._sticky = Change(sign, 1 if "t" in letters else 0)

    def apply(self, mode: int, is_directory: bool) -> int:
        has_x = is_directory or bool(mode & 0o111)
        changed = self._sticky.apply(mode >> 9 & 1, False) << 9
        for name, change in self._classes.items():
            changed |= change.apply(mode >> _SHIFTS[name] & 7, has_x) << _SHIFTS[name]
        return changed


def chmod(verb: Verb) -> None:
    options = verb.options(2, ANY, "R", is_lenient=True)
    text = verb.arguments.pop(0)
    try:
        change = ModeChange(text)
    except ValueError:
        raise UsageError(f"chmod : mode '{text}' does not match the expected pattern.") from None

    def set_mode(item: Item) -> None:
        mode = change.apply(item.found.mode, item.is_directory)
        if mode == item.found.mode:
            return
        try:
            item.files.set_permission(item.path, mode)
        except (HdfsError, OSError) as error:
            raise VerbError(f"changing permissions of '{item}': {describe(error)}") from None

    verb.for_each(set_mode, is_recursive="R" in options)


def chown(verb: Verb) -> None:
    options = verb.options(2, ANY, "R")
    text = verb.arguments.pop(0)
    found = _OWNER.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' does not match expected pattern for [owner][:group].")
    owner, group = found[1], found[2] or None
    if owner is None and group is None:
        raise UsageError(f"'{text}' does not specify owner or group.")
    _set_owner(verb, owner, group, is_recursive="R" in options)


def chgrp(verb: Verb) -> None:
    options = verb.options(2, ANY, "R")
    text = verb.arguments.pop(0)
    found = _GROUP.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' does not match expected pattern for group")
    _set_owner(verb, None, found[1], is_recursive="R" in options)


def _set_owner(verb: Verb, owner: str | None, group: str | None, *, is_recursive: bool) -> None:
    def set_owner(item: Item) -> None:
        new_owner = owner if owner != item.found.owner else None
        new_group = group if group != item.found.group else None
        if new_owner is None and new_group is None:
            return
        try:
            item.remote.set_owner(item.path, new_owner, new_group)
        except HdfsError as error:
            raise VerbError(f"changing ownership of '{item}': {describe(error)}") from None

    verb.for_each(set_owner, is_recursive=is_recursive)
