"""Commands that have commands: `cairn admin`, `snapshot`, `policy`, `xattr`, `job`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

_CLUSTER = "The cluster is what --fs or CAIRN_FS names, else the local one."


class _WholeParser(argparse.ArgumentParser):
    """Shows which commands there are to who names none."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required"):
            self.print_help(sys.stderr)
            self.exit(2)
        super().error(message)


class Parsers(NamedTuple):
    """The parser of a command, and those of its own commands by their names."""

    whole: argparse.ArgumentParser
    of: dict[str, argparse.ArgumentParser]


def make_parsers(
    prog: str, description: str, epilog: str, kind: str, commands: Mapping[str, str]
) -> Parsers:
    """`commands` says what each does; which was given is found under `kind`.

    All of them have --fs, before the name and after it, and --json.
    """
    parser = _WholeParser(
        prog=prog, description=description, epilog=f"{epilog}  {_CLUSTER}", allow_abbrev=False
    )
    parser.add_argument("--fs", metavar="URL", help="the file system: hdfs://host:8020")
    subparsers = parser.add_subparsers(
        dest=kind, required=True, metavar=kind.upper(), parser_class=argparse.ArgumentParser
    )
    parsers = {
        name: subparsers.add_parser(name, help=what, description=what, allow_abbrev=False)
        for name, what in commands.items()
    }
    for each in parsers.values():
        # What was said before the name stays.
        each.add_argument("--fs", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        each.add_argument("--json", action="store_true", help="for programs")
    return Parsers(parser, parsers)
