"""Patterns of paths as Hadoop has them: `*`, `?`, `[a-z]`, `[^a]`, `{one,two/three}` and `\\`.

Alternatives with a slash in them are written out first; then each part of a path is a
pattern of its own.  Nothing but the last part need exist where there is no pattern.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable

from cairnfs.cli.fs.errors import UsageError, VerbError
from cairnfs.cli.fs.files import Files
from cairnfs.client.records import FileStatus

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LITERAL = frozenset(".$()|+")


def glob(files: Files, pattern: str) -> list[FileStatus] | None:
    """What matches, by path; None if there is no pattern in it and nothing at the path."""
    found: list[FileStatus] = []
    alternatives = expand_alternatives(pattern)
    has_pattern = len(alternatives) > 1
    for each in alternatives:
        path = posixpath.normpath(posixpath.join(files.home_directory, each or "."))
        parts = [part for part in path.split("/") if part]
        has_pattern = has_pattern or any(map(is_pattern, parts))
        found += _glob_parts(files, parts)
    if not found and not has_pattern:
        return None
    return sorted(found, key=lambda status: status.path)


def is_pattern(text: str) -> bool:
    """Whether a part of a path matches more than itself."""
    return any(sign in _ESCAPED.sub("", text) for sign in "*?[{")


def unescape(text: str) -> str:
    """A part without a pattern, as it is stored."""
    return _ESCAPED.sub(r"\1", text)


def compile_pattern(pattern: str) -> Callable[[str], object]:
    """A function that says whether a name matches."""
    regex: list[str] = []
    in_set, open_groups, previous = False, 0, ""
    signs = iter(pattern)
    for sign in signs:
        match sign:
            case "\\":
                following = next(signs, None)
                if following is None:
                    raise _illegal(pattern, "Missing escaped character")
                regex.append(re.escape(following))
            case "*":
                regex.append("*" if in_set else ".*")
            case "?":
                regex.append("?" if in_set else ".")
            case "{":
                regex.append("(?:")
                open_groups += 1
            case "," if open_groups:
                regex.append("|")
            case "}" if open_groups:
                regex.append(")")
                open_groups -= 1
            case "[":
                if in_set:
                    raise _illegal(pattern, "Unclosed character class")
                regex.append("[")
                in_set = True
            case "!" if in_set and previous == "[":
                regex.append("^")
            case "^" if not in_set:
                regex.append(r"\^")
            case "]":
                regex.append("]" if in_set else r"\]")
                in_set = False
            case _:
                regex.append("\\" + sign if sign in _LITERAL or sign in "{}" else sign)
        previous = sign
    if in_set or open_groups:
        raise _illegal(pattern, f"Unclosed {'character class' if in_set else 'group'}")
    try:
        return re.compile("".join(regex), re.DOTALL).fullmatch
    except re.error as error:
        raise _illegal(pattern, str(error)) from None


def _illegal(pattern: str, problem: str) -> VerbError:
    at = f"at pos {len(pattern)}: `{pattern}`"
    return VerbError(f"Illegal file pattern: error parsing regexp: {problem} {at}")


def expand_alternatives(pattern: str) -> list[str]:
    """The patterns that `{...}` with slashes in them stand for."""
    start, end, commas = _first_group_with_slash(pattern)
    if start < 0:
        return [pattern]
    bounds = [start, *commas, end]
    expanded: list[str] = []
    for left, right in itertools.pairwise(bounds):
        middle = pattern[left + 1 : right]
        expanded += expand_alternatives(pattern[:start] + middle + pattern[end + 1 :])
    return expanded


def _first_group_with_slash(pattern: str) -> tuple[int, int, list[int]]:
    """Where the first such group begins and ends, and where its alternatives are parted."""
    start, depth, has_slash = -1, 0, False
    commas: list[int] = []
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif sign == "{":
            if not depth:
                start, has_slash, commas = at, False, []
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
            if not depth and has_slash:
                return start, at, commas
        elif sign == "," and depth == 1:
            commas.append(at)
        elif sign == "/" and depth:
            has_slash = True
        at += 1
    return -1, -1, []


def _glob_parts(files: Files, parts: list[str]) -> list[FileStatus]:
    paths = ["/"]
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if not is_pattern(part):
            if ":" in part:
                raise UsageError(f"{part!r} is not a name: there is a colon in it")
            paths = [posixpath.join(path, unescape(part)) for path in paths]
            continue
        matches = compile_pattern(part)
        found: list[FileStatus] = []
        for path in paths:
            found += [
                child
                for child in _children(files, path)
                if (is_last or child.is_directory) and matches(child.name)
            ]
        if is_last:
            return found
        paths = [child.path for child in found]
    statuses = (files.get_file_info(path) for path in paths)
    return [status for status in statuses if status is not None]


def _children(files: Files, path: str) -> list[FileStatus]:
    """The entries of a directory; none of a file, or of nothing."""
    status = files.get_file_info(path)
    if status is None or not status.is_directory:
        return []
    try:
        return list(files.list_status_iter(path))
    except FileNotFoundError:
        return []
