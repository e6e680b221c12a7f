"""`cairn` as a process of its own, on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys

from cairnfs.testing.cluster import Cluster

SECONDS = 180.0


def run(cluster: Cluster, *arguments: str, code: int = 0, **variables: str) -> str:
    """What a command prints, on both streams, if it ends with this code."""
    done = subprocess.run(
        [sys.executable, "-m", "cairnfs.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "CAIRN_FS": cluster.uri, **variables},
    )
    assert done.returncode == code, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout
