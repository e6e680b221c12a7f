"""`cairn cluster`, with real processes on free ports."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from cairnfs.cli.local_cluster import LocalCluster, Node
from cairnfs.cli.main import main
from cairnfs.cli.ports import HOST, choose_port
from cairnfs.client.filesystem import connect
from cairnfs.errors import IOException


class Cairn:
    """The program, on a cluster of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.base_port = random.randrange(21_000, 21_900, 30)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run `cairn cluster`; what it said, on both streams."""
        command = [sys.executable, "-m", "cairnfs.cli", "cluster", *arguments]
        done = subprocess.run(
            [*command, "--directory", str(self.directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout

    def up(self, *arguments: str, code: int = 0) -> str:
        return self.run("up", "--base-port", str(self.base_port), *arguments, code=code)

    def refused(self, *arguments: str) -> str:
        """The one line that says why `up` does not do it."""
        return self.up(*arguments, code=1).splitlines()[-1]

    def nodes(self) -> dict[str, Node]:
        """What `status` shows, by name."""
        return {node.name: node for node in LocalCluster(self.directory).status().nodes}

    def states(self) -> list[str]:
        return [node.state for node in self.nodes().values()]

    def pids(self) -> list[int | None]:
        return [node.pid for node in self.nodes().values()]

    def kill(self, name: str) -> None:
        pid = self.nodes()[name].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        deadline_s = time.monotonic() + 10
        while self.nodes()[name].pid is not None:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


@pytest.fixture
def cairn(tmp_path: Path) -> Iterator[Cairn]:
    cairn = Cairn(tmp_path / "cluster")
    yield cairn
    if (cairn.directory / "cluster.json").exists():
        LocalCluster(cairn.directory).down()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Some other program's port."""
    with socket.create_server((HOST, choose_port(21_900, ()))) as server:
        yield server


def mkdirs(cairn: Cairn, path: str) -> None:
    with connect(LocalCluster(cairn.directory).uri) as fs:
        fs.mkdirs(path)


def names(cairn: Cairn) -> list[str]:
    with connect(LocalCluster(cairn.directory).uri) as fs:
        return [status.name for status in fs.list_status("/")]


def test_a_cluster_comes_up_says_how_to_use_it_goes_down_and_resumes(cairn: Cairn) -> None:
    said = cairn.up()
    uri = LocalCluster(cairn.directory).uri
    assert f"CairnFS is up: {uri}  (3 DataNodes, " in said
    assert "-ls /" in said
    assert ("  first " in said) == (shutil.which("cairn") is None)
    assert "3 of 3 DataNodes have registered" in said
    assert uri in (cairn.directory / "conf" / "core-site.xml").read_text()
    assert cairn.states() == 4 * ["running"]
    before = cairn.nodes()
    with connect(uri) as fs:
        assert fs.get_file_status("/tmp").mode == 0o1777
        assert fs.get_file_status(fs.home_directory).owner == fs.user

    mkdirs(cairn, "/kept")
    assert "up already" in cairn.run("up")
    assert cairn.pids() == [node.pid for node in before.values()]

    assert "namenode stopped" in cairn.run("down")
    assert cairn.states() == 4 * ["stopped"]
    assert "nothing runs" in cairn.run("down")

    cairn.run("up")
    assert [n.address for n in cairn.nodes().values()] == [n.address for n in before.values()]
    assert names(cairn) == ["kept", "tmp", "user"]


def test_status_is_for_people_and_for_programs(cairn: Cairn) -> None:
    cairn.up("--datanodes", "1")
    table = cairn.run("status").splitlines()
    assert table[0].split() == [
        "ROLE",
        "ADDRESS",
        "HTTP",
        "PID",
        "STATE",
        "USED",
        "CAPACITY",
        "LOG",
    ]
    assert [line.split()[0] for line in table[1:]] == ["namenode", "datanode-1"]
    shown: dict[str, Any] = json.loads(cairn.run("status", "--json"))
    assert shown["up"]
    namenode, datanode = shown["nodes"]
    assert namenode["address"] == shown["uri"].removeprefix("hdfs://")
    with urlopen(f"http://{namenode['http_address']}/") as page:
        assert "/webhdfs/v1" in page.read().decode()
    fs = connect(f"hdfs://{namenode['http_address']}")
    with fs, pytest.raises(IOException, match="an HTTP port"):
        fs.exists("/")
    assert namenode["http_address"] == LocalCluster(cairn.directory).http_uri.removeprefix(
        "http://"
    )
    assert datanode["alive"]
    assert datanode["capacity_bytes"] > 0
    cairn.kill("namenode")
    assert "`cairn cluster up --directory" in cairn.run("status", code=1)


def test_what_died_is_shown_and_brought_back(cairn: Cairn) -> None:
    cairn.up("--datanodes", "2")
    mkdirs(cairn, "/kept")
    namenode, first, second = cairn.pids()

    cairn.kill("datanode-2")
    assert cairn.states() == ["running", "running", "died"]
    assert "datanode-2 had died" in cairn.run("up")
    assert cairn.states() == 3 * ["running"]
    assert cairn.pids()[:2] == [namenode, first]
    assert cairn.pids()[2] != second

    cairn.kill("namenode")
    assert cairn.states() == ["died", "silent", "silent"]
    cairn.run("up")
    assert cairn.states() == 3 * ["running"]
    assert cairn.pids()[1] == first
    assert names(cairn) == ["kept", "tmp", "user"]


def test_a_cluster_grows_but_does_not_shrink(cairn: Cairn) -> None:
    cairn.up("--datanodes", "1")
    assert "2 of 2 DataNodes" in cairn.up("--datanodes", "2")
    assert "would lose some" in cairn.refused("--datanodes", "1")
    assert "1 to 100 DataNodes, not 0" in cairn.refused("--datanodes", "0")


def test_a_cluster_moves_to_other_ports(cairn: Cairn) -> None:
    cairn.up("--datanodes", "1")
    mkdirs(cairn, "/kept")
    before = cairn.nodes()
    cairn.base_port += 1000
    said = cairn.up()
    assert "namenode is started again, with other settings" in said
    assert "datanode-1 is started again, with other settings" in said
    assert cairn.states() == 2 * ["running"]
    for name, node in cairn.nodes().items():
        assert int(node.address.rpartition(":")[2]) >= cairn.base_port
        assert node.address != before[name].address
    assert names(cairn) == ["kept", "tmp", "user"]
    assert "up already" in cairn.up()


def test_a_pid_file_that_names_somebody_else_is_stale(cairn: Cairn) -> None:
    """After a reboot, another process may have the number."""
    cairn.up("--datanodes", "1")
    file = cairn.directory / "run" / "datanode-1.pid"
    _, *marks = file.read_text().splitlines()
    cairn.kill("datanode-1")
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        file.write_text("\n".join([str(innocent.pid), *marks]) + "\n")
        assert cairn.states() == ["running", "died"]
        cairn.run("up")
        assert cairn.states() == ["running", "running"]
        cairn.kill("datanode-1")
        file.write_text("gar")  # cut short by a power failure
        assert cairn.states() == ["running", "died"]
        cairn.run("down")
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_ports_of_others_are_left_to_them(cairn: Cairn, listener: socket.socket) -> None:
    taken = listener.getsockname()[1]
    line = cairn.refused("--datanodes", "1", "--port", str(taken))
    assert f"port {taken} is in use" in line
    assert "choose another --port" in line

    cairn.base_port = taken
    cairn.up("--datanodes", "1")
    assert f"{HOST}:{taken}" not in [node.address for node in cairn.nodes().values()]

    # Somebody takes the NameNode's port while the cluster is down.
    cairn.run("down")
    port = LocalCluster(cairn.directory).uri.rpartition(":")[2]
    with socket.create_server((HOST, int(port))):
        said = cairn.run("up")
        assert f"port {port} is in use by another program: the NameNode moves to" in said
        assert cairn.states() == ["running", "running"]


def test_data_of_another_cluster_is_refused_and_kept(cairn: Cairn, tmp_path: Path) -> None:
    cairn.up("--datanodes", "1")
    cairn.run("down")
    namespace = cairn.directory / "namenode"
    namespace.rename(tmp_path / "elsewhere")
    assert "holds replicas, but their namespace" in cairn.refused()

    (tmp_path / "elsewhere").rename(namespace)
    version = cairn.directory / "datanode-1" / "current" / "VERSION"
    foreign = version.read_text().replace("clusterID=CID-", "clusterID=CID-of-another-")
    version.write_text(foreign)
    line = cairn.refused()
    assert "is of another cluster: move it away" in line
    assert f"still runs: `cairn cluster down --directory {cairn.directory}` stops it" in line
    assert cairn.states() == ["running", "died"]
    assert version.read_text() == foreign


def test_a_directory_that_cannot_be_used_is_named(cairn: Cairn, tmp_path: Path) -> None:
    (tmp_path / "cluster").touch()
    line = cairn.refused()
    assert "cannot write to" in line
    assert "CAIRNFS_HOME" in line


@pytest.mark.parametrize("action", ["up", "status", "down"])
def test_a_directory_that_may_not_be_entered_is_named(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an ordinary user below /root; root itself may, so that it is made up here."""

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.delenv("CAIRN_CONFIG", raising=False)
    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert main(["cluster", action, "--directory", "/closed/x"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("cairn: cannot ")
    assert "/closed/x" in shown
    assert "(Permission denied): choose another --directory, or set CAIRNFS_HOME\n" in shown


def test_a_damaged_plan_is_named(cairn: Cairn) -> None:
    cairn.directory.mkdir()
    plan = cairn.directory / "cluster.json"
    plan.write_text('{"namenode": {"port": "x"}}')
    assert "cluster.json cannot be read" in cairn.refused()
    plan.unlink()
    assert "there is no cluster in" in cairn.run("status", code=1)


def test_settings_of_a_file_are_used_and_changes_are_noticed(cairn: Cairn) -> None:
    cairn.directory.mkdir()
    file = cairn.directory / "cairn.toml"
    file.write_text("[cluster]\ndatanodes = 1\n[trash]\ninterval_min = 90\n")
    cairn.up()
    assert list(cairn.nodes()) == ["namenode", "datanode-1"]
    cluster = LocalCluster(cairn.directory)

    def trash_interval() -> int:
        with connect(cluster.uri) as fs:
            return fs.get_server_defaults().trash_interval_minutes

    assert trash_interval() == 90
    audit = cairn.directory / "logs" / "audit.log"
    deadline_s = time.monotonic() + 10
    while "cmd=datanodeReport" not in audit.read_text():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    pids = cairn.pids()
    assert "up already" in cairn.up()
    assert cairn.pids() == pids

    file.write_text('[trash]\ninterval_min = 30\n[audit]\nfile = ""\n')
    said = cairn.up()
    assert "namenode is started again, with other settings" in said
    assert trash_interval() == 30
    assert not set(pids) & set(cairn.pids())
    length = audit.stat().st_size
    cairn.nodes()
    time.sleep(0.5)
    assert audit.stat().st_size == length  # it is off
