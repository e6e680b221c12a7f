"""The directory of a cluster on this machine: all that its nodes keep, and how they are run.

    cluster.json             the plan: how many nodes, on which ports
    namenode/namespace.db    the namespace
    datanode-N/              replicas
    excluded-hosts           DataNodes that are to leave (`cairn admin decommission`)
    conf/core-site.xml       for Hadoop's programs and Spark (HADOOP_CONF_DIR)
    run/*.pid  logs/*.log    the processes

Invariant: nothing here ever deletes a namespace or a replica.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cairnfs.cli.errors import CommandError
from cairnfs.cli.home import excluded_hosts_file, namespace_file, not_ours
from cairnfs.cli.plan import Plan, Planner, datanode_name
from cairnfs.cli.ports import HOST
from cairnfs.cli.processes import Daemon, python_command
from cairnfs.config_file import DEFAULT, Config

NAMENODE = "namenode"
LOCK_LIMIT_S = 180.0
_POLL_S = 0.1

Say = Callable[[str], None]


class ClusterDirectory:
    """The files of one cluster, whether or not it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.conf = self.path / "conf"
        self.plan_file = self.path / "cluster.json"

    def make(self) -> None:
        """Make it if need be; CommandError if nothing can be written there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / f"probe.{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise not_ours("write to", self.path, error) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other commands on the same cluster waiting."""
        try:
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CommandError(f"cannot write to {self.path} ({error.strerror})") from None
        try:
            deadline_s = time.monotonic() + LOCK_LIMIT_S
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline_s:
                        raise CommandError(
                            f"another `cairn cluster` works on {self.path}; wait for it"
                        ) from None
                time.sleep(_POLL_S)
            yield
        finally:
            os.close(fd)

    def read_plan(self) -> Plan:
        plan = Plan.read(self.plan_file)
        if plan is None:
            raise CommandError(f"there is no cluster in {self.path}; `cairn cluster up` makes one")
        return plan

    def make_plan(
        self,
        datanodes: int | None,
        port: int | None,
        base_port: int | None,
        config: Config,
        say: Say,
    ) -> Plan:
        old = Plan.read(self.plan_file)
        planner = Planner(base_port)
        if old is None:
            usual = config.integer("cluster.datanodes")
            plan = planner.plan(datanodes or max(usual, self._count_data()), port)
        else:
            wanted = datanodes or len(old.datanodes)
            if wanted < len(old.datanodes):
                raise CommandError(
                    f"{len(old.datanodes)} DataNodes hold data in {self.path}, and --datanodes"
                    f" {wanted} would lose some: take {len(old.datanodes)}, or another --directory"
                )
            names = (NAMENODE, *self.datanode_names(old))
            running = [name for name in names if self.daemon(name).pid is not None]
            plan = planner.revise(old, wanted, port, running)
        for note in planner.notes:
            say(note)
        plan.write(self.plan_file)
        return plan

    def make_namespace(self) -> bool:
        """Make an empty namespace where there is none; whether it did."""
        file = namespace_file(self.path)
        if file.exists():
            return False
        if self._count_data():
            raise CommandError(
                f"{self.path} holds replicas, but their namespace {file} is gone: bring it"
                " back, or move the datanode-* directories away"
            )
        # Heavy, and needed once in the life of a cluster.
        from cairnfs.namenode.opening import format_namespace, sqlite_url

        new = file.with_name("namespace.new")
        for leftover in file.parent.glob("namespace.new*"):
            leftover.unlink()
        asyncio.run(format_namespace(sqlite_url(new)))
        new.rename(file)  # so that a crash leaves all of it or nothing
        return True

    def _count_data(self) -> int:
        """How many DataNodes have left data here: 0 in a new directory."""
        names = (path.parents[1].name for path in self.path.glob("*/current/VERSION"))
        numbers = [int(name[9:]) for name in names if re.fullmatch(r"datanode-\d+", name)]
        return max(numbers, default=0)

    def write_configuration(self, plan: Plan) -> None:
        self.conf.mkdir(exist_ok=True)
        text = (
            "<configuration>\n"
            f"  <property><name>fs.defaultFS</name><value>{plan.uri}</value></property>\n"
            "</configuration>\n"
        )
        (self.conf / "core-site.xml").write_text(text)
        excluded_hosts_file(self.path).touch()

    def daemon(self, name: str) -> Daemon:
        return Daemon(name, self.path / "run" / f"{name}.pid", self.path / "logs" / f"{name}.log")

    def datanode_names(self, plan: Plan) -> list[str]:
        return [datanode_name(index) for index in range(len(plan.datanodes))]

    # How nodes are run.

    def namenode_command(self, plan: Plan, config: Config) -> list[str]:
        from cairnfs.namenode.opening import sqlite_url

        is_audit_set = config["audit.file"].origin != DEFAULT
        is_exclusion_set = config["namenode.excluded_hosts_file"].origin != DEFAULT
        return python_command(
            "cairnfs.namenode",
            config=config.path,
            store=sqlite_url(namespace_file(self.path)),
            host=HOST,
            port=plan.namenode.port,
            http_port=plan.namenode.http_port,
            excluded_hosts=None if is_exclusion_set else excluded_hosts_file(self.path),
            audit_file=None if is_audit_set else self.path / "logs" / "audit.log",
        )

    def datanode_command(self, plan: Plan, index: int, config: Config) -> list[str]:
        datanode = plan.datanodes[index]
        return python_command(
            "cairnfs.datanode",
            config=config.path,
            namenode=f"{HOST}:{plan.namenode.port}",
            data=self.path / datanode_name(index),
            host=HOST,
            port=datanode.port,
            ipc_port=datanode.ipc_port,
            http_port=datanode.http_port,
        )
