"""What `make wheel` says when it cannot make one; and nothing is left of what it has begun."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.compiled.making import make_wheel, needs_a_compiler
from tests.compiled.modules import ROOT

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "cairnfs"
version = "1"

[tool.hatch.build.targets.wheel]
packages = ["src/cairnfs"]
{more}

[tool.hatch.build.targets.wheel.hooks.custom]
path = "compiled_wheel.py"

[tool.hatch.build.targets.wheel.hooks.custom.modules]
"" = ["double"]
"""
RIGHT = "def double(number: int) -> int:\n    return 2 * number\n"
WRONG = "def double(number: int) -> int:\n    return str(number)\n"


def complaint(tmp_path: Path, source: str, more: str = "", **environment: str) -> str:
    """What is said when a wheel of one module is asked for, and cannot be made."""
    project, temporary = tmp_path / "project", tmp_path / "temporary"
    package = project / "src" / "cairnfs"
    package.mkdir(parents=True)
    temporary.mkdir()
    shutil.copy(ROOT / "scripts" / "compiled_wheel.py", project)
    (project / "pyproject.toml").write_text(PROJECT.format(more=more))
    (package / "__init__.py").touch()
    (package / "double.py").write_text(source)
    with pytest.raises(pytest.fail.Exception) as failed:
        make_wheel(project, tmp_path, TMPDIR=str(temporary), **environment)
    assert not list(temporary.glob("cairnfs-*"))
    return str(failed.value)


def test_wrong_types_are_not_blamed_on_the_compiler(tmp_path: Path) -> None:
    said = complaint(tmp_path, WRONG)
    assert "mypyc refuses it" in said
    assert "double.py:2: error: Incompatible return value type" in said
    assert "C compiler" not in said


def test_a_compiler_that_is_missing_is_named(tmp_path: Path) -> None:
    said = complaint(tmp_path, RIGHT, CC="no-such-compiler")
    assert "it takes a C compiler and Python's headers" in said
    assert "no-such-compiler" in said


@needs_a_compiler
def test_nothing_is_left_if_there_is_something_that_can_not_be_packed(tmp_path: Path) -> None:
    said = complaint(tmp_path, RIGHT, 'force-include = {"no-such-file" = "x"}')
    assert "no-such-file" in said
    assert "cannot be compiled" not in said
