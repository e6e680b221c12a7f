"""What the documents promise: example and demo run, links lead somewhere, the map is complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]


PACKAGE = ROOT / "src" / "cairnfs"
MODULES = [
    path
    for path in PACKAGE.rglob("*.py")
    if not path.name.startswith("__") and not path.stem.endswith("_pb2")
]


def run(*arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error", *arguments], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (example,) = [each for each in examples if "sqlite:///tmp/cairn/namespace.db" in each]
    script = tmp_path / "example.py"
    script.write_text(example.replace("/tmp/cairn", str(tmp_path)))
    output = run(str(script))
    assert "[b'2026']" in output
    assert "length_bytes=1000000" in output


def test_the_demo_runs_and_shows_a_conflict_being_resolved() -> None:
    output = run("-m", "cairnfs.demo_namespace")
    conflicts = re.search(r"(\d+) calls were thrown out by validation", output)
    assert conflicts is not None
    assert int(conflicts[1]) >= 1
    assert "Traceback" not in output


def test_make_says_that_it_goes_on_with_the_python_it_has(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    said = {}
    for python in (sys.executable, "/nowhere/python"):
        command = ["make", "-f", ROOT / "Makefile", f"PYTHON={python}", "help"]
        said[python] = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "PYTHON is ignored" not in said[sys.executable]
    assert "PYTHON is ignored: .venv is there; `make clean` first\n" in said["/nowhere/python"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} points to {target}"


def test_the_map_names_every_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    the_map, prose = text.split("```")[1:3]
    # A package begins with its name and a slash; its modules follow until the next one.
    _, *parts = re.split(r"^[ |]+(\w+)/ ", the_map, flags=re.MULTILINE)
    names = {
        package: re.findall(r"\w+", modules)
        for package, modules in zip(parts[::2], parts[1::2], strict=True)
    }
    names[PACKAGE.name] = re.findall(r"`(\w+)`", prose)
    missing = [path for path in MODULES if path.stem not in names.get(path.parent.name, ())]
    assert not missing, f"not in ARCHITECTURE.md: {[str(p.relative_to(PACKAGE)) for p in missing]}"
