"""`cairn config`: shown settings are a file again; mistakes are lines, not traces."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cairnfs.cli.main import main
from cairnfs.options import OPTIONS


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRNFS_HOME", str(tmp_path / "home"))


def test_what_is_shown_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text("[namenode]\nport = 1234\nstore = 'postgresql://u:secret@h/d'\n")
    assert main(["config", "show", "--config", str(file), "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "port = 1234 " in shown
    assert f"# {file}:2" in shown
    assert "secret" not in shown
    values = tomllib.loads(shown)
    for option in OPTIONS:
        assert option.name in values[option.section]
        assert f"# {option.help}" in shown
    shown_file = tmp_path / "shown.toml"
    shown_file.write_text(shown)
    assert main(["config", "check", str(shown_file)]) == 0


def test_the_file_of_the_local_cluster_is_the_usual_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["config", "show"]) == 0
    assert "# no file is read" in capsys.readouterr().out
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cairn.toml").write_text("[cluster]\ndatanodes = 5\n")
    monkeypatch.setenv("CAIRN_TRASH_INTERVAL_MIN", "60")
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr().out
    assert "datanodes = 5" in shown
    assert "interval_min = 60.0" in shown
    assert "# CAIRN_TRASH_INTERVAL_MIN" in shown


def test_mistakes_are_told_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text("[namenode]\nprot = 1\n[audit]\nfiles_max = 0\n")
    assert main(["config", "check", str(file)]) == 1
    error = capsys.readouterr().err
    assert f"cairn: {file}:2: namenode.prot is not a setting; did you mean" in error
    assert f"{file}:4: audit.files_max is 0, and must be 1 or more" in error


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[namenode]\nexpiry_s = 1\nheartbeat_interval_s = 2\n", "must be longer than"),
        ("[datanode]\nnamenodes = ['h:x']\ndata = ['/a']\n", "'h:x' is not a host and a port"),
        ("[datanode]\nnamenodes = ['h']\ndata = ['[TAPE]/a']\n", "no storage type 'TAPE'"),
    ],
)
def test_what_settings_say_of_each_other_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text(text)
    assert main(["config", "check", str(file)]) == 1
    error = capsys.readouterr().err
    assert complaint in error
    assert error.startswith(f"cairn: {file}: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("node", ["namenode", "datanode"])
def test_nodes_refuse_to_start_with_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], node: str
) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text("[namenode]\nprot = 1\n")
    try:
        code = main([node, "--config", str(file)])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code != 0
    error = capsys.readouterr().err
    assert f"{file}:2: namenode.prot is not a setting" in error
    assert "Traceback" not in error


def test_a_cluster_refuses_to_start_with_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text("[cluster]\ndatanodes = 0\n")
    directory = tmp_path / "cluster"
    assert main(["cluster", "up", "--config", str(file), "--directory", str(directory)]) == 1
    assert "cluster.datanodes is 0, and must be from 1 to 100" in capsys.readouterr().err
    assert not directory.exists()
