"""The replayer agrees with the model on every trace, and finds what is wrong elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.traces import replay as command
from tests.traces.blockless import ModelAdapter
from tests.traces.diffs import contradiction, explain_difference
from tests.traces.generate import make_trace
from tests.traces.replay import Difference, replay
from tests.traces.trace import SNAPSHOTS, Entries, Listing, Trace, read_traces

from cairnfs.errors import HdfsError, IOException

TRACES = read_traces()


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: f"trace{trace.seed}")
def test_the_model_agrees_with_every_trace(trace: Trace) -> None:
    assert replay(ModelAdapter(), trace) is None


def test_traces_of_our_own_are_the_same_for_the_same_seed() -> None:
    assert make_trace(3, 40) == make_trace(3, 40)
    assert replay(ModelAdapter(), make_trace(3, 40)) is None


class ForgetsModes(ModelAdapter):
    def chmod(self, path: str, mode: int) -> None:
        self.status(path)


class OverwritesBlocks(ModelAdapter):
    """Truncates and appends as if no snapshot needed what was there."""

    def append(self, path: str, text: str) -> None:
        super().append(path, text)
        for part in self.blocks(path):
            self._data[part.id] = self._data[part.id][: part.length_bytes][::-1]


class DeletesTooMuch(ModelAdapter):
    """Deletes all snapshots of a directory with one of them."""

    def delete_snapshot(self, path: str, name: str) -> None:
        super().delete_snapshot(path, name)
        for other in self.snapshottable()[path]:
            super().delete_snapshot(path, other)


class DeletesNothing(ModelAdapter):
    def delete_snapshot(self, path: str, name: str) -> None:
        if name not in self.snapshottable().get(path, ()):
            raise IOException(name)


class MovesWhatHasSnapshots(ModelAdapter):
    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        try:
            super().rename(source, destination, overwrite)
        except HdfsError as error:
            if "has snapshots" not in str(error):
                raise


class ForgetsRenames(ModelAdapter):
    def diff(self, path: str, old: str, new: str) -> Entries:
        return {entry for entry in super().diff(path, old, new) if entry[0] != "R"}


class RollsBackTheWrongWay(ModelAdapter):
    def rollback(self, path: str, name: str) -> None:
        super().rollback(path, self.snapshottable()[path][-1])


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (ForgetsModes, "the live tree"),
        (OverwritesBlocks, ""),
        (DeletesTooMuch, ""),
        (DeletesNothing, "which is gone"),
        (MovesWhatHasSnapshots, "the result"),
        (ForgetsRenames, "the diff"),
        (RollsBackTheWrongWay, ""),
    ],
)
def test_what_is_wrong_is_found(wrong: type[ModelAdapter], what: str) -> None:
    found: Difference | None = None
    for trace in TRACES:
        try:
            found = replay(wrong(), trace)
        except HdfsError:  # a snapshot that should be there is not
            return
        if found is not None:
            break
    assert found is not None
    assert what in found.what
    assert f"trace {found.trace.seed}, operation {found.step.index}" in str(found)


def test_a_file_that_is_no_trace_is_refused_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"seed": 1, "ops": 1}\n{"op": "mkdir"}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl:2 is no line of a trace"):
        read_traces(file)
    monkeypatch.setattr("sys.argv", ["replay", str(file), "--through", "model"])
    assert command.main() == 2
    assert "bad.jsonl:2" in capsys.readouterr().err


def test_the_command_tells_how_it_went(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["replay", str(SNAPSHOTS), "--through", "model", "--seed", "4"])
    assert command.main() == 0
    assert "1 traces, 150 operations" in capsys.readouterr().out


# Reports of differences.

DIRECTORY = ["d", "755", 0, 0, ""]


def file(length: int = 1) -> list[Any]:
    return ["f", "644", 3, length, f"{length}"]


def tree(*directories: str, **files: list[Any]) -> Listing:
    listing: Listing = {"": DIRECTORY} | {f"/{path}": DIRECTORY for path in directories}
    return listing | {f"/{path.replace('__', '/')}": each for path, each in files.items()}


@pytest.mark.parametrize(
    ("report", "wrong"),
    [
        ({("R", "a", "b"), ("M", ""), ("M", "a/f"), ("-", "g")}, None),
        ({("-", "a"), ("+", "b"), ("M", ""), ("-", "g")}, None),
        ({("R", "a", "b"), ("M", ""), ("-", "g")}, "without an M"),
        ({("R", "a", "b"), ("M", "a/f"), ("M", "")}, "which is not there"),
        ({("-", "a"), ("M", ""), ("-", "g")}, "without a +"),
        ({("-", "a"), ("+", "b"), ("+", "c"), ("M", ""), ("-", "g")}, "were created"),
        ({("R", "a", "b"), ("R", "g", "b"), ("M", "a/f"), ("M", "")}, "are both"),
    ],
)
def test_a_report_has_to_lead_from_one_state_to_the_other(
    report: Entries, wrong: str | None
) -> None:
    before = tree("a", a__f=file(1), g=file())
    after = tree("b", b__f=file(2))
    found = contradiction(before, after, report)
    assert found is None if wrong is None else found is not None and wrong in found


def test_entries_are_compared_one_by_one() -> None:
    wanted: Entries = {("M", "a"), ("+", "b")}
    assert explain_difference(wanted, {("M", "")}, {("M", "a"), ("+", "b"), ("M", "")}) is None
    assert explain_difference(wanted, set(), {("M", "a"), ("-", "c")}) == (
        "missing [('+', 'b')], too much [('-', 'c')]"
    )
