"""Where the local cluster lives unless it is told otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """$CAIRNFS_HOME, or ~/.cairnfs."""
    return Path(os.environ.get("CAIRNFS_HOME") or "~/.cairnfs").expanduser().absolute()


def namespace_file(directory: Path) -> Path:
    """What the NameNode of the cluster in `directory` serves."""
    return directory / "namenode" / "namespace.db"


def excluded_hosts_file(directory: Path) -> Path:
    """Which DataNodes are to leave the cluster in `directory`."""
    return directory / "excluded-hosts"
