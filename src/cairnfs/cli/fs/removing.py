"""rm, rmdir and expunge."""

from __future__ import annotations

import sys

from cairnfs.cli.fs.errors import IS_DIRECTORY, NOT_EMPTY, PathError, VerbError
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.options import ANY
from cairnfs.cli.fs.trash import Trash
from cairnfs.cli.fs.verb import Verb
from cairnfs.cli.output import is_terminal
from cairnfs.client.filesystem import FileSystem

SAFE_FILES_MAX = 100  # that -safely lets go without asking: hadoop.shell.delete.limit.num.files


def rm(verb: Verb) -> None:
    options = verb.options(1, ANY, "f", "r", "R", "skipTrash", "safely")
    is_recursive = "r" in options or "R" in options
    trashes: dict[FileSystem, Trash] = {}

    def remove(item: Item) -> None:
        if item.found.is_directory and not is_recursive:
            raise PathError(item, IS_DIRECTORY)
        if isinstance(item.files, FileSystem) and "skipTrash" not in options:
            if item.files not in trashes:
                trashes[item.files] = Trash(item.files, verb.properties.trash_interval_minutes)
            trash = trashes[item.files]
            target = trash.move(item.path)
            if target is not None:
                if verb.as_json:
                    verb.out.print_json({"moved": item.text, "trash": target})
                where = f"{item.place.url}{target}"
                print(f"Moved: '{item.qualified}' to trash at: {where}", file=sys.stderr)
                return
        if "safely" in options and not _is_sure(item):
            return
        if not item.files.delete(item.path, is_recursive):
            raise PathError(item)
        verb.show({"deleted": item.text}, f"Deleted {item}")

    if "f" not in options:
        verb.for_each(remove)
        return
    found: list[Item] = []
    for argument in verb.arguments:
        with verb.telling():
            found += [item for item in verb.paths.expand(argument) if item.exists]
    verb.for_each(remove, found)


def _is_sure(item: Item) -> bool:
    """Whether the user wants a large directory to be gone."""
    files = item.remote.get_content_summary(item.path).files
    if files <= SAFE_FILES_MAX:
        return True
    if not is_terminal(0):
        raise PathError(item, f"holds {files} files, and nobody can be asked; leave out -safely")
    print(f"Proceed deleting {files} files? (Y or N) ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().upper() in ("Y", "YES"):
        return True
    print("Delete aborted at user request.", file=sys.stderr)
    return False


def rmdir(verb: Verb) -> None:
    options = verb.options(1, ANY, "-ignore-fail-on-non-empty")

    def remove(item: Item) -> None:
        item.check_is_directory()
        if next(iter(item.children()), None) is not None:
            if "-ignore-fail-on-non-empty" not in options:
                raise PathError(item, NOT_EMPTY)
        elif not item.files.delete(item.path):
            raise PathError(item)

    verb.for_each(remove)


def expunge(verb: Verb) -> None:
    options = verb.options(0, 2, "immediate", valued=("fs",))
    place = verb.paths.find(options.value("fs") or "/")
    if place.place.url == verb.paths.local.url:
        raise VerbError("there is no trash for local files")
    trash = Trash(place.remote, verb.properties.trash_interval_minutes)
    if "immediate" in options:
        trash.checkpoint()
        trash.expunge(immediately=True)
    else:
        trash.expunge()
        trash.checkpoint()
