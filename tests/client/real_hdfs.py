"""A cluster of Apache HDFS, as processes, to test the client with.

Needs the jars of an HDFS, as `benchmarks/peer/peer install` puts them into $PEER_HOME/jars.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Self

import cairnfs
from cairnfs.testing.ports import HOST, choose_free_ports

JARS = Path(os.environ.get("PEER_HOME") or Path.home() / ".cache" / "hdfs-peer") / "jars"

_OPENED = ("java.lang", "java.util", "java.io", "java.net", "sun.nio.ch")
_PACKAGE = "org.apache.hadoop.hdfs.server"
_START_LIMIT_S = 120.0
_LOGGING = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


class RealHdfs:
    """A NameNode and DataNodes of Apache's; `with` starts and ends them."""

    def __init__(self, directory: Path, datanodes: int) -> None:
        self._directory = directory
        self._datanodes = datanodes
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port, self._http_port = choose_free_ports(2)

    @property
    def uri(self) -> str:
        return f"hdfs://{HOST}:{self.port}"

    @property
    def configuration(self) -> Path:
        """Where Hadoop's programs find it described."""
        return self._directory / "namenode"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill_datanode(self, index: int) -> None:
        process = self._processes[f"datanode{index}"]
        process.kill()
        process.wait()

    def _start(self) -> None:
        self._configure(
            "namenode",
            {
                "dfs.namenode.name.dir": f"file://{self._directory}/name",
                "dfs.namenode.http-address": f"{HOST}:{self._http_port}",
                "dfs.namenode.datanode.registration.ip-hostname-check": "false",
                "dfs.namenode.fs-limits.min-block-size": "1024",
                "dfs.namenode.heartbeat.recheck-interval": "2000",
            },
        )
        self._run("namenode", f"{_PACKAGE}.namenode.NameNode", "-format", "-nonInteractive").wait()
        self._run("namenode", f"{_PACKAGE}.namenode.NameNode")
        for index in range(self._datanodes):
            port, ipc_port, http_port = choose_free_ports(3)
            self._configure(
                f"datanode{index}",
                {
                    "dfs.datanode.data.dir": f"file://{self._directory}/data{index}",
                    "dfs.datanode.address": f"{HOST}:{port}",
                    "dfs.datanode.ipc.address": f"{HOST}:{ipc_port}",
                    "dfs.datanode.http.address": f"{HOST}:{http_port}",
                    "dfs.datanode.hostname": HOST,
                },
            )
            self._run(f"datanode{index}", f"{_PACKAGE}.datanode.DataNode")
        self._wait_until_up()

    def _configure(self, name: str, settings: dict[str, str]) -> None:
        configuration = self._directory / name
        for web in ("hdfs", "datanode", "static"):
            folder = configuration / "webapps" / web / "WEB-INF"
            folder.mkdir(parents=True)
            (folder / "web.xml").write_text('<web-app version="2.4"/>\n')
        (configuration / "log4j.properties").write_text(_LOGGING)
        settings = {
            "fs.defaultFS": self.uri,
            "hadoop.tmp.dir": f"{self._directory}/tmp",
            "dfs.namenode.rpc-address": f"{HOST}:{self.port}",
            "dfs.heartbeat.interval": "1",
            **settings,
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>\n"
            for name, value in settings.items()
        )
        for file in ("core-site.xml", "hdfs-site.xml"):
            (configuration / file).write_text(f"<configuration>\n{properties}</configuration>\n")

    def _run(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        path = f"{self._directory / name}:{JARS}/*"
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                ["java", *opened, "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes[name] = process
        return process

    def _wait_until_up(self) -> None:
        deadline_s = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline_s:
            try:
                with cairnfs.connect(self.uri) as fs:
                    report = fs.get_datanode_report("LIVE")
                    if len(report) == self._datanodes and not fs.get_safe_mode():
                        return
            except OSError:
                pass  # not listening yet
            time.sleep(0.3)
        logs = [path.read_text()[-2000:] for path in self._directory.glob("*.log")]
        raise RuntimeError("\n".join(["Apache HDFS did not start", *logs]))
