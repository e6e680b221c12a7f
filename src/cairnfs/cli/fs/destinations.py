"""Where things are copied or moved to: what all such verbs agree on."""

from __future__ import annotations

from cairnfs.cli.fs.errors import EXISTS, IS_NOT_DIRECTORY, NOT_FOUND, PathError
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.verb import Verb

RAW = "/.reserved/raw"


def take_destination(verb: Verb) -> Item:
    """The last argument, which is a path on the cluster; without one, the home directory."""
    if len(verb.arguments) < 2:
        return verb.paths.find(".")
    text = verb.arguments.pop()
    found = verb.paths.expand(text)
    if not found:
        raise PathError(text, NOT_FOUND)
    if len(found) > 1:
        raise PathError(text, "Too many matches")
    return found[0]


def take_local_destination(verb: Verb) -> Item:
    """The last argument, which is a path on this machine; without one, where we are."""
    return verb.paths.find_local(verb.arguments.pop() if len(verb.arguments) > 1 else ".")


def check_destination(destination: Item, sources: int, *, overwrites: bool) -> None:
    """Several things go into a directory; one may also get a new name."""
    if sources > 1:
        if not destination.found.is_directory:
            raise PathError(destination, IS_NOT_DIRECTORY)
    elif destination.exists:
        if not destination.is_directory and not overwrites:
            raise PathError(destination, EXISTS)
    elif not destination.has_parent:
        raise PathError(destination, NOT_FOUND, qualified=destination.qualified)


def choose_target(source: Item, destination: Item) -> Item:
    """What a source will be called: in a directory, what it is called already."""
    if destination.is_directory or destination.looks_like_directory:
        return destination.child(source.name)
    return destination


def check_not_within(source: Item, target: Item) -> None:
    """A directory cannot go into itself."""
    if not source.is_directory or source.place.url != target.place.url:
        return
    if target.path == source.path:
        raise PathError(source, "are identical", target=target.qualified)
    if target.path.startswith(f"{source.path.rstrip('/')}/"):
        raise PathError(source, "is a subdirectory of itself", target=target)


def is_raw(item: Item) -> bool:
    """Whether a path is below the one where raw attributes are seen."""
    return item.path.startswith(RAW)


def check_both_raw(source: Item, target: Item) -> None:
    """What is raw stays raw."""
    if is_raw(source) == is_raw(target):
        return
    way = f"from '{RAW}' to non '{RAW}'" if is_raw(source) else f"from non '{RAW}' to '{RAW}'"
    raise PathError(
        f"'{source.qualified if is_raw(source) else target}' copy {way}."
        f" Either both source and target must be in '{RAW}' or neither.",
        "Operation not supported",
    )


def mv(verb: Verb) -> None:
    verb.options(2, 1 << 30)
    destination = take_destination(verb)
    items = verb.expand()
    check_destination(destination, len(items), overwrites=False)

    def move(source: Item) -> None:
        target = choose_target(source, destination)
        check_not_within(source, target)
        if source.place.url != target.place.url:
            raise PathError(source, "Does not match target filesystem")
        if target.exists:
            raise PathError(target, EXISTS)
        if not source.files.rename(source.path, target.path):
            raise PathError(source)

    verb.for_each(move, items)
