"""Sizes, as people read them."""

from __future__ import annotations


def format_bytes(count: float) -> str:
    """As people read it: 1.5 GB is 1,500,000,000 bytes."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
