"""`cairn balancer`: DataNodes are used evenly, as `hdfs balancer` makes them.

The work is done by the NameNodes: this command asks for it and tells how far it is.  Ctrl-C stops
both; should the command be killed, the work goes on, and the command, called again, as well.
Options may be written as Hadoop's are, with one dash.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cairnfs.cli.connection import choose, connect, run_on
from cairnfs.cli.errors import CommandError
from cairnfs.cli.output import RED, YELLOW, Output, format_bytes
from cairnfs.cli.progress import Waiting

if TYPE_CHECKING:
    from cairnfs.client.balancing import BalancerParameters, BalancerStatus, Balancing
    from cairnfs.client.filesystem import FileSystem

INTERVAL_S = 0.5
THRESHOLD_MIN, THRESHOLD_MAX = 1.0, 100.0

# ExitStatus of HDFS's balancer, as a shell sees it.
ALREADY_RUNNING, NO_MOVE_BLOCK, NO_MOVE_PROGRESS, ILLEGAL_ARGUMENTS, INTERRUPTED = (
    256 + code for code in (-1, -2, -3, -5, -6)
)

_IF_DENIED = "; the superuser balances a cluster (HADOOP_USER_NAME=...)"
_ENDS = {
    "BALANCED": (0, "The cluster is balanced."),
    "NO_MOVE_BLOCK": (NO_MOVE_BLOCK, "No block can be moved."),
    "NO_MOVE_PROGRESS": (
        NO_MOVE_PROGRESS,
        "No block has been moved for {idle} iterations: those left have no other place to go.",
    ),
    "STOPPED": (INTERRUPTED, "It was stopped."),
}
_LEVELS = {
    "OVER_UTILIZED": ("over-utilized", RED),
    "ABOVE_AVERAGE": ("above average", ""),
    "BELOW_AVERAGE": ("below average", ""),
    "UNDER_UTILIZED": ("under-utilized", YELLOW),
}


def main(arguments: Sequence[str]) -> int:
    parser = make_parser()
    try:
        given = parser.parse_args([_with_two_dashes(each) for each in arguments])
    except SystemExit as ended:
        return ILLEGAL_ARGUMENTS if ended.code else 0
    return run_on(choose(given.fs), lambda fs: _run(fs, given), if_denied=_IF_DENIED)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cairn balancer",
        description="Move replicas from full DataNodes to empty ones, until each is used as the"
        " cluster is, give or take a threshold; each storage type by itself.  The NameNodes do"
        " it, and go on when this command is killed; Ctrl-C stops it.",
        epilog="Exit codes are those of `hdfs balancer`: 0 balanced, 255 another one is running,"
        " 254 no block can be moved, 253 no progress, 251 wrong arguments, 250 stopped.",
        allow_abbrev=False,
    )
    parser.add_argument("--fs", metavar="URL", help="the file system: hdfs://host:8020")
    parser.add_argument(
        "--threshold",
        type=_threshold,
        metavar="PERCENT",
        help="of its capacity, by which a DataNode may differ from the cluster (10)",
    )
    for name, what in (
        ("include", "only these take part"),
        ("exclude", "these do not take part"),
        ("source", "only these give replicas away"),
    ):
        parser.add_argument(
            f"--{name}",
            type=_hosts,
            metavar="HOSTS",
            help=f"{what}: HOST[:PORT],..., or @FILE with one in a line",
        )
    parser.add_argument(
        "--idleiterations",
        type=int,
        metavar="COUNT",
        help="end after so many in which nothing could be moved; -1: never (5)",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--dry-run", action="store_true", help="show what would be moved")
    action.add_argument("--background", action="store_true", help="start it, and don't wait")
    action.add_argument("--status", action="store_true", help="how far the last one is")
    action.add_argument("--stop", action="store_true", help="begin no further moves")
    parser.add_argument("--json", action="store_true", help="for programs: the status at the end")
    return parser


def _run(fs: FileSystem, given: argparse.Namespace) -> int:
    if given.stop:
        return _stop(fs, given)
    if given.status or given.dry_run:
        status = fs.get_balancing(None if given.status else _parameters(given))
        if given.json:
            Output().print_json(msgspec.to_builtins(status))
        elif given.status:
            _show_status(status)
        else:
            _show_plan(status)
        return 0
    return _balance(fs, given)


def _parameters(given: argparse.Namespace) -> BalancerParameters:
    from cairnfs.client.balancing import BalancerParameters

    defaults = BalancerParameters()
    return BalancerParameters(
        defaults.threshold if given.threshold is None else given.threshold,
        tuple(given.include or ()),
        tuple(given.exclude or ()),
        tuple(given.source or ()),
        defaults.idle_iterations if given.idleiterations is None else given.idleiterations,
    )


def _balance(fs: FileSystem, given: argparse.Namespace) -> int:
    from cairnfs.errors import IOException

    try:
        balancing = fs.start_balancing(_parameters(given))
    except IOException as error:
        if "Another balancer is running" not in str(error):
            raise
        Output().print(str(error).splitlines()[0])
        return ALREADY_RUNNING
    if given.background:
        if not given.json:
            Output().print("Balancing has begun; `cairn balancer --status` tells how far it is.")
        return 0
    try:
        status = _follow(fs, balancing, is_quiet=given.json)
    except KeyboardInterrupt:
        with connect(choose(given.fs)) as again:  # it may have been in the middle of a call
            again.stop_balancing()
        Output().print("Stopped: no further moves are begun.")
        return INTERRUPTED
    balancing = status.balancing or balancing
    code, _ = _ENDS[balancing.state]
    if given.json:
        Output().print_json(msgspec.to_builtins(status))
    else:
        _show_end(balancing)
    return code


def _follow(fs: FileSystem, begun: Balancing, *, is_quiet: bool) -> BalancerStatus:
    """Until it has ended; a line for each iteration, as `hdfs balancer` prints them."""
    out, printed = Output(), 0
    if not is_quiet:
        out.print(
            "Time Stamp           Iteration#  Bytes Already Moved  Bytes Left To Move"
            "  Bytes Being Moved  NameNode"
        )
        out.flush()
    with Waiting("balancing") as waiting:
        while True:
            status = fs.get_balancing()
            now = status.balancing
            if now is None or now.started_ms != begun.started_ms:
                raise CommandError("another balancing was started meanwhile: see --status")
            if not is_quiet and now.iteration > printed:
                printed = now.iteration
                out.print(_line(now, status))
                out.flush()
            if not now.is_running:
                return status
            waiting.what = (
                f"balancing (iteration {now.iteration}, {format_bytes(now.moved_bytes)} moved,"
                f" {format_bytes(status.left_bytes)} left)"
            )
            time.sleep(INTERVAL_S)


def _line(now: Balancing, status: BalancerStatus) -> str:
    return (
        f"{_time(time.time() * 1000):<19}  {now.iteration:>10}"
        f"  {format_bytes(now.moved_bytes):>19}  {format_bytes(now.left_bytes):>18}"
        f"  {format_bytes(now.moving_bytes):>17}  {status.namenode or '-'}"
    )


def _stop(fs: FileSystem, given: argparse.Namespace) -> int:
    before = fs.get_balancing().balancing
    stopped = fs.stop_balancing()
    if given.json:
        Output().print_json(None if stopped is None else msgspec.to_builtins(stopped))
    elif before is None or not before.is_running:
        Output().print("No balancer is running.")
    else:
        Output().print("Stopped: no further moves are begun; those under way end by themselves.")
    return 0


# For people.


def _show_plan(status: BalancerStatus) -> None:
    """What a dry run says."""
    out = Output()
    _show_shares(out, status)
    if not status.left_bytes:
        out.print("The cluster is balanced: nothing would be moved.")
        return
    if not status.exchanges:
        out.print("No block can be moved: nobody has room for what others have too much.")
        return
    total = sum(each.size_bytes for each in status.exchanges)
    out.print(
        f"{format_bytes(status.left_bytes)} have to move until the cluster is balanced. The first"
        f" iteration would move {format_bytes(total)}:"
    )
    rows = [["TYPE", "FROM", "TO", "BYTES"]]
    rows += [
        [each.storage_type, each.source, each.target, format_bytes(each.size_bytes)]
        for each in status.exchanges
    ]
    out.print_table(rows, frozenset((3,)))


def _show_status(status: BalancerStatus) -> None:
    out = Output()
    _show_shares(out, status)
    now = status.balancing
    if now is None:
        out.print("No balancer has run.")
    elif now.is_running:
        out.print(
            f"{now.user} has started the balancer at {_time(now.started_ms)} with a threshold of"
            f" {now.parameters.threshold:g} %: iteration {now.iteration},"
            f" {format_bytes(now.moved_bytes)} moved, {format_bytes(status.left_bytes)} left."
        )
    else:
        _show_end(now)


def _show_end(now: Balancing) -> None:
    _, text = _ENDS[now.state]
    text = text.format(idle=now.parameters.idle_iterations)
    took_s = ((now.ended_ms or now.started_ms) - now.started_ms) / 1000
    blocks = "1 block" if now.moved_blocks == 1 else f"{now.moved_blocks} blocks"
    iterations = "1 iteration" if now.iteration == 1 else f"{now.iteration} iterations"
    Output().print(
        f"{text} {format_bytes(now.moved_bytes)} in {blocks} were moved in {iterations},"
        f" {took_s:.0f} s."
    )


def _show_shares(out: Output, status: BalancerStatus) -> None:
    rows = [["TYPE", "DATANODE", "RACK", "CAPACITY", "USED", "USED%", "MEAN%", ""]]
    for share in status.shares:
        level, colour = _LEVELS[share.level]
        rows.append(
            [
                share.storage_type,
                share.node,
                share.rack,
                format_bytes(share.capacity_bytes),
                format_bytes(share.used_bytes),
                f"{share.utilisation:.2f}",
                f"{share.mean:.2f}",
                out.paint(level, colour) if colour else level,
            ]
        )
    if len(rows) == 1:
        out.print("No DataNode takes part.")
    else:
        out.print_table(rows, frozenset((3, 4, 5, 6)))


def _time(at_ms: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


# Arguments.


def _with_two_dashes(argument: str) -> str:
    """`-threshold` as Hadoop writes it; a number below 0 is no option."""
    is_hadoops = argument.startswith("-") and argument[1:2].isalpha() and len(argument) > 2
    return f"-{argument}" if is_hadoops else argument


def _threshold(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not THRESHOLD_MIN <= value <= THRESHOLD_MAX:
        raise argparse.ArgumentTypeError(
            f"Number out of range: threshold = {text}; it is a percentage from 1 to 100"
        )
    return value


def _hosts(text: str) -> list[str]:
    if text.startswith("@"):
        try:
            text = ",".join(Path(text[1:]).read_text().split())
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text[1:]}: {error.strerror}") from None
    hosts = [host.strip() for host in text.split(",") if host.strip()]
    if not hosts:
        raise argparse.ArgumentTypeError("names no DataNode")
    return hosts
