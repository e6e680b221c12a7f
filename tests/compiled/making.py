"""Making a wheel of something that has the hook of `make wheel`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


def _can_compile() -> bool:
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(shlex.split(command)[0]) is not None and headers.exists()


needs_a_compiler = pytest.mark.skipif(
    not _can_compile(),
    reason="needs a C compiler and Python's headers (Debian: apt-get install gcc python3-dev)",
)


def make_wheel(project: Path, folder: Path, **environment: str) -> str:
    """A compiled wheel in a folder.

    It is made with what is installed here: nothing is fetched, and mypy is that of `make check`.
    """
    command = ["-m", "pip", "--disable-pip-version-check", "--no-input", "wheel", "--no-deps"]
    options = ["--no-build-isolation", "--wheel-dir", str(folder), str(project)]
    return run(*command, *options, HATCH_BUILD_HOOK_ENABLE_CUSTOM="true", **environment)


def run(*arguments: str, **environment: str) -> str:
    """Run Python, and tell what it says; a test fails with that if it fails."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[2],
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        pytest.fail(f"python {' '.join(arguments)}:\n{done.stdout}", pytrace=False)
    return done.stdout
