"""Hadoop's own shell leaves in our audit log what it leaves in that of HDFS, line for line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compatibility.shell import why_not
from tests.observe.record_audit import GOLDEN, run_on

from cairnfs.testing.cluster import Cluster


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_audit_log_says_what_that_of_hdfs_says(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    options = ("--audit-file", str(log))
    with Cluster(tmp_path / "cluster", datanodes=1, namenode_options=options) as cluster:
        assert run_on(cluster.uri, log) == GOLDEN.read_text()
