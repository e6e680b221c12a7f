"""Hatch's hook for a wheel whose hot modules are compiled by mypyc: `make wheel`.

They are compiled in a copy of the sources, so that the tree which is worked on keeps none of it.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SETUP = """
import sys
import traceback

from mypyc.build import mypycify
from setuptools import setup

try:
    extensions = mypycify({arguments!r}, opt_level="3", debug_level="0")
except SystemExit as refused:
    print(refused.code)
    sys.exit({refused})
except Exception:
    traceback.print_exc()
    sys.exit({refused})
setup(name="cairnfs", packages=[], ext_modules=extensions)
"""
REFUSED_BY_MYPYC = 3  # the exit code, before anything is there for a C compiler


class CompiledWheel(BuildHookInterface):
    """Configured by `modules`: of each package below `src/cairnfs`, those that are compiled."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="cairnfs-compiled-"))
        # Whatever fails: `finalize` is only called when all is packed.
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self._add_extensions(build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._folder)

    def _add_extensions(self, build_data: dict[str, Any]) -> None:
        shutil.copy(Path(self.root, "pyproject.toml"), self._folder)  # the settings of mypy
        sources = self._folder / "src"
        shutil.copytree(
            Path(self.root, "src"), sources, ignore=shutil.ignore_patterns("__pycache__")
        )
        compiled = self._folder / "compiled"
        self._compile(sources, compiled)
        for extension in compiled.rglob("*.so"):
            build_data["force_include"][str(extension)] = str(extension.relative_to(compiled))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def _compile(self, sources: Path, compiled: Path) -> None:
        files = [
            str(Path("cairnfs", package, f"{module}.py"))
            for package, modules in self.config["modules"].items()
            for module in modules
        ]
        settings = str(self._folder / "pyproject.toml")
        arguments = ["--config-file", settings, *files]
        setup = SETUP.format(arguments=arguments, refused=REFUSED_BY_MYPYC)
        Path(sources, "setup.py").write_text(setup)
        self.app.display_info(f"compiling {len(files)} modules; this takes a minute or two")
        done = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(compiled)],
            cwd=sources,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode == REFUSED_BY_MYPYC:
            raise SystemExit(f"cairnfs cannot be compiled; mypyc refuses it:\n{done.stdout}")
        if done.returncode != 0:
            raise SystemExit(
                "cairnfs cannot be compiled; it takes a C compiler and Python's headers (Debian:"
                f" apt-get install gcc python3-dev):\n{done.stdout}"
            )
