"""getfattr and setfattr, and the verbs for snapshots."""

from __future__ import annotations

from cairnfs.cli.fs.errors import NOT_FOUND, PathError, UsageError
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import pop_option, pop_value
from cairnfs.cli.fs.verb import Verb
from cairnfs.errors import HadoopIllegalArgumentException
from cairnfs.xattr_text import ENCODINGS, decode_value, encode_value, parse_name


def getfattr(verb: Verb) -> None:
    name = pop_value(verb.arguments, "-n")
    encoding = (pop_value(verb.arguments, "-e") or "text").lower()
    if encoding not in ENCODINGS:
        raise UsageError(f"Invalid/unsupported encoding option specified: {encoding}")
    is_recursive, is_all = pop_option(verb.arguments, "-R"), pop_option(verb.arguments, "-d")
    if not is_all and name is None:
        raise UsageError("Must specify '-n name' or '-d' option.")
    _check_path_left(verb)

    def show(item: Item) -> None:
        head = f"# file: {item}"
        if not verb.as_json:
            verb.out.print(head)
        if is_all or name is None:
            found = item.remote.get_xattrs(item.path)
        else:
            _check_name(name)
            found = {name: item.remote.get_xattr(item.path, name)}
        if verb.as_json:
            values = {each: _encode_plain(value, encoding) for each, value in found.items()}
            verb.out.print_json({"path": item.text, "attributes": values})
            return
        for each, value in found.items():
            verb.out.print(f"{each}={encode_value(value, encoding)}" if value else each)

    verb.for_each(show, is_recursive=is_recursive)


def setfattr(verb: Verb) -> None:
    name = pop_value(verb.arguments, "-n")
    text = pop_value(verb.arguments, "-v")
    removed = pop_value(verb.arguments, "-x")
    value = b"" if text is None else decode_value(text)
    if name is not None and removed is not None:
        raise UsageError("Can not specify both '-n name' and '-x name' option.")
    if name is None and removed is None:
        raise UsageError("Must specify '-n name' or '-x name' option.")
    _check_path_left(verb)

    def change(item: Item) -> None:
        if name is not None:
            _check_name(name)
            item.remote.set_xattr(item.path, name, value)
        elif removed is not None:
            _check_name(removed)
            item.remote.remove_xattr(item.path, removed)

    verb.for_each(change)


def _check_name(name: str) -> None:
    """As Hadoop's shell does: once there is something that is to have the attribute."""
    try:
        parse_name(name)
    except HadoopIllegalArgumentException as error:
        raise UsageError(str(error)) from None


def _encode_plain(value: bytes, encoding: str) -> str:
    """Text without quotes around it: JSON has its own."""
    encoded = encode_value(value, encoding)
    return encoded[1:-1] if encoding == "text" else encoded


def _check_path_left(verb: Verb) -> None:
    if not verb.arguments:
        raise UsageError("<path> is missing.")
    if len(verb.arguments) > 1:
        raise UsageError("Too many arguments.")


# Snapshots


def create_snapshot(verb: Verb) -> None:
    if not 1 <= len(verb.arguments) <= 2:
        raise UsageError("Too many arguments." if verb.arguments else "<snapshotDir> is missing.")
    name = verb.arguments.pop() if len(verb.arguments) == 2 else None
    root = _snapshot_root(verb)
    path = root.remote.create_snapshot(root.path, name)
    verb.show({"snapshot": path}, f"Created snapshot {path}")


def delete_snapshot(verb: Verb) -> None:
    if len(verb.arguments) != 2:
        raise UsageError("Incorrect number of arguments.")
    name = verb.arguments.pop()
    root = _snapshot_root(verb)
    root.remote.delete_snapshot(root.path, name)
    verb.out.print(f"Deleted snapshot {name} under {root.qualified}")


def rename_snapshot(verb: Verb) -> None:
    if len(verb.arguments) != 3:
        raise UsageError("Incorrect number of arguments.")
    new_name, old_name = verb.arguments.pop(), verb.arguments.pop()
    root = _snapshot_root(verb)
    root.remote.rename_snapshot(root.path, old_name, new_name)
    verb.out.print(f"Renamed snapshot {old_name} to {new_name} under {root.qualified}")


def _snapshot_root(verb: Verb) -> Item:
    """The one directory that is meant."""
    text = verb.arguments[0]
    found = verb.paths.expand(text)
    if len(found) != 1:
        raise PathError(text, "Too many matches" if found else NOT_FOUND)
    found[0].check_is_directory()
    return found[0]
