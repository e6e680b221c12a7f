"""`cairn policy ACTION` and `cairn mover`: on which types of storage replicas are kept."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from cairnfs.cli.connection import choose, run_on
from cairnfs.cli.output import Output
from cairnfs.cli.progress import Waiting
from cairnfs.cli.subcommands import make_parsers

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import StoragePolicy, StoragePolicyWork

INTERVAL_S = 0.2
REST_FACTOR = 20  # between two questions, of what the last one took
_IF_DENIED = "; who may write to a file or directory chooses its policy (HADOOP_USER_NAME=...)"


def main(arguments: Sequence[str]) -> int:
    given = make_parser().parse_args(arguments)
    action = ACTIONS[given.action][1]
    return run_on(choose(given.fs), lambda fs: action(fs, given), if_denied=_IF_DENIED)


def mover(arguments: Sequence[str]) -> int:
    """`cairn mover PATH...`: as `hdfs mover -p`, until all of it is done."""
    parser = argparse.ArgumentParser(
        prog="cairn mover",
        description="Bring all replicas at and below paths to where their storage policy wants"
        " them, and wait for it.  After a change of policy that happens without being asked for:"
        " this is for blocks that found no room when they were written.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", default=["/"], metavar="PATH", help="(/)")
    parser.add_argument("--fs", metavar="URL", help="the file system: hdfs://host:8020")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args(arguments)
    given.wait = True
    return run_on(choose(given.fs), lambda fs: satisfy(fs, given), if_denied=_IF_DENIED)


def make_parser() -> argparse.ArgumentParser:
    parser, parsers = make_parsers(
        "cairn policy",
        "Storage policies: on which types of storage replicas are kept.",
        "A policy holds for everything below a directory, and replicas are moved by themselves.",
        "action",
        {name: what for name, (what, _) in ACTIONS.items()},
    )
    parsers["set"].add_argument("policy", metavar="POLICY", help="one that `list` names")
    for name in ("get", "set", "unset", "satisfy"):
        parsers[name].add_argument("paths", nargs="+", metavar="PATH")
    for name in ("set", "unset", "satisfy", "status"):
        parsers[name].add_argument(
            "--wait", action="store_true", help="until all replicas are where they belong"
        )
    return parser


def list_policies(fs: FileSystem, given: argparse.Namespace) -> int:
    """All that there are."""
    policies, out = fs.get_storage_policies(), Output()
    if given.json:
        out.print_json([msgspec.to_builtins(policy) for policy in policies])
    else:
        rows = [["id", "name", "replicas on", "if there is no room", "if one is lost"]]
        out.print_table(rows + [_row(policy) for policy in policies], frozenset((0,)))
    return 0


def get(fs: FileSystem, given: argparse.Namespace) -> int:
    """Those of paths."""
    found, out = {path: fs.get_storage_policy(path) for path in given.paths}, Output()
    if given.json:
        out.print_json({path: msgspec.to_builtins(policy) for path, policy in found.items()})
    else:
        out.print_table(
            [["path", "policy"], *([path, policy.name] for path, policy in found.items())]
        )
    return 0


def set_policy(fs: FileSystem, given: argparse.Namespace) -> int:
    """For paths, and all that is below them."""
    for path in given.paths:
        fs.set_storage_policy(path, given.policy)
    _ask_if_waiting(fs, given)
    return _end(fs, given, f"{', '.join(given.paths)}: {given.policy.upper()} from now on")


def unset(fs: FileSystem, given: argparse.Namespace) -> int:
    """Let those of the directories above hold again."""
    for path in given.paths:
        fs.unset_storage_policy(path)
    _ask_if_waiting(fs, given)
    return _end(fs, given, f"{', '.join(given.paths)}: as the directory above from now on")


def satisfy(fs: FileSystem, given: argparse.Namespace) -> int:
    """Have replicas that are elsewhere moved."""
    for path in given.paths:
        fs.satisfy_storage_policy(path)
    return _end(fs, given, f"{', '.join(given.paths)}: replicas are brought to where they belong")


def status(fs: FileSystem, given: argparse.Namespace) -> int:
    """How far that is."""
    work = _wait(fs) if given.wait else fs.storage_policy_work()
    if given.json:
        Output().print_json(msgspec.to_builtins(work))
    else:
        _show(work)
    return 0


ACTIONS: dict[str, tuple[str, Callable[[FileSystem, argparse.Namespace], int]]] = {
    "list": ("all policies that there are", list_policies),
    "get": ("the policies of paths", get),
    "set": ("choose a policy for paths and all that is below them", set_policy),
    "unset": ("let the policy of the directory above hold again", unset),
    "satisfy": ("have replicas moved that are not where they belong", satisfy),
    "status": ("how many replicas are still to be moved, or find no place", status),
}


def _ask_if_waiting(fs: FileSystem, given: argparse.Namespace) -> None:
    """Have all looked at: what has the policy already leaves nothing to be done by itself, and
    who waits for replicas to be where they belong wants to know of all of them as of now."""
    if given.wait:
        for path in given.paths:
            fs.satisfy_storage_policy(path)


def _end(fs: FileSystem, given: argparse.Namespace, done: str) -> int:
    """Say that it is done; if somebody waits, when replicas are there, and what found no place."""
    if not given.wait:
        if not given.json:
            Output().print(done)
        return 0
    work = _wait(fs)
    if given.json:
        Output().print_json(msgspec.to_builtins(work))
    else:
        _show(work)
    return 1 if work.unsatisfied_blocks else 0


def _wait(fs: FileSystem) -> StoragePolicyWork:
    with Waiting("moving replicas") as waiting:
        while True:
            asked_s = time.monotonic()
            work = fs.storage_policy_work()
            if work.is_done:
                return work
            waiting.what = f"moving replicas ({describe(work)})"
            took_s = time.monotonic() - asked_s  # the NameNode counts, and has other work to do
            time.sleep(max(INTERVAL_S, REST_FACTOR * took_s))


def describe(work: StoragePolicyWork) -> str:
    """As people say it: 3 subtrees to look through, 20 blocks to bring to their place."""
    parts = []
    if work.subtrees:
        parts.append(f"{_count(work.subtrees, 'subtree', work)} to look through")
    if work.blocks:
        parts.append(f"{_count(work.blocks, 'block', work)} to bring to their place")
    nothing = "more can be done now" if work.unsatisfied_blocks else "is left to be done"
    return ", ".join(parts) or f"nothing {nothing}"


def _show(work: StoragePolicyWork) -> None:
    out = Output()
    by = f" ({work.namenode})" if work.namenode and not work.is_done else ""
    out.print(f"{describe(work)}{by}")
    if work.unsatisfied_blocks:
        out.print(
            f"{_count(work.unsatisfied_blocks, 'block', work)} cannot be where the policy wants;"
            " what cannot be moved stays where it is, and is tried again:"
        )
        for reason, blocks in work.reasons.items():
            out.print(f"  {blocks}: {reason}")
    out.print(
        f"so far: {work.scanned_inodes} files and directories looked at, {work.placed_blocks} of"
        f" {work.queued_blocks} blocks found or brought to where they belong"
    )


def _count(number: int, one: str, work: StoragePolicyWork) -> str:
    least = "at least " if number >= work.bound else ""
    return f"{least}{number} {one if number == 1 else one + 's'}"


def _row(policy: StoragePolicy) -> list[str]:
    *first, last = policy.storage_types
    types = [*first, f"{last}, ..."] if first else [f"{last}, ..."]
    return [
        str(policy.id),
        policy.name,
        ", ".join(types),
        ", ".join(policy.creation_fallbacks) or "-",
        ", ".join(policy.replication_fallbacks) or "-",
    ]
