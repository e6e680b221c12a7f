"""Permissions as letters, as Hadoop writes them."""

from __future__ import annotations

STICKY_BIT = 0o1000
RWX = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")


def format_mode(mode: int) -> str:
    """Nine letters, as FsPermission writes them: "rwxr-x--T"."""
    text = RWX[mode >> 6 & 7] + RWX[mode >> 3 & 7] + RWX[mode & 7]
    if mode & STICKY_BIT:
        text = text[:-1] + ("t" if mode & 1 else "T")
    return text
