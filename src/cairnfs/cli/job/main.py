"""`cairn job NAME`: the command line of jobs, and what they say.

Nothing of Spark is imported before a job is run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cairnfs.cli.connection import Choice, choose
from cairnfs.cli.errors import CommandError
from cairnfs.cli.job import checks, work
from cairnfs.cli.job import usage as usage_options
from cairnfs.cli.job.progress import JobBar
from cairnfs.cli.output import Output, format_bytes
from cairnfs.cli.subcommands import make_parsers

if TYPE_CHECKING:
    import msgspec

    from cairnfs.jobs import Plan
    from cairnfs.jobs.sessions import Options

# name: what it does
JOBS = {
    "backup": "copy a snapshot to any file system: all of it, or what changed since the last one",
    "restore": "make a directory of a backup, with all that it had",
    "mirror": "make a directory of another cluster, or of an HDFS, equal to one of this",
    "usage": "where space and files are, what snapshots hold, what has grown",
    "fsck": "look at all files, blocks and directories; exit code 1 if something is lost",
    "scrub": "read every replica, and have those replaced that are not what was written",
    "rollback": "make a directory what it was in a snapshot, and reclaim what that leaves",
    "reclaim": "work off what was deleted, trees and snapshots, without waiting for it",
    "satisfy": "look for replicas that are not where storage policies want them, and move them",
}
_RUN_AGAIN = "run the same command again: it goes on where it was"


def main(arguments: Sequence[str]) -> int:
    given = make_parser().parse_args(arguments)
    _check_spark()
    choice = choose(given.fs)
    bar = JobBar(given.job)
    with TemporaryDirectory(prefix="cairn-job-") as folder:
        given.log = Path(folder, "spark.log")
        try:
            return _ACTIONS[given.job](given, choice, bar)
        except CommandError:
            raise
        except Exception as error:
            raise _told(error, choice, has_begun=bar.has_begun) from None
        finally:
            bar.clear()


def make_parser() -> argparse.ArgumentParser:
    parser, parsers = make_parsers(
        "cairn job",
        "Bulk work, done by Spark.",
        "A job that was ended, however that was, goes on where it was when it is run again.",
        "job",
        JOBS,
    )
    for each in parsers.values():
        each.add_argument("--master", metavar="URL", help="of a Spark cluster (local[*])")
        each.add_argument(
            "--conf",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of Spark, as spark-submit has it; as often as needed",
        )
        if each not in (parsers["usage"], parsers["fsck"]):  # which change nothing
            each.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    backup, restore, mirror = (parsers[name] for name in ("backup", "restore", "mirror"))
    backup.add_argument("directory", metavar="DIRECTORY")
    backup.add_argument("snapshot", metavar="SNAPSHOT", help="its name")
    backup.add_argument("target", metavar="URL", help="where backups of the directory are kept")
    backup.add_argument("--name", help="of the backup (the snapshot's)")
    backup.add_argument("--full", action="store_true", help="copy everything once more")
    restore.add_argument("backups", metavar="URL", help="where backups are kept")
    restore.add_argument("directory", metavar="DIRECTORY", help="is new, or empty")
    restore.add_argument("--name", help="of the backup (the latest)")
    mirror.add_argument("directory", metavar="DIRECTORY", help="of which snapshots may be taken")
    mirror.add_argument("target", metavar="URL", help="of the mirror: hdfs://other:8020/path")
    usage_options.add_options(parsers["usage"])
    checks.add_options(parsers["fsck"], parsers["scrub"])
    work.add_options(parsers["rollback"], parsers["satisfy"])
    return parser


def backup(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import backup as run
    from cairnfs.jobs import plan_backup

    what = (_url(choice, given.directory), given.snapshot, given.target)
    how: dict[str, Any] = {"name": given.name, "full": given.full, **_options(given, bar)}
    if given.dry_run:
        return _show_plan(given, plan_backup(*what, **how), bar)
    done = run(*what, **how)
    text = (
        f"Backed {given.directory} up as {done.backup} in {given.target}: {done.files} files,"
        f" {format_bytes(done.bytes)}"
    )
    if done.base is not None:
        text += (
            f"; copied {done.copied_files} files, {format_bytes(done.copied_bytes)}, the rest is in"
            f" {done.base} and those before"
        )
    if done.was_done:
        text = f"{done.backup} in {given.target} is complete already: {done.files} files"
    return _tell(given, done, text, bar)


def restore(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import plan_restore
    from cairnfs.jobs import restore as run

    what = (given.backups, _url(choice, given.directory))
    how: dict[str, Any] = {"name": given.name, **_options(given, bar)}
    if given.dry_run:
        return _show_plan(given, plan_restore(*what, **how), bar)
    done = run(*what, **how)
    text = (
        f"Restored {done.directory} from backup {done.backup}: {done.files} files,"
        f" {done.directories} directories, {format_bytes(done.bytes)}"
    )
    return _tell(given, done, text, bar)


def mirror(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import mirror as run
    from cairnfs.jobs import plan_mirror

    what = (_url(choice, given.directory), given.target)
    if given.dry_run:
        return _show_plan(given, plan_mirror(*what, **_options(given, bar)), bar)
    done = run(*what, **_options(given, bar))
    text = (
        f"Made {given.target} equal to {given.directory}: {done.created} created, {done.deleted}"
        f" deleted, {done.moved} moved, {done.modified} modified; {done.copied_files} files and"
        f" {format_bytes(done.copied_bytes)} copied"
    )
    return _tell(given, done, text, bar)


def usage(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    import msgspec

    from cairnfs.jobs import usage as run

    report = run(
        _url(choice, given.directory),
        depth=given.depth,
        small_bytes=given.small,
        top=given.top,
        since=given.since,
        until=given.until,
        output=given.output,
        **_options(given, bar),
    )
    bar.clear()
    if given.html:
        usage_options.write_page(report, given.html)
    out = Output()
    if given.json:
        out.print_json(msgspec.to_builtins(report))
    else:
        usage_options.print_report(report, out)
    out.flush()
    return 0


def fsck(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import fsck as run

    url = _url(choice, given.directory)
    report = run(url, top=given.top, output=given.output, **_options(given, bar))
    return checks.tell_of_fsck(given, report, bar)


def scrub(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import plan_scrub
    from cairnfs.jobs import scrub as run

    url = _url(choice, given.directory)
    how: dict[str, Any] = {"snapshots": not given.no_snapshots, **_options(given, bar)}
    if given.dry_run:
        return _show_plan(given, plan_scrub(url, **how), bar)
    done = run(url, bytes_per_s=given.bytes_per_s, state=given.state, **how)
    return checks.tell_of_scrub(given, done, bar)


def rollback(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import plan_rollback
    from cairnfs.jobs import rollback as run

    what = (_url(choice, given.directory), given.snapshot)
    how: dict[str, Any] = {"safety": given.safety, **_options(given, bar)}
    if given.dry_run:
        return _show_plan(given, plan_rollback(*what, **how), bar)
    done = run(*what, **how)
    return _tell(given, done, work.describe_rollback(done), bar)


def reclaim(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import plan_reclaim
    from cairnfs.jobs import reclaim as run

    if given.dry_run:
        return _show_plan(given, plan_reclaim(choice.url, **_options(given, bar)), bar)
    done = run(choice.url, **_options(given, bar))
    return _tell(given, done, work.describe_reclaim(done), bar)


def satisfy(given: argparse.Namespace, choice: Choice, bar: JobBar) -> int:
    from cairnfs.jobs import plan_satisfy
    from cairnfs.jobs import satisfy as run

    what = (choice.url, given.path)
    if given.dry_run:
        return _show_plan(given, plan_satisfy(*what, **_options(given, bar)), bar)
    done = run(*what, wait=not given.no_wait, **_options(given, bar))
    _tell(given, done, work.describe_satisfy(done), bar)
    return 1 if done.unsatisfied_blocks and not given.no_wait else 0


_ACTIONS: dict[str, Callable[[argparse.Namespace, Choice, JobBar], int]] = {
    "backup": backup,
    "restore": restore,
    "mirror": mirror,
    "usage": usage,
    "fsck": fsck,
    "scrub": scrub,
    "rollback": rollback,
    "reclaim": reclaim,
    "satisfy": satisfy,
}


def _check_spark() -> None:
    """Before anything is imported that needs it."""
    if any(find_spec(package) is None for package in ("pyarrow", "pyspark")):
        raise CommandError(
            "jobs run on Spark, which is not installed: pip install 'cairnfs[spark]'"
        )


def _options(given: argparse.Namespace, bar: JobBar) -> Options:
    settings = {}
    for each in given.conf:
        name, equals, value = each.partition("=")
        if not equals:
            raise CommandError(f"--conf {each} is not of the form NAME=VALUE")
        settings[name] = value
    options: Options = {"settings": settings, "progress": bar.show}
    if given.master:
        options["master"] = given.master
    if "CAIRNFS_DEBUG" not in os.environ:
        options["log"] = given.log
    return options


def _url(choice: Choice, path: str) -> str:
    """A path on the cluster that was chosen, unless it says on which it is."""
    if "://" in path:
        return path
    if not path.startswith("/"):
        raise CommandError(
            f"{path!r} is no absolute path; jobs take /path or hdfs://host:8020/path"
        )
    return choice.url.rstrip("/") + path


def _show_plan(given: argparse.Namespace, plan: Plan, bar: JobBar) -> int:
    import msgspec

    bar.clear()
    out = Output()
    if given.json:
        out.print_json(msgspec.to_builtins(plan))
    else:
        out.print(plan.title)
        rows = [["ACTION", "KIND", "NUMBER", "BYTES", "SUCH AS"]]
        for line in plan.lines:
            size = format_bytes(line.bytes) if line.bytes else "-"
            rows.append([line.action, line.kind, str(line.items), size, line.example])
        if plan.lines:
            out.print_table(rows, frozenset((2, 3)))
        else:
            out.print("There is nothing to do")
    out.flush()
    return 0


def _tell(given: argparse.Namespace, done: msgspec.Struct, text: str, bar: JobBar) -> int:
    import msgspec

    bar.clear()
    out = Output()
    if given.json:
        out.print_json(msgspec.to_builtins(done))
    else:
        out.print(text)
    out.flush()
    return 0


def _told(error: Exception, choice: Choice, *, has_begun: bool) -> Exception:
    """One line for whatever a job cannot go on for."""
    from cairnfs.client.namenode import NameNodeUnreachable
    from cairnfs.errors import AccessControlException, HdfsError
    from cairnfs.network.sockets import PeerTimeout

    first = (str(error) or type(error).__name__).splitlines()[0]
    if isinstance(error, NameNodeUnreachable | PeerTimeout):
        text = f"{choice.explain_silence()} ({first})"
        return CommandError(f"{text}; {_RUN_AGAIN}" if has_begun else text)
    if isinstance(error, AccessControlException):
        return CommandError(f"{first}; jobs see and set everything: run them as the superuser")
    if isinstance(error, HdfsError | OSError):
        return CommandError(first)
    return error
