"""Which modules `make wheel` compiles, and what it does otherwise then."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

from cairnfs.build import is_compiled
from cairnfs.errors import IllegalArgumentException

ROOT = Path(__file__).parents[2]

WRONG_TYPE = (IllegalArgumentException, TypeError) if is_compiled() else IllegalArgumentException
"""What a value of the wrong type is answered with: compiled code looks at it first."""


@cache
def compiled_modules() -> frozenset[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    return frozenset(
        ".".join(filter(None, ("cairnfs", package, module)))
        for package, modules in hook["modules"].items()
        for module in modules
    )


def source_of(module: str) -> Path:
    return Path(ROOT, "src", *module.split(".")).with_suffix(".py")


@cache
def constants_of(module: str) -> frozenset[str]:
    """The names that are Final: compiled code has their values in it."""
    return frozenset(
        node.target.id
        for node in ast.parse(source_of(module).read_text()).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and ast.unparse(node.annotation).startswith("Final")
    )
