"""A whole cluster on this machine: a NameNode on an embedded store, and DataNodes.

Everything is in one directory (`cluster_directory`).  Invariant: whatever state a crash left
behind, `up` goes on from there.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import cairnfs
from cairnfs.cli.cluster_directory import NAMENODE, ClusterDirectory, Say
from cairnfs.cli.errors import CommandError
from cairnfs.cli.home import config_file, is_home, read_config
from cairnfs.cli.overview import DataNodeReport, NameNodeClient, Overview
from cairnfs.cli.plan import DATANODES_MAX, Plan, datanode_name
from cairnfs.cli.ports import HOST
from cairnfs.cli.processes import Daemon, State, stop
from cairnfs.config_file import Config
from cairnfs.errors import HdfsError

START_LIMIT_S = 120.0
STOP_LIMIT_S = 20.0
ANSWER_LIMIT_S = 3.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Node:
    """One process of the cluster, as it is now."""

    name: str
    address: str
    http_address: str
    pid: int | None
    state: str  # running, stopped, died; silent: it runs, but the cluster does not know it
    log: Path
    report: DataNodeReport | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The cluster as it is now."""

    uri: str
    nodes: list[Node]
    is_in_safe_mode: bool

    @property
    def is_up(self) -> bool:
        return bool(self.nodes) and all(node.state == "running" for node in self.nodes)

    @property
    def is_down(self) -> bool:
        return all(node.pid is None for node in self.nodes)


class LocalCluster:
    """The cluster in a directory, running or not."""

    def __init__(self, directory: Path) -> None:
        self._files = ClusterDirectory(directory)
        self.directory = self._files.path
        self.conf = self._files.conf

    def up(
        self,
        *,
        datanodes: int | None = None,
        port: int | None = None,
        base_port: int | None = None,
        config: Config | None = None,
        say: Say = lambda _: None,
        limit_s: float = START_LIMIT_S,
    ) -> None:
        """Start whatever does not run, and wait until all of it serves."""
        if datanodes is not None and not 1 <= datanodes <= DATANODES_MAX:
            raise CommandError(f"a cluster has 1 to {DATANODES_MAX} DataNodes, not {datanodes}")
        config = config or read_config(config_file(self.directory))
        self._files.make()
        with self._files.alone():
            plan = self._files.make_plan(datanodes, port, base_port, config, say)
            is_new = self._files.make_namespace()
            self._files.write_configuration(plan)
            deadline_s = time.monotonic() + limit_s
            try:
                self._start_all(plan, config, say, deadline_s)
            except CommandError as error:
                daemons = map(self._files.daemon, (NAMENODE, *self._files.datanode_names(plan)))
                if all(daemon.pid is None for daemon in daemons):
                    raise
                raise CommandError(
                    f"{error}; what has started still runs: `{self.command('down')}` stops it"
                ) from None
            if is_new:
                _make_directories(plan.uri)

    def down(self, say: Say = lambda _: None) -> None:
        """Stop everything: DataNodes first, so that none sees its NameNode go."""
        plan = self._files.read_plan()
        with self._files.alone():
            for names in self._files.datanode_names(plan), [NAMENODE]:
                daemons = [self._files.daemon(name) for name in names]
                running = [daemon for daemon in daemons if daemon.pid is not None]
                forced = stop(daemons, STOP_LIMIT_S)
                for daemon in running:
                    how = f"had to be killed; see {daemon.log}" if daemon in forced else "stopped"
                    say(f"{daemon.name} {how}")

    def status(self) -> Status:
        """Ask the processes, and the NameNode about its DataNodes."""
        plan = self._files.read_plan()
        overview = self._overview(plan)
        daemon = self._files.daemon(NAMENODE)
        state = daemon.state.value
        if daemon.state is State.RUNNING and overview is None:
            state = "silent"
        address, http_address = (
            f"{HOST}:{plan.namenode.port}",
            f"{HOST}:{plan.namenode.http_port}",
        )
        nodes = [Node(NAMENODE, address, http_address, daemon.pid, state, daemon.log)]
        for index, each in enumerate(plan.datanodes):
            daemon = self._files.daemon(datanode_name(index))
            report = _report_of(daemon, each.port, overview)
            state = daemon.state.value
            if daemon.state is State.RUNNING and report is None:
                state = "silent"
            address, http_address = f"{HOST}:{each.port}", f"{HOST}:{each.http_port}"
            nodes.append(
                Node(daemon.name, address, http_address, daemon.pid, state, daemon.log, report)
            )
        return Status(plan.uri, nodes, overview is not None and overview.is_in_safe_mode)

    def is_older_than(self, config: Config) -> bool:
        """Whether a node runs with settings that have been changed since."""
        names = (NAMENODE, *self._files.datanode_names(self._files.read_plan()))
        return any(_is_older(self._files.daemon(name), config) for name in names)

    @property
    def exists(self) -> bool:
        return Plan.read(self._files.plan_file) is not None

    @property
    def uri(self) -> str:
        return self._files.read_plan().uri

    @property
    def base_port(self) -> int | None:
        """From where on its ports were chosen, if somebody said so."""
        return self._files.read_plan().base_port

    @property
    def http_uri(self) -> str:
        """What clients that speak HTTP call it."""
        return f"http://{HOST}:{self._files.read_plan().namenode.http_port}"

    def command(self, action: str) -> str:
        """What to type to have something done with it."""
        where = "" if is_home(self.directory) else f" --directory {self.directory}"
        return f"cairn cluster {action}{where}"

    # Starting.

    def _start_all(self, plan: Plan, config: Config, say: Say, deadline_s: float) -> None:
        self._start(NAMENODE, self._files.namenode_command(plan, config), say, config)
        self._wait_for_namenode(plan, say, deadline_s)
        for index in range(len(plan.datanodes)):
            command = self._files.datanode_command(plan, index, config)
            self._start(datanode_name(index), command, say, config)
        self._wait_for_datanodes(plan, say, deadline_s)

    def _start(self, name: str, command: list[str], say: Say, config: Config) -> None:
        daemon = self._files.daemon(name)
        if daemon.pid is not None:
            if daemon.command == command and not _is_older(daemon, config):
                return
            say(f"{name} is started again, with other settings")
            stop([daemon], STOP_LIMIT_S)
        elif daemon.state is State.DIED:
            say(f"{name} had died; what it said is in {daemon.log}")
        # The same code for all, wherever this command has found it.
        path = [str(Path(cairnfs.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        say(f"{name} starts")
        daemon.start(command, environment)

    def _wait_for_namenode(self, plan: Plan, say: Say, deadline_s: float) -> None:
        daemon = self._files.daemon(NAMENODE)
        while self._overview(plan) is None:
            self._check(daemon, deadline_s, "does not answer")
            time.sleep(_POLL_S)
        say(f"{NAMENODE} answers on {HOST}:{plan.namenode.port}")

    def _wait_for_datanodes(self, plan: Plan, say: Say, deadline_s: float) -> None:
        """Until all have registered, and their blocks have brought safe mode to its end."""
        daemons = [self._files.daemon(name) for name in self._files.datanode_names(plan)]
        ports = [datanode.port for datanode in plan.datanodes]
        total, last = len(daemons), -1
        with _connect(plan) as client:
            while True:
                overview = _ask(client)
                missing = [
                    daemon
                    for daemon, port in zip(daemons, ports, strict=True)
                    if _report_of(daemon, port, overview) is None
                ]
                if total - len(missing) > last:
                    last = total - len(missing)
                    say(f"{last} of {total} DataNodes have registered")
                if overview is not None and not missing and not overview.is_in_safe_mode:
                    return
                self._check(self._files.daemon(NAMENODE), deadline_s, "is still in safe mode")
                for daemon in missing:
                    self._check(daemon, deadline_s, "has not registered")
                time.sleep(_POLL_S)

    def _check(self, daemon: Daemon, deadline_s: float, what: str) -> None:
        """CommandError if there is no point in waiting any longer."""
        if daemon.pid is None:
            words = _last_words(daemon.log)
            if "Incompatible clusterIDs" in words:
                data = self.directory / daemon.name
                words = f"{data} is of another cluster: move it away, or back. {words}"
            raise CommandError(f"{daemon.name} has ended: {words}")
        if time.monotonic() > deadline_s:
            raise CommandError(f"{daemon.name} {what}; see {daemon.log}")

    def _overview(self, plan: Plan) -> Overview | None:
        """What the NameNode says, if it is ours and answers."""
        if self._files.daemon(NAMENODE).pid is None:
            return None
        with _connect(plan) as client:
            return _ask(client)


def _make_directories(uri: str) -> None:
    """What everybody's first steps need: /tmp, and a home directory."""
    from cairnfs.client.addresses import default_user
    from cairnfs.client.filesystem import connect
    from cairnfs.config import FormatSettings

    user = default_user()
    with connect(uri, user=FormatSettings().superuser) as fs:
        fs.mkdirs("/tmp")
        fs.set_permission("/tmp", 0o1777)
        fs.mkdirs(f"/user/{user}")
        fs.set_owner(f"/user/{user}", user)


def _connect(plan: Plan) -> NameNodeClient:
    return NameNodeClient(HOST, plan.namenode.port, ANSWER_LIMIT_S)


def _ask(client: NameNodeClient) -> Overview | None:
    try:
        return client.overview()
    except (HdfsError, OSError):
        return None


def _report_of(daemon: Daemon, port: int, overview: Overview | None) -> DataNodeReport | None:
    """What the NameNode knows of this process; not of the one before it."""
    if overview is None or daemon.pid is None:
        return None
    report = overview.datanodes.get(port)
    return report if report is not None and report.heard_ms >= daemon.started_ms else None


def _is_older(daemon: Daemon, config: Config) -> bool:
    """Whether it runs, and was started before the settings were changed."""
    if config.path is None or daemon.pid is None:
        return False
    return daemon.started_ms < config.path.stat().st_mtime_ns // 1_000_000


def _last_words(log: Path) -> str:
    """What a process said at its end, and where to read the rest."""
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError as error:
        return f"{log} cannot be read: {error.strerror}"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
    return f"{last} (see {log})"
