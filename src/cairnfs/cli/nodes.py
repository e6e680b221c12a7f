"""`cairn namenode` and `cairn datanode`: the nodes' own entry points, with a default or two.

Their options are declared once, where `python -m cairnfs.namenode` and `python -m
cairnfs.datanode` read them; what is put in front here, an option given by hand overrides.
"""

from __future__ import annotations

from collections.abc import Sequence

from cairnfs.cli.home import home, namespace_file


def namenode(arguments: Sequence[str]) -> int:
    """Run a NameNode; without a store, on that of the local cluster."""
    from cairnfs.namenode.__main__ import main
    from cairnfs.namenode.opening import sqlite_url

    return main(["--store", sqlite_url(namespace_file(home())), *arguments])


def datanode(arguments: Sequence[str]) -> int:
    """Run a DataNode."""
    from cairnfs.datanode.__main__ import main

    return main(list(arguments))
