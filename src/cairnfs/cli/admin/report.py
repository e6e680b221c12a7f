"""How the cluster is: room, blocks, DataNodes, safe mode, NameNodes."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, NamedTuple

from cairnfs.cli.connection import Choice, connect
from cairnfs.cli.output import BOLD, GREEN, RED, YELLOW, Output, format_bytes, format_table
from cairnfs.errors import HdfsError

if TYPE_CHECKING:
    from cairnfs.client.administration import SafeModeAction
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import DatanodeInfo, FsStatus

POLL_S = 0.5
STALE_AFTER_S = 30.0  # dfs.namenode.stale.datanode.interval
ANSWER_LIMIT_S = 5.0  # for each NameNode

_STATES = {
    "NORMAL": "in service",
    "DECOMMISSION_INPROGRESS": "leaving",
    "DECOMMISSIONED": "decommissioned",
    "ENTERING_MAINTENANCE": "entering maintenance",
    "IN_MAINTENANCE": "in maintenance",
}


class Node(NamedTuple):
    """A DataNode, and whether it was heard of lately."""

    info: DatanodeInfo
    is_alive: bool

    @property
    def silent_s(self) -> float:
        """For how long it was not heard of, by our clock; 0: it never was."""
        if not self.info.last_update_ms:
            return 0.0
        return max(0.0, time.time() - self.info.last_update_ms / 1000)

    @property
    def is_stale(self) -> bool:
        """Whether it is taken for alive, and avoided."""
        return self.is_alive and self.silent_s >= STALE_AFTER_S

    @property
    def state(self) -> str:
        """In words."""
        health = "dead" if not self.is_alive else "stale" if self.is_stale else ""
        if health and self.info.state == "NORMAL":
            return health
        return _STATES[self.info.state] + (f", {health}" if health else "")


def list_datanodes(fs: FileSystem) -> list[Node]:
    """All that the NameNode knows, by address."""
    living = {node.uuid for node in fs.get_datanode_report("LIVE")}
    nodes = sorted(fs.get_datanode_report("ALL"), key=lambda node: (node.ip, node.port))
    return [Node(node, node.uuid in living) for node in nodes]


def report(fs: FileSystem, given: argparse.Namespace) -> int:
    """As `hdfs dfsadmin -report`, to be read."""
    status, nodes, is_safe = fs.get_status(), list_datanodes(fs), fs.get_safe_mode()
    out = Output()
    if given.json:
        out.print_json(_as_json(fs, status, nodes, is_safe))
    else:
        for line in _as_text(fs, status, nodes, is_safe, out):
            out.print(line)
    out.flush()
    return 0


def _as_text(
    fs: FileSystem, status: FsStatus, nodes: list[Node], is_safe: bool, out: Output
) -> list[str]:
    share = status.used_bytes / status.capacity_bytes if status.capacity_bytes else 0
    lines = [
        out.paint(f"The file system at {fs.url}", BOLD),
        f"  room        {format_bytes(status.remaining_bytes)} free of"
        f" {format_bytes(status.capacity_bytes)}; {format_bytes(status.used_bytes)} used"
        f" ({share:.1%})",
    ]
    counts = {
        "missing": (status.missing_blocks, RED),
        "corrupt": (status.corrupt_blocks, RED),
        "under-replicated": (status.under_replicated_blocks, YELLOW),
        "to be deleted": (status.pending_deletion_blocks, ""),
    }
    texts = [
        out.paint(f"{count} {name}", colour) if count and colour else f"{count} {name}"
        for name, (count, colour) in counts.items()
    ]
    lines.append(f"  blocks      {', '.join(texts)}")
    if is_safe:
        lines.append(
            out.paint("  safe mode   ON: nothing can be changed; `cairn admin safemode`", YELLOW)
        )
    living = sum(node.is_alive for node in nodes)
    lines += [f"  DataNodes   {living} alive, {len(nodes) - living} dead", ""]
    if nodes:
        header = ["DATANODE", "HOST", "STATE", "CAPACITY", "USED", "FREE", "USED%"]
        header += ["HEARD", "RACK"]
        rows = [header, *(_row(node) for node in nodes)]
        first, *more = format_table(rows, right=frozenset((3, 4, 5, 6)))
        colours = [_colour(node) for node in nodes]
        lines.append(out.paint(first, BOLD))
        lines += [
            out.paint(line, colour) if colour else line
            for line, colour in zip(more, colours, strict=True)
        ]
    return lines


def _row(node: Node) -> list[str]:
    info = node.info
    share = info.used_bytes / info.capacity_bytes if info.capacity_bytes else 0
    return [
        info.address,
        info.hostname,
        node.state,
        *map(format_bytes, (info.capacity_bytes, info.used_bytes, info.remaining_bytes)),
        f"{share:.1%}",
        f"{round(node.silent_s)} s ago" if info.last_update_ms else "never",
        info.rack,
    ]


def _colour(node: Node) -> str:
    if not node.is_alive:
        return RED
    return YELLOW if node.is_stale or node.info.state != "NORMAL" else ""


def _as_json(
    fs: FileSystem, status: FsStatus, nodes: list[Node], is_safe: bool
) -> dict[str, object]:
    import msgspec

    return {
        "url": fs.url,
        "safe_mode": is_safe,
        **msgspec.to_builtins(status),
        "datanodes": [
            {"alive": node.is_alive, "stale": node.is_stale, **msgspec.to_builtins(node.info)}
            for node in nodes
        ],
    }


# Safe mode


def safe_mode(fs: FileSystem, given: argparse.Namespace) -> int:
    """Ask for it, change it, or wait for its end."""
    if given.what == "wait":
        while fs.get_safe_mode():
            time.sleep(POLL_S)
        is_on = False
    else:
        action: SafeModeAction = given.what
        is_on = fs.set_safe_mode(action)
    out = Output()
    if given.json:
        out.print_json({"safe_mode": is_on})
    else:
        out.print(f"Safe mode is {'ON' if is_on else 'OFF'}")
    out.flush()
    return 0


# NameNodes


def namenodes(fs: FileSystem, given: argparse.Namespace) -> int:
    """Ask each by itself; the exit code is 0 if all answer."""
    answers = [_ask(address) for address in fs.url.partition("://")[2].split(",")]
    out = Output()
    if given.json:
        out.print_json(answers)
    else:
        rows = [["NAMENODE", "STATE", "SAFE MODE", "DATANODES", "ANSWERED IN"]]
        rows += [_namenode_row(each) for each in answers]
        first, *more = format_table(rows)
        out.print(out.paint(first, BOLD))
        for each, line in zip(answers, more, strict=True):
            out.print(out.paint(line, GREEN if each["alive"] else RED))
    out.flush()
    return 0 if all(each["alive"] for each in answers) else 1


def _namenode_row(answer: dict[str, object]) -> list[str]:
    address = str(answer["address"])
    if not answer["alive"]:
        return [address, "silent", "-", "-", "-"]
    is_safe = "on" if answer["safe_mode"] else "off"
    return [address, "alive", is_safe, str(answer["live_datanodes"]), f"{answer['answered_ms']} ms"]


def _ask(address: str) -> dict[str, object]:
    began_s = time.monotonic()
    try:
        with connect(Choice(f"hdfs://{address}", ""), timeout_s=ANSWER_LIMIT_S) as fs:
            is_safe = fs.get_safe_mode()
            answered_ms = round((time.monotonic() - began_s) * 1000, 1)
            living = len(fs.get_datanode_report("LIVE"))
    except HdfsError as error:
        return {"address": address, "alive": False, "error": str(error)}
    return {
        "address": address,
        "alive": True,
        "safe_mode": is_safe,
        "live_datanodes": living,
        "answered_ms": answered_ms,
    }
