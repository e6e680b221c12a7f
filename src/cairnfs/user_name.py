"""Who runs this process, as the system calls them."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """The user's name; the number of one who has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter since Python 3.13
        return str(os.getuid())
