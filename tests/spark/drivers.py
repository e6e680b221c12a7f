"""Spark programs of their own, which end by themselves or are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RUN_LIMIT_S = 240.0


def run_driver(
    driver: Path,
    arguments: Path,
    *,
    until: Callable[[], bool] | None,
    limit_s: float = RUN_LIMIT_S,
) -> str:
    """Run to the end, or kill -9 as soon as something is so; what it said last."""
    output = arguments.with_suffix(".out")
    with output.open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, str(driver), str(arguments)],
            stdout=stdout,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        if until is None:
            assert process.wait(limit_s) == 0
        else:
            deadline_s = time.monotonic() + limit_s
            while not until():
                assert process.poll() is None, "the driver has ended before it was killed"
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
    finally:
        # The driver is Python and a JVM: both are in its session.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return (output.read_text().split() or [""])[-1]
