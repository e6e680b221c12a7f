"""`cairn fs VERB ...`: which verb, on which file system, and how it ends.

Exit codes are those of `hdfs dfs`: 1 if something could not be done, 255 if the command line
makes no sense.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cairnfs.cli.errors import CommandError
from cairnfs.cli.fs.errors import UsageError
from cairnfs.cli.fs.options import pop_option
from cairnfs.cli.fs.verbs import DEPRECATED, VERBS

if TYPE_CHECKING:
    from cairnfs.cli.fs.verb import Verb

MISUSED = 255
FRAMES_MAX = 20_000  # of Python: a path has 1,000 levels at most, and each takes several

_INTRODUCTION = """\
usage: cairn fs [--fs URL] [--json] VERB [options] [paths]

The verbs of `hdfs dfs`, with or without the dash: `cairn fs ls /` is `cairn fs -ls /`.

  --fs URL  the file system: hdfs://host:8020, or several NameNodes: hdfs://one:8020,two:8020
            (else CAIRN_FS, else the local cluster, else hdfs://127.0.0.1:8020)
  --json    results for programs: a line of JSON for each
  -D name=value  dfs.replication, dfs.blocksize, fs.trash.interval; as in Hadoop

Paths are absolute, relative to /user/NAME, or URLs (hdfs://, cairn://, file://), with
patterns: *, ?, [a-z], {one,two}.  `cairn fs help VERB` says more.
"""


def main(arguments: Sequence[str]) -> int:
    rest = list(arguments)
    try:
        given = _take_global_options(rest)
        if not rest or rest[0] in ("-h", "--help"):
            print(_overview(), file=sys.stdout if rest else sys.stderr)
            return 0 if rest else MISUSED
        word, *words = rest
        name = word[1:] if word.startswith("-") else word
        if name in DEPRECATED:
            replacement, option, advice = DEPRECATED[name]
            print(f"{name}: DEPRECATED: Please use '{advice}' instead.", file=sys.stderr)
            name, words = replacement, [option, *words]
        if name not in VERBS:
            import difflib  # which other calls need not wait for

            near = difflib.get_close_matches(name, VERBS, 1)
            hint = f"did you mean -{near[0]}? " if near else ""
            print(
                f"{word}: Unknown command\n{hint}`cairn fs help` lists all verbs", file=sys.stderr
            )
            return MISUSED
        if words == ["--help"]:
            return help([name])
        given.as_json = pop_option(words, "--json") or given.as_json
        if given.as_json and not VERBS[name].has_json:
            raise UsageError(f"there is no --json for {name}: it has nothing to tell")
        if name in ("help", "usage"):
            return (help if name == "help" else usage)(words)
    except UsageError as error:
        return _refuse(rest[0] if rest else "fs", error)
    return run_verb(name, words, given)


class Given:
    """What was said before the verb."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.as_json = False
        self.properties: list[str] = []


def run_verb(name: str, arguments: list[str], given: Given) -> int:
    """Run a verb; returns its exit code."""
    from cairnfs.cli.connection import choose
    from cairnfs.cli.fs.items import Paths
    from cairnfs.cli.fs.properties import Properties
    from cairnfs.cli.fs.verb import Verb
    from cairnfs.cli.output import Output
    from cairnfs.client.namenode import NameNodeUnreachable

    module, _, function = VERBS[name].where.partition(":")
    action: Callable[[Verb], None] = getattr(
        importlib.import_module(f"cairnfs.cli.fs.{module}"), function
    )
    try:
        properties = Properties(given.properties)
    except UsageError as error:
        return _refuse(f"-{name}", error, name)
    for unknown in properties.unknown:
        print(f"{name}: -D {unknown} has no effect here", file=sys.stderr)
    sys.setrecursionlimit(FRAMES_MAX)
    paths = Paths(choose(given.url))
    verb = Verb(name, arguments, paths, Output(), properties=properties, as_json=given.as_json)
    try:
        with verb.telling():
            action(verb)
        verb.out.flush()
    except UsageError as error:
        verb.out.flush()
        return _refuse(f"-{name}", error, name)
    except NameNodeUnreachable as error:
        raise CommandError(paths.explain_silence(error)) from None
    finally:
        paths.close()
    return verb.exit_code


def help(names: list[str]) -> int:
    """Say what verbs do."""
    if not names:
        print(_overview())
        return 0
    for name in names:
        entry = VERBS[_known(name)]
        first, *more = entry.summary.split("\n")
        print(
            "\n".join([f"-{_known(name)} {entry.usage} :", f"  {first}", *(f"  {m}" for m in more)])
        )
    return 0


def usage(names: list[str]) -> int:
    """Show how verbs are called."""
    for name in names or VERBS:
        print(f"Usage: cairn fs [--fs URL] -{_known(name)} {VERBS[_known(name)].usage}")
    return 0


def _known(name: str) -> str:
    bare = name.removeprefix("-")
    if bare not in VERBS:
        raise UsageError(f"`{name}': Unknown command")
    return bare


def _overview() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {name:{width}}  {entry.summary.splitlines()[0]}" for name, entry in VERBS.items()]
    return "\n".join([_INTRODUCTION, "verbs:", *lines])


def _refuse(word: str, error: UsageError, name: str | None = None) -> int:
    """Say what is wrong with the command line, and how it should be."""
    print(f"{word}: {error}", file=sys.stderr)
    bare = word.removeprefix("-") if name is None else name
    if bare in VERBS:
        print(f"Usage: cairn fs [--fs URL] -{bare} {VERBS[bare].usage}", file=sys.stderr)
    return MISUSED


def _take_global_options(arguments: list[str]) -> Given:
    """What stands before the verb; `-fs URL` and `-D name=value` are how Hadoop has it."""
    given = Given()
    while arguments:
        word = arguments[0]
        if word in ("--fs", "-fs", "-D"):
            if len(arguments) < 2:
                raise UsageError(f"{word} wants {'name=value' if word == '-D' else 'a URL'}")
            if word == "-D":
                given.properties.append(arguments[1])
            else:
                given.url = arguments[1]
            del arguments[:2]
        elif word.startswith("--fs="):
            given.url = arguments.pop(0).partition("=")[2]
        elif word.startswith("-D"):
            given.properties.append(arguments.pop(0)[2:])
        elif word == "--json":
            del arguments[0]
            given.as_json = True
        else:
            break
    return given
