"""Hadoop's own shell sets, shows and removes attributes that are inherited, as any others."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from tests.compatibility.shell import FsShell, why_not

import cairnfs
from cairnfs.testing.cluster import Cluster


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_fsshell_sees_what_is_inherited(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", datanodes=1) as cluster,
        cairnfs.connect(cluster.uri) as fs,
        FsShell(cluster.uri, getpass.getuser(), tmp_path) as shell,
    ):
        fs.mkdirs("/a/b")
        fs.declare_xattr("user.tier", "follow-path")

        def run(*arguments: str) -> str:
            outcome = shell.run(*arguments)
            assert outcome.code == 0, outcome
            return outcome.out

        run("-setfattr", "-n", "user.tier", "-v", "hot", "/a/b")
        run("-setfattr", "-n", "user.tier", "-v", "cold", "/a")
        assert run("-getfattr", "-d", "/a/b") == '# file: /a/b\nuser.tier="cold"\n'
        assert run("-getfattr", "-n", "user.tier", "/a/b") == '# file: /a/b\nuser.tier="cold"\n'
        run("-setfattr", "-x", "user.tier", "/a")
        assert run("-getfattr", "-d", "/a/b") == "# file: /a/b\n"
        run("-setfattr", "-n", "user.tier", "-v", "warm", "/a")
        run("-mv", "/a/b", "/b")
        assert run("-getfattr", "-d", "/b") == "# file: /b\n"
