"""Everything that can be set: names, defaults, what is allowed, and what it is for.

One table serves `cairn.toml`, the environment, the command lines, `cairn config` and `/conf`.
An option is `section.name`; in the environment it is CAIRN_SECTION_NAME.  Its type is that of
its default.  What no operator has a reason to change is not here: it is a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

Value: TypeAlias = str | int | float | bool | tuple[str, ...]

Check: TypeAlias = Callable[[Value], str | None]
"""What is wrong with a value, in words that follow its name; None if nothing is."""

PORT_MAX = 65535
ENVIRONMENT_PREFIX = "CAIRN_"


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be set."""

    section: str
    name: str
    default: Value
    help: str
    check: Check | None = None
    flag: str = ""  # on the command line, if it has one there
    hadoop: str = ""  # the property of HDFS that means the same, in the same unit

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.section}_{self.name}".upper()


def one_of(*allowed: str) -> Check:
    words = ", ".join(allowed)
    return lambda value: None if value in allowed else f"must be one of {words}"


def _between(low: float, high: float) -> Check:
    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if low <= value <= high else f"must be from {low} to {high}"

    return check


def _at_least(low: float) -> Check:
    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if low <= value < float("inf") else f"must be {low} or more"

    return check


def _more_than_nothing(value: Value) -> str | None:
    assert isinstance(value, int | float)
    return None if 0 < value < float("inf") else "must be more than 0"


_is_port = _between(0, PORT_MAX)
_not_negative = _at_least(0)
_positive = _at_least(1)

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_FORMATS = ("text", "json")

OPTIONS: tuple[Option, ...] = (
    # The NameNode.
    Option(
        "namenode",
        "store",
        "",
        "where the namespace is: sqlite:///path/of/file, or postgresql://user@host/database"
        " for any number of NameNodes",
        flag="--store",
    ),
    Option("namenode", "host", "127.0.0.1", "address to listen on", flag="--host"),
    Option("namenode", "port", 8020, "RPC; 0 takes any that is free", _is_port, flag="--port"),
    Option(
        "namenode",
        "http_port",
        9870,
        "HTTP: WebHDFS, /metrics, /jmx and /conf; 0 takes any that is free",
        _is_port,
        flag="--http-port",
    ),
    Option(
        "namenode",
        "data_through_namenode",
        False,
        "whether WebHDFS serves data here, for clients that cannot reach DataNodes",
        flag="--data-through-namenode",
    ),
    Option(
        "namenode",
        "control",
        "optimistic",
        "how concurrent calls are kept apart: optimistic, pessimistic or system-lock",
        one_of("optimistic", "pessimistic", "system-lock"),
    ),
    Option(
        "namenode", "duties", True, "whether this NameNode takes part in background work as well"
    ),
    Option(
        "namenode",
        "excluded_hosts_file",
        "",
        "DataNodes that are to leave: a host, or host:port, a line",
        flag="--excluded-hosts",
        hadoop="dfs.hosts.exclude",
    ),
    Option(
        "namenode",
        "safe_mode_threshold",
        0.999,
        "the part of all blocks to be there before anything may be changed",
        _between(0, 1),
        hadoop="dfs.namenode.safemode.threshold-pct",
    ),
    Option(
        "namenode",
        "datanode_stale_after_s",
        30.0,
        "a DataNode that was not heard of for so long is avoided",
        _more_than_nothing,
        flag="--datanode-stale-after",
    ),
    Option(
        "namenode",
        "datanode_dead_after_s",
        630.0,
        "and after so long, its replicas are made anew elsewhere",
        _more_than_nothing,
        flag="--datanode-dead-after",
    ),
    Option(
        "namenode",
        "heartbeat_interval_s",
        1.0,
        "how often NameNodes on one PostgreSQL tell each other that they live",
        _more_than_nothing,
    ),
    Option(
        "namenode",
        "expiry_s",
        4.0,
        "without a heartbeat for so long, a NameNode is taken for dead",
        _more_than_nothing,
    ),
    # Files being written.
    Option(
        "leases",
        "soft_limit_s",
        60.0,
        "a writer that was not heard of for so long may lose its file to another",
        _more_than_nothing,
        flag="--lease-soft-limit",
    ),
    Option(
        "leases",
        "hard_limit_s",
        1200.0,
        "and after so long, its file is closed",
        _more_than_nothing,
        flag="--lease-hard-limit",
    ),
    # Snapshots.
    Option(
        "snapshots",
        "copy_always",
        False,
        "for benchmarks: whether an append copies a last block that a snapshot needs even where"
        " it could go on in it",
    ),
    # The DataNode.
    Option(
        "datanode",
        "namenodes",
        (),
        "NameNodes to report to, all of a cluster: host:port",
        flag="--namenode",
    ),
    Option(
        "datanode",
        "data",
        (),
        "directories for replicas, each perhaps with a storage type: [SSD]/path",
        flag="--data",
        hadoop="dfs.datanode.data.dir",
    ),
    Option("datanode", "host", "127.0.0.1", "address to listen on", flag="--host"),
    Option(
        "datanode", "hostname", "", "name to announce; else that of the host", flag="--hostname"
    ),
    Option("datanode", "port", 9866, "block transfer", _is_port, flag="--port"),
    Option("datanode", "ipc_port", 9867, "RPC", _is_port, flag="--ipc-port"),
    Option(
        "datanode",
        "http_port",
        9864,
        "HTTP: the data of WebHDFS, /metrics, /jmx and /conf",
        _is_port,
        flag="--http-port",
    ),
    Option("datanode", "rack", "", "where this DataNode is, as /room/rack", flag="--rack"),
    Option(
        "datanode",
        "reserved_bytes",
        0,
        "of each volume, left to others",
        _not_negative,
        flag="--reserved",
        hadoop="dfs.datanode.du.reserved",
    ),
    Option(
        "datanode",
        "capacity_bytes",
        0,
        "that replicas may take of each volume, where several share a disk; 0 for all of it",
        _not_negative,
        flag="--capacity",
    ),
    Option(
        "datanode",
        "failed_volumes_tolerated",
        0,
        "with one more, the DataNode ends",
        _not_negative,
        flag="--failed-volumes-tolerated",
        hadoop="dfs.datanode.failed.volumes.tolerated",
    ),
    Option(
        "datanode",
        "heartbeat_interval_s",
        3.0,
        "how often NameNodes are told that it lives, and how full it is",
        _more_than_nothing,
        flag="--heartbeat",
        hadoop="dfs.heartbeat.interval",
    ),
    Option(
        "datanode",
        "block_report_interval_s",
        21600.0,
        "how often NameNodes are told everything that is here",
        _more_than_nothing,
    ),
    Option(
        "datanode",
        "scan_bytes_per_s",
        1 << 20,
        "how fast replicas are read in search of decay; 0 for never",
        _not_negative,
        flag="--scan-rate",
        hadoop="dfs.block.scanner.volume.bytes.per.second",
    ),
    Option(
        "datanode",
        "sync_on_close",
        False,
        "whether a block is forced to the disk when it is complete",
        flag="--sync-on-close",
        hadoop="dfs.datanode.synconclose",
    ),
    Option(
        "datanode",
        "move_bytes_per_s",
        100 << 20,
        "how fast replicas are moved to where their storage policy or a balancer wants them",
        _positive,
        hadoop="dfs.datanode.balance.bandwidthPerSec",
    ),
    Option(
        "datanode",
        "moves_max",
        100,
        "how many are moved at a time",
        _positive,
        hadoop="dfs.datanode.balance.max.concurrent.moves",
    ),
    Option(
        "datanode",
        "lazy_persist_interval_s",
        60.0,
        "how often replicas that were written to a RAM_DISK volume are taken to disk",
        _more_than_nothing,
        flag="--lazy-persist-interval",
        hadoop="dfs.datanode.lazywriter.interval.sec",
    ),
    # `cairn cluster`.
    Option("cluster", "datanodes", 3, "how many a new `cairn cluster` has", _between(1, 100)),
    # Any node.
    Option(
        "logging",
        "level",
        "INFO",
        "the least that is said: DEBUG, INFO, WARNING or ERROR",
        one_of(*LOG_LEVELS),
        flag="--log-level",
    ),
    Option(
        "logging",
        "format",
        "text",
        "text for people, json for programs: an object a line",
        one_of(*LOG_FORMATS),
        flag="--log-format",
    ),
    # The audit log.
    Option(
        "audit",
        "file",
        "",
        "who did what to which path, in HDFS's words; empty for none (unless it is set, a"
        " `cairn cluster` has logs/audit.log)",
        flag="--audit-file",
    ),
    Option(
        "audit", "file_bytes_max", 256 << 20, "a file that is as long is put aside", _at_least(4096)
    ),
    Option("audit", "files_max", 20, "how many are kept, the newest included", _positive),
    Option(
        "audit",
        "excluded_commands",
        (),
        "commands that are not written down, such as getfileinfo",
        hadoop="dfs.namenode.audit.log.debug.cmdlist",
    ),
    # Trash.
    Option(
        "trash",
        "interval_min",
        0.0,
        "minutes after which what was put into the trash is gone; 0: there is no trash",
        _not_negative,
        flag="--trash-interval",
        hadoop="fs.trash.interval",
    ),
    Option(
        "trash",
        "checkpoint_interval_min",
        0.0,
        "minutes between one look at the trash and the next; 0: as interval_min",
        _not_negative,
        flag="--trash-checkpoint-interval",
        hadoop="fs.trash.checkpoint.interval",
    ),
)

BY_KEY = {option.key: option for option in OPTIONS}
SECTIONS = tuple(dict.fromkeys(option.section for option in OPTIONS))

NAMENODE_SECTIONS = ("namenode", "leases", "snapshots", "audit", "trash", "logging")
DATANODE_SECTIONS = ("datanode", "logging")


def options_of(*sections: str) -> list[Option]:
    return [option for option in OPTIONS if option.section in sections]


def show_value(value: Value) -> str:
    """As TOML writes it; the password of a database is nobody's business."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(show_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = without_password(value)
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in text) + '"'
    return repr(value)


def without_password(text: str) -> str:
    """A URL that may be shown; any other text as it is."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        if parts.password is None:
            return text
    except ValueError:
        return text
    who, _, where = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{who.partition(':')[0]}:***@{where}"))


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
