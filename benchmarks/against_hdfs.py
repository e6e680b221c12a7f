"""`make bench-peer`: a real Apache HDFS and CairnFS side by side, in one run.

Both are the same kind of cluster (one NameNode, three DataNodes, loopback, this disk), both
are driven by the same load generators through Hadoop's own client (`peer/`), and they take
turns, so that a disturbance meets both: metadata within a second, since a machine may be twice as
fast a minute later.  What counts are the ratios, of phases that are neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cairnfs.testing.cluster import Cluster

HERE = Path(__file__).parent
PEER = HERE / "peer" / "peer"
RESULTS = HERE / "results"

HDFS = "HDFS"
CAIRNFS = "CairnFS"

# The first bars: the ratio of throughput to HDFS, 32 threads, one NameNode, SQLite.
META_BARS = {
    "stat": 0.9,
    "list1000": 0.9,
    "list": 0.9,
    "create": 1.0,
    "create_rpc": 1.0,
    "delete": 0.9,
    "mkdirs": 0.8,
    "rename": 0.75,
}
FLUSH_BAR = 0.6
FLUSHED_RECORDS = 5000
FLUSHED_BYTES = 100
TURNS = 8  # of each operation, for each round


class Server:
    """A cluster that is measured."""

    name: str
    url: str

    def pids(self) -> str:
        raise NotImplementedError


class RealHdfs(Server):
    name = HDFS

    def __init__(self, home: Path, port: int) -> None:
        self.url = f"hdfs://127.0.0.1:{port}"
        self._environment = {**os.environ, "PEER_HOME": str(home), "PEER_PORT": str(port)}
        self._environment["PYTHON"] = sys.executable

    def run(self, *arguments: str, fs: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self._environment, **more}
        if fs:
            environment["FS"] = fs
        return subprocess.run(
            [str(PEER), *arguments], env=environment, text=True, capture_output=True, check=False
        )

    def start(self) -> None:
        home = Path(self._environment["PEER_HOME"])
        if not (home / "classes" / "MetaBench.class").exists():
            show("installing Apache HDFS 3.3.6 (about a minute)")
            check(self.run("install"))
        if not (home / "classes" / "TurnsBench.class").exists():
            check(self.run("build"))
        check(self.run("configure"))  # for our port
        check(self.run("format"))
        check(self.run("start"))

    def stop(self) -> None:
        self.run("stop")

    def pids(self) -> str:
        return self.run("pids").stdout.strip()


class Cairn(Server):
    name = CAIRNFS

    def __init__(self, directory: Path) -> None:
        # As patient as nodes are unless told otherwise, and not as tests need them.
        self._cluster = Cluster(
            directory, datanodes=3, heartbeat_s=3.0, stale_after_s=30.0, dead_after_s=630.0
        )
        self.url = self._cluster.uri

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.close()

    def pids(self) -> str:
        nodes = (*self._cluster.namenodes, *self._cluster.datanodes)
        return ",".join(str(node.pid) for node in nodes)


def main() -> int:
    options = parse()
    RESULTS.mkdir(exist_ok=True)
    results: dict[str, Any] = {"machine": machine(), "meta": [], "data": [], "flush": []}
    with clusters(options) as (hdfs, cairn):
        for round_ in range(options.rounds):
            order = (hdfs, cairn) if round_ % 2 == 0 else (cairn, hdfs)
            if "meta" in options.only:
                results["meta"] += measure_meta(hdfs, order, options, round_)
            for server in order:
                if "data" in options.only:
                    results["data"] += measure_data(hdfs, server, options, round_)
                if "flush" in options.only:
                    results["flush"] += measure_flush(hdfs, server, round_)
            (RESULTS / "against_hdfs.json").write_text(json.dumps(results, indent=1))
    print_meta(results["meta"])
    print_data(results["data"])
    print_flush(results["flush"])
    show(f"every figure is in {(RESULTS / 'against_hdfs.json').relative_to(HERE.parent)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-peer", description=__doc__)
    parts = ["meta", "data", "flush"]
    parser.add_argument("--only", nargs="+", default=parts, choices=parts)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--layouts", nargs="+", default=["spread", "one"])
    parser.add_argument("--operations", type=int, default=20_000, help="of each kind, 32 threads")
    parser.add_argument("--mib", type=int, default=1024, help="size of the sequential file")
    parser.add_argument(
        "--peer-home", type=Path, default=Path.home() / ".cache" / "hdfs-peer", help="of HDFS"
    )
    return parser.parse_args()


@contextmanager
def clusters(options: argparse.Namespace) -> Iterator[tuple[RealHdfs, Cairn]]:
    """Both clusters, up; and gone when it is over, however it ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="cairnfs-bench-") as directory:
        hdfs, cairn = RealHdfs(options.peer_home, 29000), Cairn(Path(directory, "cairnfs"))
        try:
            show("starting both clusters")
            hdfs.start()
            cairn.start()
            yield hdfs, cairn
        finally:
            hdfs.stop()
            cairn.stop()


def measure_meta(
    hdfs: RealHdfs, servers: tuple[Server, ...], options: argparse.Namespace, round_: int
) -> list[dict[str, Any]]:
    found = []
    specs = [f"{server.name}={server.url}={server.pids()}" for server in servers]
    for layout in options.layouts:
        for threads in options.threads:
            count = options.operations if threads > 1 else max(1000, options.operations // 4)
            show(f"round {round_ + 1}: metadata, {layout}, {threads} threads")
            sizes = (layout, str(threads), str(count // TURNS), str(TURNS))
            found += load(hdfs, "TurnsBench", *sizes, *specs)
    return [{"round": round_, **row} for row in found]


def measure_data(
    hdfs: RealHdfs, server: Server, options: argparse.Namespace, round_: int
) -> list[dict[str, Any]]:
    found = []
    for replication in ("1", "3"):
        show(f"round {round_ + 1}: {server.name}, {options.mib} MiB, {replication} replicas")
        arguments = ("seq", replication, str(options.mib), "1")
        found += load(hdfs, "DataBench", server.url, server.pids(), *arguments)
    for count, threads in ((200, 1), (1000, 8), (1000, 32)):
        show(f"round {round_ + 1}: {server.name}, small files, {threads} threads")
        arguments = ("small", str(count), "10", str(threads), "1", "1")
        found += load(hdfs, "DataBench", server.url, server.pids(), *arguments)
    return [{"server": server.name, "round": round_, **row} for row in found]


def measure_flush(hdfs: RealHdfs, server: Server, round_: int) -> list[dict[str, Any]]:
    found = []
    for replication in ("1", "3"):
        show(f"round {round_ + 1}: {server.name}, small flushes, {replication} replicas")
        arguments = (str(FLUSHED_RECORDS), str(FLUSHED_BYTES), replication, "1")
        found += load(hdfs, "FlushBench", server.url, server.pids(), *arguments)
    return [{"server": server.name, "round": round_, **row} for row in found]


def load(hdfs: RealHdfs, program: str, *arguments: str) -> list[dict[str, Any]]:
    """Run a load generator; its lines of JSON."""
    done = hdfs.run("client", program, *arguments)
    check(done)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [row for row in rows if row["rep"] >= 0]


def print_meta(rows: list[dict[str, Any]]) -> None:
    """Throughput and server CPU beside each other."""
    if not rows:
        return
    print(f"\n{'':8}{'':>4} {'':11}{'ops/s':>18}{'':9}{'server CPU us/op':>18}")
    print(f"{'layout':8}{'thr':>4} {'operation':11}{HDFS:>9}{CAIRNFS:>9}{'ratio':>8}"
          f"{HDFS:>10}{CAIRNFS:>9}{'p99 us':>16}")  # fmt: skip
    for layout, threads, op in dict.fromkeys((r["layout"], r["threads"], r["op"]) for r in rows):
        mine = [r for r in rows if (r["layout"], r["threads"], r["op"]) == (layout, threads, op)]
        rate, cpu, p99 = (by_server(mine, f) for f in ("ops_s", "server_cpu_s_per_1000", "p99_us"))
        ratio = ratio_of_turns(mine)
        bar = META_BARS.get(op) if threads == 32 else None
        verdict = "" if bar is None else f"  {'>=' if ratio >= bar else 'BELOW'} {bar}"
        print(
            f"{layout:8}{threads:>4} {op:11}{rate[HDFS]:>9.0f}{rate[CAIRNFS]:>9.0f}{ratio:>8.2f}"
            f"{1000 * cpu[HDFS]:>10.0f}{1000 * cpu[CAIRNFS]:>9.0f}"
            f"{p99[HDFS]:>8.0f}{p99[CAIRNFS]:>8.0f}{verdict}"
        )


def print_data(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    print(f"\n{'data':34}{HDFS:>10}{CAIRNFS:>10}{'ratio':>8}")
    for kind, more in (("seq", ("repl",)), ("small", ("threads",))):
        mine = [row for row in rows if row["test"] == kind]
        fields = (
            ("write_MiB_s", "read_MiB_s") if kind == "seq" else ("write_files_s", "read_files_s")
        )
        for value in dict.fromkeys(row[more[0]] for row in mine):
            for field in fields:
                found = by_server([row for row in mine if row[more[0]] == value], field)
                if len(found) == 2:
                    name = f"{kind}, {more[0]} {value}, {field}"
                    ratio = found[CAIRNFS] / found[HDFS]
                    print(f"{name:34}{found[HDFS]:>10.1f}{found[CAIRNFS]:>10.1f}{ratio:>8.2f}")


def print_flush(rows: list[dict[str, Any]]) -> None:
    """A writer that flushes after each record."""
    if not rows:
        return
    print(f"\n{f'flushes of {FLUSHED_BYTES} bytes':34}{HDFS:>10}{CAIRNFS:>10}{'ratio':>8}")
    for replication in dict.fromkeys(row["repl"] for row in rows):
        mine = [row for row in rows if row["repl"] == replication]
        for field in ("records_s", "p50_us", "p99_us"):
            found = by_server(mine, field)
            ratio = found[CAIRNFS] / found[HDFS]
            name = f"{replication} replicas, {field}"
            bar = f"  {'>=' if ratio >= FLUSH_BAR else 'BELOW'} {FLUSH_BAR}"
            verdict = bar if field == "records_s" else ""
            print(f"{name:34}{found[HDFS]:>10.1f}{found[CAIRNFS]:>10.1f}{ratio:>8.2f}{verdict}")


def ratio_of_turns(rows: list[dict[str, Any]]) -> float:
    """The median of the ratios of neighbours."""
    rates = {(row["round"], row["rep"], row["server"]): row["ops_s"] for row in rows}
    turns = dict.fromkeys((row["round"], row["rep"]) for row in rows)
    return statistics.median(rates[*turn, CAIRNFS] / rates[*turn, HDFS] for turn in turns)


def by_server(rows: list[dict[str, Any]], field: str) -> dict[str, float]:
    """The median of a field, for each server."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["server"], []).append(row[field])
    return {server: statistics.median(each) for server, each in values.items()}


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def check(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise SystemExit(f"bench-peer: {' '.join(done.args[1:3])} failed:\n{done.stderr[-2000:]}")


def show(text: str) -> None:
    print(f"bench-peer: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
