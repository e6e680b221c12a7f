"""`cairn namenode` and `cairn datanode`: the nodes' own entry points, with a default or two.

Their options are declared once, in `cairnfs.options`; what is put in front here, a file, a
variable or an option given by hand overrides.
"""

from __future__ import annotations

from collections.abc import Sequence

from cairnfs.cli.home import config_file, home, namespace_file


def namenode(arguments: Sequence[str]) -> int:
    """Run a NameNode; without a store, on that of the local cluster."""
    from cairnfs.namenode.__main__ import main
    from cairnfs.namenode.opening import sqlite_url

    return main(
        [*_settings(), *arguments],
        program="cairn namenode",
        default_store=sqlite_url(namespace_file(home())),
    )


def datanode(arguments: Sequence[str]) -> int:
    """Run a DataNode."""
    from cairnfs.datanode.__main__ import main

    return main([*_settings(), *arguments], program="cairn datanode")


def _settings() -> list[str]:
    path = config_file()
    return [] if path is None else ["--config", str(path)]
