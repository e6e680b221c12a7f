"""`cairn xattr ACTION`: which attributes are inherited, and why a path has its values.

To set, get and remove attributes, there are `cairn fs -setfattr` and `-getfattr`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cairnfs.cli.connection import choose, run_on
from cairnfs.cli.output import Output
from cairnfs.cli.subcommands import make_parsers
from cairnfs.xattr_text import encode_value

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import XAttrExplanation, XAttrReason, XAttrStep

KINDS = ("follow-path", "stay-with-data", "local")
_IF_DENIED = "; names are declared by the superuser (HADOOP_USER_NAME=...)"
_NONE = "-"

# What an operation did, as a sentence goes on.
_CAUSES = {
    "SET": "set on {path}",
    "REMOVED": "removed from {path}",
    "UNSET": "unset on {path}, to be what the directory above had",
    "KEPT": "decided above {path}, and kept when that was moved or rolled back",
    "RENAMED": "{path} was moved there, and took what its directory has",
    "ABOVE_SNAPSHOT": "decided above {path}, before the snapshot was taken",
}


def main(arguments: Sequence[str]) -> int:
    given = make_parser().parse_args(arguments)
    action = ACTIONS[given.action][1]
    return run_on(choose(given.fs), lambda fs: action(fs, given), if_denied=_IF_DENIED)


def make_parser() -> argparse.ArgumentParser:
    parser, parsers = make_parsers(
        "cairn xattr",
        "Extended attributes that directories hand down to what is in them.",
        "Values are set and read by `cairn fs -setfattr` and `cairn fs -getfattr`.",
        "action",
        {name: what for name, (what, _) in ACTIONS.items()},
    )
    parsers["declare"].add_argument("name", metavar="NAME", help="user.NAME or trusted.NAME")
    parsers["declare"].add_argument("kind", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    for name in ("unset", "explain"):
        parsers[name].add_argument("path", metavar="PATH")
    parsers["unset"].add_argument("name", metavar="NAME")
    parsers["explain"].add_argument("names", nargs="*", metavar="NAME", help="(all)")
    return parser


def declare(fs: FileSystem, given: argparse.Namespace) -> int:
    fs.declare_xattr(given.name, given.kind)
    _tell(
        given,
        {"name": given.name, "kind": given.kind},
        f"Declared {given.name} as {given.kind}",
    )
    return 0


def list_declared(fs: FileSystem, given: argparse.Namespace) -> int:
    found = fs.list_declared_xattrs()
    out = Output()
    if given.json:
        for each in found:
            out.print_json({"name": each.name, "kind": each.kind, "is_used": each.is_used})
    elif not found:
        out.print("No attributes are declared: all are local to their file or directory")
    else:
        used = {True: "in use", False: "not used yet"}
        rows = [[each.name, each.kind, used[each.is_used]] for each in found]
        out.print_table([["NAME", "KIND", "USE"], *rows])
    out.flush()
    return 0


def unset(fs: FileSystem, given: argparse.Namespace) -> int:
    fs.unset_xattr(given.path, given.name)
    _tell(
        given,
        {"path": given.path, "name": given.name},
        f"{given.name} of {given.path} is what the directory above has",
    )
    return 0


def explain(fs: FileSystem, given: argparse.Namespace) -> int:
    found = fs.explain_xattrs(given.path, given.names)
    out = Output()
    for at, each in enumerate(found):
        if given.json:
            out.print_json(_as_json(each))
            continue
        if at:
            out.print()
        _print_explanation(out, given.path, each)
    if not found and not given.json:
        out.print(f"{given.path} has no attributes")
    out.flush()
    return 0


def _print_explanation(out: Output, path: str, found: XAttrExplanation) -> None:
    out.print(f"{path}: {found.name} ({found.kind}) is {_show(found.value)}")
    for reason in found.reasons:
        when = f"TxID {reason.txid}: " if reason.txid else ""
        out.print(f"  {when}{_CAUSES[reason.cause].format(path=reason.path)}")
    if not found.reasons:
        out.print("  nobody has decided otherwise")
    if found.steps:
        rows = [_row(step, found.reasons) for step in found.steps]
        header = ["", "PATH", "SET AT", "SET TO", "RENAMED", "ROLLED BACK", "DECIDED", "VALUE"]
        out.print_table([header, *rows], frozenset((2, 4, 5, 6)))


def _row(step: XAttrStep, reasons: list[XAttrReason]) -> list[str]:
    deciding = {(reason.path, reason.txid) for reason in reasons}
    is_deciding = (step.path, step.decided) in deciding
    return [
        "*" if is_deciding else " ",
        step.path,
        _txid(step.set),
        _show(step.value) if step.set else _NONE,
        _txid(step.renamed),
        _txid(step.restored),
        _txid(step.decided),
        _show(step.decided_value),
    ]


def _txid(txid: int) -> str:
    return str(txid) if txid else _NONE


def _show(value: bytes | None) -> str:
    if value is None:
        return "none"
    is_text = value.isascii() and value.decode("ascii").isprintable()
    return encode_value(value, "text" if is_text else "hex")


def _as_json(found: XAttrExplanation) -> dict[str, object]:
    return {
        "name": found.name,
        "kind": found.kind,
        "value": None if found.value is None else _show(found.value),
        "reasons": [
            {"cause": reason.cause, "path": reason.path, "txid": reason.txid}
            for reason in found.reasons
        ],
        "steps": [
            {
                "path": step.path,
                "renamed": step.renamed,
                "restored": step.restored,
                "set": step.set,
                "value": None if step.value is None else _show(step.value),
                "decided": step.decided,
                "decided_value": None if step.decided_value is None else _show(step.decided_value),
            }
            for step in found.steps
        ],
    }


def _tell(given: argparse.Namespace, record: dict[str, object], text: str) -> None:
    out = Output()
    if given.json:
        out.print_json(record)
    else:
        out.print(text)
    out.flush()


ACTIONS: dict[str, tuple[str, Callable[[FileSystem, argparse.Namespace], int]]] = {
    # name: what it does, function
    "declare": ("how far the attributes of a name reach", declare),
    "list": ("the names that are not local", list_declared),
    "unset": ("have here and below what the directory above has", unset),
    "explain": ("which operation decided a value, when and where", explain),
}
