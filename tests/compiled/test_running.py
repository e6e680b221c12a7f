"""What is compiled does what the sources do: parts of the suite are run on a wheel made for it.

`make test-compiled` runs all of the NameNode's.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tests.compiled.making import make_wheel, needs_a_compiler, run
from tests.compiled.modules import ROOT

# A minute: bytes, a store, and whole NameNodes, asked at random and beside the model.
SUITE = (
    "tests/compiled/test_replacing.py",
    "tests/wire",
    "tests/store/test_conformance.py",
    "tests/store/test_sqlite_backlog.py",
    "tests/store/test_sqlite_journal.py",
    "tests/namesystem/test_declarations.py",
    "tests/namesystem/test_directories.py",
    "tests/namesystem/test_paths.py",
    "tests/namesystem/test_wrong_values.py",
    "tests/namenode/test_fuzz.py",
    "tests/namenode/test_server.py",
    "tests/model/test_model.py",
)


@needs_a_compiler
@pytest.mark.interpreted
@pytest.mark.timeout(1200)  # two to three minutes, if there is nothing else to do
def test_a_part_of_the_suite_on_what_is_compiled(tmp_path: Path) -> None:
    make_wheel(ROOT, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    compiled = tmp_path / "compiled"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(compiled)
    version = run("-m", "cairnfs.cli", "--version", PYTHONPATH=str(compiled))
    assert version.endswith(" (compiled)\n")
    options = ("-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests"))
    run("-m", "pytest", *options, "-k", "not postgres", *SUITE, PYTHONPATH=str(compiled))
