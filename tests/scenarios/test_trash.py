"""Hadoop's shell removes files into the trash, and the NameNode empties it."""

from __future__ import annotations

import getpass
import re
from pathlib import Path

import pytest
from tests.compatibility.shell import FsShell, why_not

from cairnfs.testing.cluster import Cluster

INTERVAL_MIN = 0.2  # twelve seconds
CHECKPOINT_MIN = 0.03

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_what_is_removed_can_be_had_back_for_a_while(tmp_path: Path) -> None:
    options = (
        *("--trash-interval", str(INTERVAL_MIN)),
        *("--trash-checkpoint-interval", str(CHECKPOINT_MIN)),
    )
    user = getpass.getuser()
    root = f"/user/{user}/.Trash"
    with (
        Cluster(tmp_path / "cluster", datanodes=1, namenode_options=options) as cluster,
        FsShell(cluster.uri, user, tmp_path) as shell,
    ):

        def names() -> list[str]:
            lines = shell.run("-ls", "-C", root).out.split()
            return [line.rpartition("/")[2] for line in lines]

        def is_in_the_trash() -> bool:
            """Whether it is listed.  Not so if `Current` is moved while it is walked through."""
            listed = shell.run("-ls", "-R", "-C", root).out
            return re.search(rf"{root}/\w+/dir/sub/file", listed) is not None

        assert shell.run("-mkdir", "-p", "/dir/sub").code == 0
        assert shell.run("-touchz", "/dir/sub/file", "/dir/other").code == 0
        removed = shell.run("-rm", "-r", "/dir/sub")
        assert removed.code == 0, removed.err  # the server's interval is enough: no conf here
        assert shell.run("-test", "-e", "/dir/sub").code == 1
        cluster.wait_until(is_in_the_trash, "what was removed is in the trash")

        # It is told apart from what is removed later, and can be had back.
        cluster.wait_until(lambda: bool(names()) and "Current" not in names(), "a checkpoint")
        (checkpoint,) = names()
        assert re.fullmatch(r"\d{12}(-\d+)?", checkpoint)
        assert shell.run("-mv", f"{root}/{checkpoint}/dir/sub", "/back").code == 0
        assert shell.run("-test", "-e", "/back/file").code == 0

        # And then it is gone, without anybody's doing.
        cluster.wait_until(lambda: not names(), "the checkpoint is deleted")

        # A user may make a checkpoint, or empty everything, at once.
        assert shell.run("-rm", "/dir/other").code == 0
        assert shell.run("-expunge").code == 0
        assert "Current" not in names()
        assert shell.run("-rm", "-r", "/back").code == 0
        assert shell.run("-expunge", "-immediate").code == 0
        assert names() == []
        assert shell.run("-rm", "-r", "-skipTrash", "/dir").code == 0
        assert names() == []
