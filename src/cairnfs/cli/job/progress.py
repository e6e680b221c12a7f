"""How far a job is: a bar on a terminal, and elsewhere a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from cairnfs.cli.output import format_bytes, is_terminal
from cairnfs.cli.progress import draw, draw_bar, wipe

if TYPE_CHECKING:
    from cairnfs.jobs import JobProgress

LINE_INTERVAL_S = 30.0


class JobBar:
    """What is told about a job, on standard error; any thread may."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._is_terminal = is_terminal(2)
        self._began_s = self._told_s = time.monotonic()
        self._has_drawn = False
        self.has_begun = False  # whether anything was told of it

    def show(self, progress: JobProgress) -> None:
        self.has_begun = True
        with self._lock:
            now_s = time.monotonic()
            if self._is_terminal:
                self._has_drawn = True
                draw(f"{_bar(progress)} {now_s - self._began_s:.0f} s")
            elif now_s - self._told_s >= LINE_INTERVAL_S:
                self._told_s = now_s
                print(f"cairn job {self._job}: {_words(progress)}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line as if nothing had been there."""
        with self._lock:
            if self._has_drawn:
                wipe()
                self._has_drawn = False


def _bar(progress: JobProgress) -> str:
    """By bytes where there are any, else by number."""
    if not progress.items_total:
        return f"{_words(progress)} ..."
    done, total = progress.items, progress.items_total
    if progress.bytes_total:
        done, total = progress.bytes, progress.bytes_total
    return f"{draw_bar(done, total)} {_words(progress)}"


def _words(progress: JobProgress) -> str:
    if not progress.items_total:
        return f"{progress.stage}, {progress.items:,}" if progress.items else progress.stage
    text = f"{progress.stage}, {progress.items:,} of {progress.items_total:,}"
    if progress.bytes_total:
        done, total = format_bytes(progress.bytes), format_bytes(progress.bytes_total)
        text += f", {done} of {total}"
    return text
