"""Who knows whom: what a DataNode shows brings nothing of the NameNode with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOWER_HALF = ["figures", "prometheus", "process", "jmx", "conf", "logs", "audit", "audit_file"]


@pytest.mark.parametrize("module", LOWER_HALF)
def test_the_lower_half_knows_no_node(module: str) -> None:
    script = (
        f"import sys, cairnfs.observe.{module}\n"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('cairnfs.')})"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    assert {"namenode", "namesystem", "blocks", "store", "datanode"}.isdisjoint(run.stdout.split())
