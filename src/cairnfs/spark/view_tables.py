"""Tables whose rows are those of a tree: how they are cut, and read from a view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import IllegalArgumentException
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.tree_parts import Detail, KnownStorage, Listed, Part
from cairnfs.spark.tables import Column, Needs, Request, Table, positive
from cairnfs.spark.views import find_view, open_view

VIEW = "view"  # an option: the number of a view that is open

G = TypeVar("G")
Storages = Mapping[int, KnownStorage]


class ViewPart(NamedTuple):
    """A part of a view, for one task."""

    number: int
    part: Part


class Directory:
    """What is in one directory of a tree, with its paths."""

    def __init__(self, listed: Listed, top: str) -> None:
        self.listed = listed
        self.inodes = listed.inodes
        self.count = listed.count or len(listed.inodes)
        self._top = top

    @cached_property
    def path(self) -> str | None:
        """Its own; None: the root is in none."""
        top, names = self._top, self.listed.path
        if names is None:
            return None if top == "/" else top.rpartition("/")[0] or "/"
        base = top.rstrip("/")
        return base + "".join(f"/{name.decode('utf-8', 'replace')}" for name in names) or "/"

    @cached_property
    def paths(self) -> list[str]:
        """Of what is in it."""
        if self.listed.path is None:
            return [self._top]
        base = "" if self.path == "/" else self.path
        return [f"{base}/{name_of(inode)}" for inode in self.inodes]


def name_of(inode: Inode) -> str:
    return inode.name.decode("utf-8", "replace")


def view_table(
    name: str,
    columns: Mapping[str, Column[G]],
    make: Callable[[Directory, Storages], G],
    details: Detail | None = None,
    details_of: Mapping[str, Detail] = MappingProxyType({}),
) -> Table[G]:
    """A table of a tree; `make` makes a group of what is in one of its directories.

    `details_of` are columns that need more than the others, which is only asked for if they are.
    """

    def read(fs: FileSystem, request: Request, work: Any) -> Iterator[list[G]]:
        view = find_view(fs, work.number)
        flags = 0 if details is None else int(details)
        for column in request.columns:
            flags |= details_of.get(column, 0)
        needs = max((columns[name].needs for name in request.columns), default=Needs.COUNTS)
        if needs is Needs.COUNTS and not flags:
            flags = int(Detail.COUNTS)
        for page in view.pages(work.part, flags, is_decoded=needs is Needs.INODES):
            storages = {storage.number: storage for storage in page.storages}
            yield [make(Directory(listed, view.path), storages) for listed in page.listed]

    return Table(name, columns, plan_view, read)


def plan_view(fs: FileSystem, request: Request) -> Iterator[ViewPart]:
    """Open a view, so that all is of one moment, or take the one that is given; and cut it."""
    given = request.options.get(VIEW)
    if given is None:
        view = open_view(fs, request.top)
    else:
        view = find_view(fs, positive(VIEW, given))
        if view.path != request.top:
            raise IllegalArgumentException(
                f"view {given} is one of {view.path}: it cannot be read as {request.top}"
            )
    for part in view.split(request.inodes):
        yield ViewPart(view.number, part)
