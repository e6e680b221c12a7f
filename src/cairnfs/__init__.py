"""CairnFS: a distributed file system that HDFS programs use unchanged.

`cairnfs.connect("hdfs://namenode:8020")` is the way in for Python programs; it is imported
when it is first used, so that the servers need not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem, connect

__all__ = ["FileSystem", "connect"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from cairnfs.client import filesystem

        return getattr(filesystem, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
