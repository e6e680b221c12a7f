"""What tells whoever looks at the terminal how far something is: a bar, or how long it takes."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import Self

from cairnfs.cli.output import format_bytes, is_terminal

PATIENCE_S = 0.5  # what is done sooner needs no bar
INTERVAL_S = 0.1
WIDTH = 24


class Waiting:
    """While one long call is under way, says so, and since when; silent as `Progress` is.

    with Waiting("rolling back /data"):
        ...
    """

    def __init__(self, what: str) -> None:
        self.what = what  # may change while it is under way
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        if is_terminal(2):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _tell(self) -> None:
        began_s = time.monotonic()
        has_drawn = False
        while not self._is_over.wait(PATIENCE_S):
            has_drawn = True
            draw(f"{self.what}: {time.monotonic() - began_s:.0f} s")
        if has_drawn:
            wipe()


class Progress:
    """Bytes copied, of how many; silent unless standard error is a terminal."""

    def __init__(self) -> None:
        self.is_shown = is_terminal(2)
        self._lock = threading.Lock()
        self._began_s = time.monotonic()
        self._drawn_s = self._began_s + PATIENCE_S - INTERVAL_S
        self._done = self._total = 0
        self._is_total_known = False
        self._name = ""
        self._has_drawn = False

    def expect(self, total: int) -> None:
        """All files together have so many bytes."""
        self._total = total
        self._is_total_known = True

    def begin(self, name: str, length: int) -> None:
        """Another file of so many bytes is to be copied."""
        with self._lock:
            self._name = name
            if not self._is_total_known:
                self._total += length

    def advance(self, count: int) -> None:
        """So many bytes more are done."""
        with self._lock:
            self._done += count
            now_s = time.monotonic()
            if self.is_shown and now_s - self._drawn_s >= INTERVAL_S:
                self._drawn_s = now_s
                self._draw(now_s - self._began_s)

    def clear(self) -> None:
        """Leave the line as if nothing had been there."""
        with self._lock:
            if self._has_drawn:
                wipe()
                self._has_drawn = False

    def _draw(self, elapsed_s: float) -> None:
        rate = self._done / elapsed_s
        left_s = max(0, self._total - self._done) / rate if rate else 0
        draw(
            f"{draw_bar(self._done, self._total)} {format_bytes(self._done)},"
            f" {format_bytes(rate)}/s, {left_s:.0f} s left: {self._name}"
        )
        self._has_drawn = True


def draw_bar(done: int, total: int) -> str:
    """How much of it is done, as people see it at a glance."""
    share = min(1.0, done / total) if total else 0.0
    filled = round(share * WIDTH)
    return f"{share:4.0%} [{'#' * filled}{'.' * (WIDTH - filled)}]"


def draw(text: str) -> None:
    """In place of what the line says, as far as there is room."""
    sys.stderr.write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\033[K")
    sys.stderr.flush()


def wipe() -> None:
    """Leave the line as if nothing had been there."""
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()
