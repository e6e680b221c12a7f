"""A verb that is being run: its arguments, the items that they mean, its errors and exit code.

As in Hadoop's shell, a failure with one item is told, and the verb goes on with the next; its
exit code is 1 then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from cairnfs.cli.fs.errors import NOT_FOUND, PathError, VerbError
from cairnfs.cli.fs.items import Item, Paths
from cairnfs.cli.fs.options import ANY, Options, parse_options
from cairnfs.cli.fs.properties import Properties
from cairnfs.cli.output import Output
from cairnfs.client.namenode import NameNodeUnreachable
from cairnfs.errors import HdfsError

Action = Callable[[Item], None]


class Verb:
    """One call of a verb."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        paths: Paths,
        out: Output,
        *,
        properties: Properties,
        as_json: bool = False,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.paths = paths
        self.out = out
        self.properties = properties
        self.as_json = as_json
        self.exit_code = 0

    # What was asked for

    def options(
        self,
        least: int,
        most: int,
        *names: str,
        valued: Iterable[str] = (),
        is_lenient: bool = False,
    ) -> Options:
        """Take the options from the arguments."""
        return parse_options(
            self.arguments, least, most, names, valued=tuple(valued), is_lenient=is_lenient
        )

    def options_and_paths(self, *names: str) -> Options:
        """The same, where paths follow and none means the home directory."""
        options = self.options(0, ANY, *names)
        self.arguments = self.arguments or ["."]
        return options

    def expand(self, arguments: Iterable[str] | None = None) -> list[Item]:
        """The items that the arguments mean; those that cannot be found out are told."""
        items: list[Item] = []
        for argument in self.arguments if arguments is None else arguments:
            with self.telling():
                found = self.paths.expand(argument)
                if not found:
                    raise PathError(argument, NOT_FOUND)
                items += found
        return items

    # Doing it

    def for_each(
        self,
        action: Action,
        items: Iterable[Item] | None = None,
        *,
        is_recursive: bool = False,
        missing: Action | None = None,
    ) -> None:
        """Act on all items, and on what is below them; `missing` is for what is not there."""
        for item in self.expand() if items is None else items:
            with self.telling():
                if item.exists:
                    self.visit(item, action, is_recursive=is_recursive)
                elif missing is not None:
                    missing(item)
                else:
                    raise PathError(item, NOT_FOUND)

    def visit(self, item: Item, action: Action, *, is_recursive: bool) -> None:
        """Act on an item, then on its children, unless it failed."""
        with self.telling():
            action(item)
            if is_recursive and item.is_directory:
                for child in item.children():
                    self.visit(child, action, is_recursive=True)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """A failure in here is told, and does not go further.

        But for a cluster that does not answer: it would not answer the next call either.
        """
        try:
            yield
        except (NameNodeUnreachable, BrokenPipeError):
            raise
        except (PathError, VerbError, HdfsError, OSError) as error:
            self.fail(describe(error))

    def fail(self, message: str) -> None:
        """Tell a failure."""
        self.exit_code = 1
        self.warn(message)

    def warn(self, message: str) -> None:
        self.out.flush()
        print(f"{self.name}: {message}", file=sys.stderr)

    def show(self, record: dict[str, object], text: str) -> None:
        """Print a result, for programs or for people."""
        if self.as_json:
            self.out.print_json(record)
        else:
            self.out.print(text)


def describe(error: Exception) -> str:
    """The first line of what went wrong, as people read it."""
    if isinstance(error, OSError) and not isinstance(error, HdfsError) and error.strerror:
        where = error.filename2 or error.filename
        return f"`{where}': {error.strerror}" if where else error.strerror
    text = str(error) or type(error).__name__
    return text.splitlines()[0]
