"""PostgreSQL's programs, and the account that may run them.

Invariant: nothing here starts a server, and nothing but the standard library is
needed: `scripts/ensure-postgres` asks here what is still to be installed.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


class PostgresUnavailable(RuntimeError):
    """No PostgreSQL server could be found, or the one found could not be run."""


def find_postgres_bin() -> Path:
    """The directory that holds `initdb` and `postgres`.

    Searched in this order: $CAIRN_POSTGRES_BIN, `pg_config --bindir`, Debian's
    versioned directories (newest first), PATH, and the wheel that
    scripts/ensure-postgres unpacks into the environment.
    """
    named = os.environ.get("CAIRN_POSTGRES_BIN")
    if named:
        # A directory that was named but is wrong must not be passed over in silence.
        if not _has_server(Path(named)):
            raise PostgresUnavailable(f"CAIRN_POSTGRES_BIN={named} holds no initdb and postgres")
        return Path(named)
    for candidate in _candidate_bins():
        if _has_server(candidate):
            return candidate
    raise PostgresUnavailable(
        "no PostgreSQL server binaries found: run `make setup-postgres`, "
        "or set CAIRN_POSTGRES_BIN to the directory that holds initdb and postgres"
    )


def wheel_directory() -> Path:
    """Where scripts/ensure-postgres unpacks a wheel; never on Python's import path."""
    return Path(sys.prefix) / "postgres"


@dataclass(frozen=True)
class Account:
    """The unprivileged account of a server started by root, which PostgreSQL refuses."""

    uid: int
    gid: int

    def may_enter(self, path: Path) -> bool:
        """Whether every directory down to `path`, and it, lets this account pass."""
        resolved = path.resolve()
        return all(self._may_execute(step) for step in (resolved, *resolved.parents))

    def own(self, root: Path) -> None:
        """Make this account the owner of a tree."""
        os.chown(root, self.uid, self.gid)
        for directory, folders, files in os.walk(root):
            for name in folders + files:
                os.chown(os.path.join(directory, name), self.uid, self.gid, follow_symlinks=False)

    def _may_execute(self, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def choose_account() -> Account | None:
    """`postgres`, else `nobody`, for root; None (stay who we are) for anybody else."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresUnavailable("PostgreSQL cannot run as root; no account postgres or nobody here")


def _candidate_bins() -> list[Path]:
    candidates: list[Path] = []
    if shutil.which("pg_config"):
        asked = subprocess.run(
            ["pg_config", "--bindir"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            candidates.append(Path(asked.stdout.strip()))
    debian = [Path(found) for found in glob.glob("/usr/lib/postgresql/*/bin")]
    candidates += sorted(debian, key=_version_of_debian_bin, reverse=True)
    on_path = shutil.which("initdb")
    if on_path:
        candidates += [Path(on_path).parent, Path(on_path).resolve().parent]
    # One wheel carries two servers, as pginstall and pginstall18: newest first.
    candidates += sorted(wheel_directory().glob("*/pginstall*/bin"), reverse=True)
    return candidates


def _version_of_debian_bin(bin_directory: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", bin_directory.parent.name))


def _has_server(bin_directory: Path) -> bool:
    return all(os.access(bin_directory / name, os.X_OK) for name in ("initdb", "postgres"))
