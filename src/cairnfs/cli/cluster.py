"""`cairn cluster`: a whole cluster on this machine in one command."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cairnfs.cli.home import config_file, home, is_home, read_config
from cairnfs.cli.local_cluster import LocalCluster, Node, Status
from cairnfs.cli.output import format_bytes, format_table

_DESCRIPTION = """\
A NameNode and DataNodes as background processes, all on 127.0.0.1, with data, logs and pid
files in one directory: ~/.cairnfs, or what CAIRNFS_HOME or --directory says.  `up` also goes
on with what `down`, a crash or a reboot has left, and starts again whatever has died."""


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    cluster = LocalCluster(given.directory or home())
    if given.action == "up":
        return up(cluster, given)
    if given.action == "down":
        return down(cluster)
    return status(cluster, as_json=given.json)


def up(cluster: LocalCluster, given: argparse.Namespace) -> int:
    """Start it; how to use it goes to standard output, progress to the other."""
    config = read_config(given.config or config_file(cluster.directory))
    is_as_asked = (
        cluster.exists
        and given.port is None
        and given.datanodes is None
        and given.base_port in (None, cluster.base_port)
        and not cluster.is_older_than(config)
    )
    if is_as_asked and cluster.status().is_up:
        print(f"CairnFS is up already: {cluster.uri}", file=sys.stderr)
    else:
        cluster.up(
            datanodes=given.datanodes,
            port=given.port,
            base_port=given.base_port,
            config=config,
            say=_say,
            limit_s=given.timeout,
        )
    print(usage(cluster, cluster.status()))
    return 0


def down(cluster: LocalCluster) -> int:
    if cluster.status().is_down:
        _say("nothing runs")
    cluster.down(_say)
    return 0


def status(cluster: LocalCluster, *, as_json: bool) -> int:
    """Show it; the exit code is 0 if all of it serves."""
    now = cluster.status()
    print(_as_json(cluster, now) if as_json else _as_table(cluster, now))
    return 0 if now.is_up else 1


def usage(cluster: LocalCluster, now: Status) -> str:
    """How to use a cluster that is up."""
    datanodes = [node for node in now.nodes if node.report is not None]
    free = format_bytes(min((n.report.remaining_bytes for n in datanodes if n.report), default=0))
    where = "" if is_home(cluster.directory) else f" --fs {now.uri}"
    plural = "s" if len(datanodes) > 1 else ""
    return f"""\
CairnFS is up: {now.uri}  ({len(datanodes)} DataNode{plural}, {free} free, in {cluster.directory})

{_how_to_find_cairn()}  shell    cairn fs{where} -ls /
  Spark    spark.range(9).write.parquet("{now.uri}/tmp/numbers")
  curl     curl '{cluster.http_uri}/webhdfs/v1/?op=LISTSTATUS'
  others   export HADOOP_CONF_DIR={cluster.conf}
  look     {cluster.command("status")}
  stop     {cluster.command("down")}"""


def _how_to_find_cairn() -> str:
    """A line of its own where `cairn` cannot be typed as yet."""
    if shutil.which("cairn"):
        return ""
    programs = Path(sys.executable).parent
    script = programs / "activate"
    if not script.exists():
        return f'  first    export PATH="{programs}:$PATH"\n'
    if script.is_relative_to(Path.cwd()):
        script = script.relative_to(Path.cwd())
    return f"  first    . {script}\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cairn cluster", description=_DESCRIPTION, allow_abbrev=False
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="up|down|status")
    starting, stopping, looking = (
        actions.add_parser(name, help=what, allow_abbrev=False)
        for name, what in (
            ("up", "start it, or what of it does not run"),
            ("down", "stop it; its data stays"),
            ("status", "show it; the exit code is 0 if all of it serves"),
        )
    )
    for action in (starting, stopping, looking):
        action.add_argument("--directory", type=Path, metavar="DIR", help="where everything is")
    add = starting.add_argument
    add("--datanodes", type=int, metavar="COUNT", help="how many (3, or as many as there are)")
    add("--port", type=int, help="the NameNode's RPC (8020, or the next that is free)")
    add("--base-port", type=int, metavar="PORT", help="take free ports from here on, not Hadoop's")
    add(
        "--config",
        type=lambda text: Path(text).absolute(),
        metavar="FILE",
        help="settings (cairn.toml in the directory)",
    )
    add("--timeout", type=float, default=120.0, metavar="SECONDS", help="how long to wait")
    looking.add_argument("--json", action="store_true", help="for programs")
    return parser


def _as_table(cluster: LocalCluster, now: Status) -> str:
    rows = [["ROLE", "ADDRESS", "HTTP", "PID", "STATE", "USED", "CAPACITY", "LOG"]]
    for node in now.nodes:
        used, capacity = "-", "-"
        if node.report is not None:
            used = format_bytes(node.report.used_bytes)
            capacity = format_bytes(node.report.capacity_bytes)
        pid = "-" if node.pid is None else str(node.pid)
        where = [node.address, node.http_address]
        rows.append([node.name, *where, pid, node.state, used, capacity, str(node.log)])
    lines = format_table(rows)
    if now.is_in_safe_mode:
        lines.append("The NameNode is in safe mode: it waits for DataNodes to report their blocks.")
    if not now.is_up:
        lines.append(f"Not all of it serves; `{cluster.command('up')}` starts what does not run.")
    return "\n".join(lines)


def _as_json(cluster: LocalCluster, now: Status) -> str:
    return json.dumps(
        {
            "directory": str(cluster.directory),
            "uri": now.uri,
            "up": now.is_up,
            "safe_mode": now.is_in_safe_mode,
            "nodes": [_node_as_json(node) for node in now.nodes],
        },
        indent=2,
    )


def _node_as_json(node: Node) -> dict[str, object]:
    report = node.report
    return {
        "name": node.name,
        "address": node.address,
        "http_address": node.http_address,
        "pid": node.pid,
        "alive": node.pid is not None,
        "state": node.state,
        "capacity_bytes": None if report is None else report.capacity_bytes,
        "used_bytes": None if report is None else report.used_bytes,
        "remaining_bytes": None if report is None else report.remaining_bytes,
        "log": str(node.log),
    }


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
