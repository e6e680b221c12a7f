"""What commands write: text, bytes and JSON, with colours only for people."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from cairnfs.sizes import format_bytes as format_bytes

BLUE, CYAN, BOLD, GREEN, RED, YELLOW = "34;1", "36", "1", "32", "31;1", "33"


class Output:
    """Standard output as bytes, since names and files need not be text."""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdout.buffer
        self.has_colours = is_terminal(1) and stream is None and "NO_COLOR" not in os.environ

    def print(self, text: object = "", *, end: str = "\n") -> None:
        self._stream.write(f"{text}{end}".encode(errors="surrogateescape"))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._stream.write(data)

    def print_json(self, value: object) -> None:
        """One JSON document on one line."""
        import json

        self.print(json.dumps(value, ensure_ascii=False))

    def print_table(self, rows: list[list[str]], right: frozenset[int] = frozenset()) -> None:
        """Columns of text, the first row above them; `right` are those of numbers."""
        first, *more = format_table(rows, right)
        self.print(self.paint(first, BOLD))
        for line in more:
            self.print(line)

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, if somebody sees it."""
        return f"\033[{colour}m{text}\033[0m" if self.has_colours else text

    def flush(self) -> None:
        self._stream.flush()


def is_terminal(fd: int) -> bool:
    """Whether a person is looking."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def format_table(
    rows: list[list[str]], right: frozenset[int] = frozenset(), gap: str = "  "
) -> list[str]:
    """Lines with columns as wide as their widest cell, but for the last."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        gap.join(
            cell.rjust(width) if at in right else cell if at == last else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
