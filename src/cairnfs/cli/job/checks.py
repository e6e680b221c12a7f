"""`cairn job fsck` and `scrub`: their options, and what they say."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.job.progress import JobBar
from cairnfs.cli.output import BOLD, GREEN, RED, YELLOW, Output, format_bytes

if TYPE_CHECKING:
    from cairnfs.jobs import FsckReport, ScrubResult

DAMAGED = 1


def add_options(fsck: argparse.ArgumentParser, scrub: argparse.ArgumentParser) -> None:
    fsck.add_argument("directory", metavar="DIRECTORY")
    fsck.add_argument("--top", type=int, default=1000, help="so many problems are listed (1000)")
    fsck.add_argument("--output", metavar="URL", help="all of them as Parquet, in a new directory")
    scrub.add_argument("directory", metavar="DIRECTORY")
    scrub.add_argument(
        "--bytes-per-s", type=int, metavar="BYTES", help="what all tasks together may read"
    )
    scrub.add_argument(
        "--no-snapshots", action="store_true", help="leave out what only snapshots show"
    )
    scrub.add_argument(
        "--state", metavar="URL", help="where to note how far it is (beside the directory)"
    )


def tell_of_fsck(given: argparse.Namespace, report: FsckReport, bar: JobBar) -> int:
    import msgspec

    bar.clear()
    out = Output()
    if given.json:
        out.print_json({"healthy": report.is_healthy, **msgspec.to_builtins(report)})
    else:
        _print_fsck(report, out)
    out.flush()
    return 0 if report.is_healthy else DAMAGED


def tell_of_scrub(given: argparse.Namespace, done: ScrubResult, bar: JobBar) -> int:
    import msgspec

    bar.clear()
    out = Output()
    if given.json:
        out.print_json({"healthy": done.is_healthy, **msgspec.to_builtins(done)})
    else:
        _print_scrub(done, out)
    out.flush()
    return 0 if done.is_healthy else DAMAGED


def _print_fsck(report: FsckReport, out: Output) -> None:
    for problem in report.problems:
        what = f"{problem.block} at {problem.offset_bytes}: " if problem.block else ""
        if problem.block:
            what += f"{problem.replicas} of {problem.wanted} replicas"
        if problem.detail:
            what += f", {problem.detail}" if what else problem.detail
        colour = RED if problem.is_damage else YELLOW
        out.print(f"{problem.path}: {out.paint(problem.kind, colour)}: {what}")
    listed, found = len(report.problems), sum(report.counts.values())
    if listed < found:
        out.print(f"... and {found - listed:,} more")
    if found:
        out.print()
    verdict = out.paint("HEALTHY", GREEN) if report.is_healthy else out.paint("DAMAGED", RED)
    out.print(f"{out.paint(report.directory, BOLD)} is {verdict}")
    average = report.replicas / report.blocks if report.blocks else 0.0
    numbers = {
        "directories": f"{report.directories:,}",
        "files": f"{report.files:,}, {report.open_files:,} of them being written",
        "symbolic links": f"{report.symlinks:,}",
        "size": f"{format_bytes(report.length_bytes)},"
        f" with all replicas {format_bytes(report.replica_bytes)}",
        "blocks": f"{report.blocks:,}, with {average:.2f} replicas each",
        **{kind: f"{count:,}" for kind, count in report.counts.items()},
        "took": f"{report.seconds:.1f} s",
    }
    for name, text in numbers.items():
        out.print(f"  {name:17} {text}")


def _print_scrub(done: ScrubResult, out: Output) -> None:
    found = done.found
    for bad in found.listed:
        fate = "reported" if bad.is_reported else f"{bad.good} others are good"
        colour = YELLOW if bad.good else RED
        out.print(f"{bad.path}: {out.paint(bad.kind, colour)}: {bad.reason} ({fate})")
    listed, all_bad = len(found.listed), found.bad + found.unreachable
    if listed < all_bad:
        out.print(f"... and {all_bad - listed:,} more")
    out.print(
        f"Verified {done.directory}: {found.replicas:,} replicas of {found.blocks:,} blocks,"
        f" {format_bytes(found.bytes)}; {found.bad:,} are bad, {found.reported:,} of them reported"
        f" to be replaced; {found.unreachable:,} could not be reached"
    )
    if found.gone:
        out.print(f"{found.gone:,} blocks were of files that are not there any more")
    if found.lost:
        out.print(out.paint(f"{found.lost:,} blocks have no good replica", RED))
