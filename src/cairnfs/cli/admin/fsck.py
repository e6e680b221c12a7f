"""Look at all files below a path: are there as many good replicas of each block as there should be?

A walk over the ordinary calls, from here: it costs one of them for each file and directory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from cairnfs.cli.output import BOLD, GREEN, RED, YELLOW, Output, format_bytes
from cairnfs.client.block_health import (
    CORRUPT,
    MISSING,
    OVER_REPLICATED,
    UNDER_REPLICATED,
    UNREADABLE,
    Problem,
    judge,
)
from cairnfs.errors import FileNotFoundException, HdfsError

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import FileStatus

DAMAGED = 1


@dataclass(slots=True)
class Findings:
    """What the walk has seen."""

    directories: int = 0
    files: int = 0
    symlinks: int = 0
    open_files: int = 0
    blocks: int = 0
    replicas: int = 0
    length_bytes: int = 0
    replica_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(problem.kind == kind for problem in self.problems)

    @property
    def is_healthy(self) -> bool:
        return not any(problem.is_damage for problem in self.problems)


def fsck(fs: FileSystem, given: argparse.Namespace) -> int:
    """Report, and 1 if something is lost."""
    began_s = time.monotonic()
    root = fs.get_file_link_info(given.path)
    if root is None:
        raise FileNotFoundException(f"{given.path} does not exist")
    findings = Findings()
    for status in _walk(fs, root, findings):
        _look_at(fs, status, findings)
    out = Output()
    if given.json:
        out.print_json(_as_json(fs, root.path, findings))
    else:
        for line in _as_text(fs, root.path, findings, time.monotonic() - began_s, out):
            out.print(line)
    out.flush()
    return 0 if findings.is_healthy else DAMAGED


def _walk(fs: FileSystem, root: FileStatus, findings: Findings) -> Iterator[FileStatus]:
    """Everything at and below `root`; what may not be listed is a problem."""
    waiting = [root]
    while waiting:
        status = waiting.pop()
        yield status
        if not status.is_directory:
            continue
        try:
            waiting += reversed(fs.list_status(status.path))
        except FileNotFoundException:
            continue  # deleted since
        except HdfsError as error:
            findings.problems.append(
                Problem(status.path, UNREADABLE, "", 0, 0, 0, str(error).splitlines()[0])
            )


def _look_at(fs: FileSystem, status: FileStatus, findings: Findings) -> None:
    if status.is_directory:
        findings.directories += 1
        return
    if status.is_symlink:
        findings.symlinks += 1
        return
    try:
        locations = fs.get_block_locations(status.path)
    except FileNotFoundException:
        return  # deleted since
    except HdfsError as error:
        findings.problems.append(
            Problem(status.path, UNREADABLE, "", 0, 0, 0, str(error).splitlines()[0])
        )
        return
    findings.files += 1
    findings.length_bytes += status.length_bytes
    findings.open_files += any(not location.is_complete for location in locations)
    for location in locations:
        findings.blocks += 1
        findings.replicas += len(location.datanodes)
        findings.replica_bytes += len(location.datanodes) * location.length_bytes
        problem = judge(status.path, status.replication, location)
        if problem is not None:
            findings.problems.append(problem)


def _as_text(
    fs: FileSystem, path: str, findings: Findings, elapsed_s: float, out: Output
) -> list[str]:
    lines = []
    for problem in findings.problems:
        what = problem.detail or (
            f"{problem.block} at {problem.offset_bytes}: {problem.replicas} of {problem.wanted}"
            " replicas"
        )
        colour = RED if problem.is_damage else YELLOW
        lines.append(f"{problem.path}: {out.paint(problem.kind, colour)}: {what}")
    verdict = (
        out.paint("HEALTHY", GREEN)
        if findings.is_healthy
        else out.paint("DAMAGED", RED) + ": what is missing or corrupt cannot be read"
    )
    average = findings.replicas / findings.blocks if findings.blocks else 0.0
    numbers = {
        "directories": str(findings.directories),
        "files": f"{findings.files}, {findings.open_files} of them being written",
        "symbolic links": str(findings.symlinks),
        "size": f"{format_bytes(findings.length_bytes)},"
        f" with all replicas {format_bytes(findings.replica_bytes)}",
        "blocks": f"{findings.blocks}, with {average:.2f} replicas each",
    }
    for kind in (MISSING, CORRUPT, UNDER_REPLICATED, OVER_REPLICATED, UNREADABLE):
        numbers[kind] = str(findings.count(kind))
    if lines:
        lines.append("")
    lines.append(f"{out.paint(f'{path} at {fs.url}', BOLD)} is {verdict}")
    lines += [f"  {name:17} {text}" for name, text in numbers.items()]
    lines.append(f"  {'took':17} {elapsed_s:.1f} s")
    return lines


def _as_json(fs: FileSystem, path: str, findings: Findings) -> dict[str, object]:
    return {"url": fs.url, "path": path, "healthy": findings.is_healthy, **asdict(findings)}
