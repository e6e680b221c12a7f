"""What `cairn completion` prints completes, in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cairnfs.cli.completion import HINTS, make_script
from cairnfs.cli.main import main
from cairnfs.client.filesystem import connect
from cairnfs.testing.cluster import Cluster

SECONDS = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("completion") / "cluster"
    with Cluster(directory, datanodes=1) as cluster:
        with connect(cluster.uri) as fs:
            fs.mkdirs("/warehouse/sales")
            fs.create("/warehouse/summary").close()
        yield cluster


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    """With a `cairn` on the path, wherever this is run."""
    program = tmp_path / "cairn"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cairnfs.cli "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "CAIRN_FS": cluster.uri, "HOME": str(tmp_path)}


def run(environment: dict[str, str], *command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def complete_in_bash(environment: dict[str, str], line: str) -> list[str]:
    script = make_script("bash") + (
        "\ncompopt() { :; }\n"  # which wants a completion that readline has begun
        'COMP_LINE=$1 COMP_POINT=${#1}\n_cairn\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    return run(environment, "bash", "-c", script, "bash", line)


def test_bash_completes_commands_verbs_and_options(environment: dict[str, str]) -> None:
    assert complete_in_bash(environment, "cairn cl") == ["cluster"]
    assert complete_in_bash(environment, "cairn fs mk") == ["mkdir"]
    assert complete_in_bash(environment, "cairn fs -mk") == ["-mkdir"]
    assert complete_in_bash(environment, "cairn fs rm -s") == ["-skipTrash", "-safely"]
    assert complete_in_bash(environment, "cairn admin saf") == ["safemode"]
    assert complete_in_bash(environment, "cairn fs help touch") == ["touch", "touchz"]
    assert complete_in_bash(environment, "cairn snapshot di") == ["disallow", "diff"]


def test_bash_completes_paths_on_the_cluster(
    environment: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    assert complete_in_bash(environment, "cairn fs ls /ware") == ["/warehouse/"]
    both = ["/warehouse/sales/", "/warehouse/summary"]
    assert complete_in_bash(environment, "cairn fs -cat /warehouse/") == both
    port = cluster.uri.rpartition(":")[2]
    after_colon = complete_in_bash(environment, f"cairn fs ls {cluster.uri}/warehouse/su")
    assert after_colon == [f"{port}/warehouse/summary"]
    (tmp_path / "local-file").touch()
    assert complete_in_bash(environment, f"cairn fs put {tmp_path}/loc") == [
        f"{tmp_path}/local-file"
    ]
    assert complete_in_bash(environment, "cairn fs put x /warehouse/su") == ["/warehouse/summary"]
    assert complete_in_bash(environment, "cairn snapshot list /ware") == ["/warehouse/"]
    nobody = "cairn fs --fs hdfs://127.0.0.1:1 ls /ware"
    assert complete_in_bash(environment, nobody) == []


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "cairn.fish"
    script.write_text(make_script("fish"))

    def complete(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            env=environment,
            timeout=SECONDS,
        )
        assert done.stderr == ""
        return [shown.split("\t")[0] for shown in done.stdout.splitlines()]

    assert complete("cairn cl") == ["cluster"]
    assert "mkdir" in complete("cairn fs mk")
    assert "-skipTrash" in complete("cairn fs rm -s")
    assert complete("cairn fs ls /ware") == ["/warehouse/"]
    assert complete("cairn snapshot dis") == ["disallow"]
    assert complete("cairn snapshot list /ware") == ["/warehouse/"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_reads_its_script(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "cairn.zsh"
    script.write_text(make_script("zsh"))
    run(environment, "zsh", "-n", str(script))
    loaded = f"autoload -U compinit; compinit -u -D; source {script}; echo $_comps[cairn]"
    assert run(environment, "zsh", "-f", "-c", loaded) == ["_cairn"]
    shown = f"compdef() {{ :; }}; source {script}; _cairn_options rm"
    assert "-skipTrash" in run(environment, "zsh", "-f", "-c", shown)


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in HINTS:
        assert main(["completion", shell]) == 0
        assert capsys.readouterr().out == make_script(shell)
        assert "@" not in make_script(shell).replace("[@]", "").replace("$@", "")
    assert main(["completion", "tcsh"]) == 1
    assert main(["completion", "--help"]) == 0
    assert "~/.bashrc" in capsys.readouterr().out
