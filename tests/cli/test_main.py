"""The entry point: help, versions, mistakes; and what `cairn` costs to start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cairnfs.build import is_compiled
from cairnfs.cli.main import COMMANDS, main

SERVERS = ("apsw", "asyncpg", "cairnfs.namenode", "pyspark")
HEAVY = ("asyncio", "google.protobuf", "msgspec", *SERVERS)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    """0.3 seconds is the bound; most of what we have would take more."""
    script = f"""if 1:
        import sys
        from cairnfs.cli.main import main
        main(["--help"])
        print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


def test_a_version_says_whether_it_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    build = "compiled" if is_compiled() else "not compiled"
    for option in ("-V", "--version"):
        assert main([option]) == 0
        shown = capsys.readouterr().out
        assert re.fullmatch(rf"cairn [0-9.]+ \({build}\)\n", shown), shown


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clutser"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["admin", "snapshot", "xattr", "policy", "job"])
def test_who_names_no_action_is_shown_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert f"usage: cairn {name} " in shown
    assert shown.count("\n    ") > 3  # a line for each


def test_what_an_action_lacks_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["snapshot", "rollback"])
    assert "required: PATH, NAME" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["pyarrow", "pyspark"])
def test_a_job_without_spark_says_how_to_get_it(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["job", "usage", "/data"]) == 1
    assert capsys.readouterr().err == (
        "cairn: jobs run on Spark, which is not installed: pip install 'cairnfs[spark]'\n"
    )


def test_options_are_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ["cluster", "up", "--datanode", "4"], ["datanode", "--hostnam", "a"]:
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        assert f"unrecognized arguments: {words[-2]}" in capsys.readouterr().err


def test_verbs_are_explained_and_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fs", "ls", "--help"]) == 0
    assert capsys.readouterr().out.startswith("-ls [")
    assert main(["fs", "-lss", "/"]) == 255
    assert "did you mean -ls?" in capsys.readouterr().err


def test_nodes_have_the_options_of_their_own_entry_points(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in ("namenode", "datanode"):
        with pytest.raises(SystemExit) as stopped:
            main([node, "--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr().out
        assert f"usage: cairn {node} " in shown
        assert "--port" in shown
        assert "--scan-rate BYTES_PER_SECOND" in shown or node == "namenode"
    monkeypatch.setenv("CAIRNFS_HOME", str(tmp_path))
    assert main(["namenode", "--port", "0", "--http-port", "0"]) == 1
    assert f"{tmp_path}/namenode/namespace.db does not exist" in capsys.readouterr().err


def test_a_listing_imports_nothing_that_it_does_not_need() -> None:
    """The bound is 0.3 seconds here, too, and most of it goes to protobuf and msgspec."""
    unneeded = ("argparse", "asyncio", "cairnfs.cli.fs.copying", "cairnfs.datanode", *SERVERS)
    script = f"""if 1:
        import sys
        from cairnfs.cli.main import main
        assert main(["fs", "--fs", "hdfs://127.0.0.1:1", "-ls", "/"]) == 1
        print([name for name in {unneeded} if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert "nobody answers at hdfs://127.0.0.1:1" in done.stderr
