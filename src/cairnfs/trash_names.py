"""How the trash is laid out: what is removed goes to .Trash/Current, which becomes a checkpoint.

A checkpoint is a directory beside it that is named for the moment (yyMMddHHmmss in local time), as
Hadoop's TrashPolicyDefault has it: shells and NameNodes make and delete each other's.
"""

from __future__ import annotations

import re
import time

TRASH = ".Trash"
CURRENT = "Current"

_SAME_SECOND_MAX = 1000
_CHECKPOINT = re.compile(r"(\d{10}|\d{12})(?:-\d+)?", re.ASCII)


def checkpoint_names(moment_ms: int) -> list[str]:
    """What a checkpoint of this moment may be called: the first name that is not taken."""
    name = time.strftime("%y%m%d%H%M%S", time.localtime(moment_ms // 1000))
    return [name, *(f"{name}-{number}" for number in range(1, _SAME_SECOND_MAX))]


def parse_checkpoint(name: str) -> int | None:
    """When a checkpoint was made, in milliseconds; None if it is something else."""
    match = _CHECKPOINT.fullmatch(name)
    if match is None:
        return None
    pattern = "%y%m%d%H%M%S" if len(match[1]) == 12 else "%y%m%d%H%M"  # the latter of Hadoop 1
    try:
        return int(time.mktime(time.strptime(match[1], pattern))) * 1000
    except ValueError:
        return None
