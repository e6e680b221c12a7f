"""Where the local cluster and its settings live unless it is told otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cairnfs.cli.errors import CommandError
from cairnfs.config_file import FILE_NAME, FILE_VARIABLE, Config, ConfigError, load_config


def home() -> Path:
    """$CAIRNFS_HOME, or ~/.cairnfs."""
    return Path(os.environ.get("CAIRNFS_HOME") or "~/.cairnfs").expanduser().absolute()


def config_file(directory: Path | None = None) -> Path | None:
    """The settings to use if none are named: $CAIRN_CONFIG, or those of a local cluster."""
    if os.environ.get(FILE_VARIABLE):
        return Path(os.environ[FILE_VARIABLE]).absolute()
    path = (directory or home()) / FILE_NAME
    return path if path.exists() else None


def read_config(path: Path | None, environment: Mapping[str, str] | None = None) -> Config:
    """All settings; CommandError says what is wrong with them."""
    try:
        return load_config(path, environment=environment)
    except ConfigError as error:
        raise CommandError("\n       ".join(error.problems)) from None


def namespace_file(directory: Path) -> Path:
    """What the NameNode of the cluster in `directory` serves."""
    return directory / "namenode" / "namespace.db"


def excluded_hosts_file(directory: Path) -> Path:
    """Which DataNodes are to leave the cluster in `directory`."""
    return directory / "excluded-hosts"
