"""Sizes and times as Hadoop's shell writes them."""

from __future__ import annotations

import time

from cairnfs.client.records import FileStatus

_PREFIXES = "KMGTPE"


def format_size(count: int, is_human: bool) -> str:
    """A number of bytes; for people, 586.0 K or, where nothing is left over, 2 G."""
    if not is_human:
        return str(count)
    if abs(count) < 1024:
        return str(count)
    sign, count = ("-" if count < 0 else ""), abs(count)
    power = (count.bit_length() - 1) // 10
    unit = 1024**power
    if count % unit == 0:
        return f"{sign}{count // unit} {_PREFIXES[power - 1]}"
    tenths = (20 * count + unit) // (2 * unit)  # halves are rounded up
    if tenths >= 10240:
        power, tenths = power + 1, 10
    return f"{sign}{tenths // 10}.{tenths % 10} {_PREFIXES[power - 1]}"


def format_minute(time_ms: int) -> str:
    """2026-11-15 16:04, where we are."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_ms / 1000))


def format_second_utc(time_ms: int) -> str:
    """2026-11-15 16:04:05 in Greenwich."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time_ms / 1000))


def status_as_json(path: str, status: FileStatus) -> dict[str, object]:
    """What is known of a file, for programs."""
    return {
        "path": path,
        "type": status.type.value,
        "length_bytes": status.length_bytes,
        "mode": f"{status.mode:04o}",
        "owner": status.owner,
        "group": status.group,
        "mtime_ms": status.mtime_ms,
        "atime_ms": status.atime_ms,
        "replication": status.replication,
        "block_size_bytes": status.block_size_bytes,
        "has_acl": status.has_acl,
        "target": status.target,
    }
