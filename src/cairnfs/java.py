"""The Java that Spark and Hadoop's programs run on: where it is, or what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from cairnfs.errors import UnsupportedOperationException

JAVA_OLDEST = 17  # of Spark 4


def find_java() -> str:
    """A Java that Spark can use; the error says what to install."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    advice = (
        f"install Java {JAVA_OLDEST} or newer (Debian: apt-get install openjdk-17-jre-headless)"
    )
    if java is None:
        raise UnsupportedOperationException(
            f"Spark and Hadoop's shell need Java, and there is none: {advice}"
        )
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True)
    except OSError as error:
        raise UnsupportedOperationException(
            f"{java} cannot be run ({error.strerror}): {advice}"
        ) from None
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if version is None or int(version[1]) < JAVA_OLDEST:
        found = f"is Java {version[1]}" if version else "does not tell its version"
        raise UnsupportedOperationException(f"{java} {found}: {advice}, or set JAVA_HOME")
    return java
