"""Which build of CairnFS this is: its sources as they are, or compiled by `make wheel`."""

from __future__ import annotations

from cairnfs import clock


def is_compiled() -> bool:
    """Whether this is a wheel with the NameNode's modules compiled, of which `clock` is one."""
    return not str(clock.__file__).endswith(".py")
