"""Where the local cluster and its settings live unless it is told otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cairnfs.cli.errors import CommandError
from cairnfs.config_file import FILE_NAME, FILE_VARIABLE, Config, ConfigError, load_config


def home() -> Path:
    """$CAIRNFS_HOME, or ~/.cairnfs."""
    try:
        return Path(os.environ.get("CAIRNFS_HOME") or "~/.cairnfs").expanduser().absolute()
    except RuntimeError:  # neither HOME nor the system says where that is
        raise CommandError("there is no home directory for this user: set CAIRNFS_HOME") from None


def is_home(directory: Path) -> bool:
    """Whether it need not be named."""
    with suppress(CommandError):
        return directory == home()
    return False


def not_ours(what: str, path: Path, error: OSError) -> CommandError:
    """That we cannot do something to a directory, or to what is in it."""
    return CommandError(
        f"cannot {what} {path} ({error.strerror}): choose another --directory, or set CAIRNFS_HOME"
    )


def config_file(directory: Path | None = None) -> Path | None:
    """The settings to use if none are named: $CAIRN_CONFIG, or those of a local cluster."""
    if os.environ.get(FILE_VARIABLE):
        return Path(os.environ[FILE_VARIABLE]).absolute()
    path = (directory or home()) / FILE_NAME
    try:
        path.stat()
    except PermissionError as error:  # to enter the directory
        raise not_ours("look into", path.parent, error) from None
    except OSError:
        return None
    return path


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
