"""What is imported when: commands start fast, and servers do without the client."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import cairnfs", ["cairnfs.client", "cairnfs.wire", "google.protobuf", "msgspec"]),
        (
            "import cairnfs; cairnfs.connect('hdfs://nowhere')",
            ["cairnfs.client.streams", "cairnfs.client.copying", "asyncio", "fsspec"],
        ),
        ("import cairnfs.namenode.server", ["cairnfs.client"]),
    ],
)
def test_what_is_not_needed_is_not_imported(statement: str, absent: list[str]) -> None:
    script = f"import sys\n{statement}\nassert not sys.modules.keys() & set({absent!r})"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_names_what_it_has() -> None:
    import cairnfs

    assert cairnfs.FileSystem.__name__ == "FileSystem"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cairnfs.nothing  # type: ignore[attr-defined]
