"""What snapshots take: everything that they refer to, and what only they hold."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.output import Output, format_bytes

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem


def space(fs: FileSystem, given: argparse.Namespace) -> int:
    found = fs.snapshot_space(given.directory, *given.names)
    out = Output()
    if given.json:
        for each in found:
            out.print_json(
                {
                    "name": each.name,
                    "referenced_bytes": each.referenced_bytes,
                    "exclusive_bytes": each.exclusive_bytes,
                }
            )
    elif not found:
        out.print(f"{given.directory} has no snapshots")
    else:
        rows = [["NAME", "REFERS TO", "ALONE HOLDS"]]
        for each in found:
            sizes = map(format_bytes, (each.referenced_bytes, each.exclusive_bytes))
            rows.append([each.name, *sizes])
        out.print_table(rows, frozenset((1, 2)))
    out.flush()
    return 0
