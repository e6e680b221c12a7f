"""Back to a snapshot: in place, or beside the present."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.progress import Waiting
from cairnfs.cli.snapshot.changing import tell

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem


def rollback(fs: FileSystem, given: argparse.Namespace) -> int:
    """What is given up is in a snapshot, whose name is told: so this can be undone."""
    path, name = given.path, given.name
    with Waiting(f"rolling {path} back to {name}"):
        safety = fs.rollback_snapshot(path, name)
    tell(
        given,
        {"path": path, "snapshot": name, "safety_snapshot": safety},
        f"Rolled {path} back to snapshot {name}; to undo that: cairn snapshot rollback {path}"
        f" {safety}",
    )
    return 0


def clone(fs: FileSystem, given: argparse.Namespace) -> int:
    with Waiting(f"cloning {given.directory} to {given.destination}"):
        fs.clone_snapshot(given.directory, given.name, given.destination)
    tell(
        given,
        {"directory": given.directory, "snapshot": given.name, "clone": given.destination},
        f"Cloned snapshot {given.name} of {given.directory} to {given.destination}",
    )
    return 0
