"""`make bench-peer`: a real Apache HDFS and CairnFS side by side, in one run.

Both are the same kind of cluster (one NameNode, three DataNodes, loopback, this disk), both
are driven by the same load generators through Hadoop's own client (`peer/`), and they take
turns, so that a disturbance meets both: metadata within a second, since a machine may be twice as
fast a minute later.  What counts are the ratios, of phases that are neighbours.

Restarts come after everything else, once, on clusters of their own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.restarts import measure_restarts, restarts_table
from benchmarks.servers import CAIRNFS, HDFS, RealHdfs, Server, both_servers, load, show

HERE = Path(__file__).parent
RESULTS = HERE / "results"
RESULTS_FILE = RESULTS / "against_hdfs.json"

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
PARTS = ("meta", "data", "flush", "restart")
SEQUENTIAL_BAR = 0.6
SMALL_BARS = {("write_files_s", 1): 10.0}  # by the number of threads
FLUSH_BAR = 0.6
FLUSHED_RECORDS = 5000
FLUSHED_BYTES = 100
TURNS = 8  # of each operation, for each round


def main() -> int:
    options = parse()
    RESULTS.mkdir(exist_ok=True)
    results: dict[str, Any] = {
        "machine": describe_machine(RESULTS, None),
        **{part: [] for part in PARTS},
    }
    if set(options.only) - {"restart"}:
        measure_rounds(results, options)
    if "restart" in options.only:
        with both_servers(options.peer_home) as servers:
            results["restart"] = measure_restarts(*servers, options.files)
        save(results)
    print_meta(results["meta"])
    print_data(results["data"])
    print_flush(results["flush"])
    if results["restart"]:
        print(f"\n{restarts_table(results['restart'])}")
    show(f"every figure is in {RESULTS_FILE.relative_to(HERE.parent)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-peer", description=__doc__)
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--rounds", type=int, default=2, help="of all parts but restart")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--layouts", nargs="+", default=["spread", "one"])
    parser.add_argument("--operations", type=int, default=20_000, help="of each kind, 32 threads")
    parser.add_argument("--files", type=int, default=100_000, help="when NameNodes are restarted")
    parser.add_argument("--mib", type=int, default=1024, help="size of the sequential file")
    parser.add_argument(
        "--peer-home", type=Path, default=Path.home() / ".cache" / "hdfs-peer", help="of HDFS"
    )
    return parser.parse_args()


def measure_rounds(results: dict[str, Any], options: argparse.Namespace) -> None:
    """Every part but restarts, as often as there are rounds."""
    with both_servers(options.peer_home) as (hdfs, cairn):
        for round_ in range(options.rounds):
            order = (hdfs, cairn) if round_ % 2 == 0 else (cairn, hdfs)
            if "meta" in options.only:
                results["meta"] += measure_meta(hdfs, order, options, round_)
            for server in order:
                if "data" in options.only:
                    results["data"] += measure_data(hdfs, server, options, round_)
                if "flush" in options.only:
                    results["flush"] += measure_flush(hdfs, server, round_)
            save(results)


def save(results: dict[str, Any]) -> None:
    RESULTS_FILE.write_text(json.dumps(results, indent=1))


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
        sizes = (str(options.mib), "1")
        found += load(hdfs, "DataBench", server.url, server.pids(), "seq", replication, *sizes)
    for count, threads in ((200, 1), (1000, 8), (1000, 32)):
        show(f"round {round_ + 1}: {server.name}, small files, {threads} threads")
        files = (str(count), "10", str(threads), "1", "1")
        found += load(hdfs, "DataBench", server.url, server.pids(), "small", *files)
    return [{"server": server.name, "round": round_, **row} for row in found]


def measure_flush(hdfs: RealHdfs, server: Server, round_: int) -> list[dict[str, Any]]:
    found = []
    for replication in ("1", "3"):
        show(f"round {round_ + 1}: {server.name}, small flushes, {replication} replicas")
        arguments = (str(FLUSHED_RECORDS), str(FLUSHED_BYTES), replication, "1")
        found += load(hdfs, "FlushBench", server.url, server.pids(), *arguments)
    return [{"server": server.name, "round": round_, **row} for row in found]


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
        print(
            f"{layout:8}{threads:>4} {op:11}{rate[HDFS]:>9.0f}{rate[CAIRNFS]:>9.0f}{ratio:>8.2f}"
            f"{1000 * cpu[HDFS]:>10.0f}{1000 * cpu[CAIRNFS]:>9.0f}"
            f"{p99[HDFS]:>8.0f}{p99[CAIRNFS]:>8.0f}{verdict(ratio, bar)}"
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
                    bar = SEQUENTIAL_BAR if kind == "seq" else SMALL_BARS.get((field, value))
                    print(compared(name, found, bar))


def print_flush(rows: list[dict[str, Any]]) -> None:
    """A writer that flushes after each record."""
    if not rows:
        return
    print(f"\n{f'flushes of {FLUSHED_BYTES} bytes':34}{HDFS:>10}{CAIRNFS:>10}{'ratio':>8}")
    for replication in dict.fromkeys(row["repl"] for row in rows):
        mine = [row for row in rows if row["repl"] == replication]
        for field in ("records_s", "p50_us", "p99_us"):
            found = by_server(mine, field)
            bar = FLUSH_BAR if field == "records_s" else None
            print(compared(f"{replication} replicas, {field}", found, bar))


def compared(name: str, found: dict[str, float], bar: float | None) -> str:
    """A line of a table."""
    ratio = found[CAIRNFS] / found[HDFS]
    return f"{name:34}{found[HDFS]:>10.1f}{found[CAIRNFS]:>10.1f}{ratio:>8.2f}{verdict(ratio, bar)}"


def verdict(ratio: float, bar: float | None) -> str:
    return "" if bar is None else f"  {'>=' if ratio >= bar else 'BELOW'} {bar}"


def ratio_of_turns(rows: list[dict[str, Any]]) -> float:
    """The median of the ratios of neighbours."""
    rates: dict[tuple[Any, ...], float] = {
        (row["round"], row["rep"], row["server"]): row["ops_s"] for row in rows
    }
    turns = dict.fromkeys((row["round"], row["rep"]) for row in rows)
    return statistics.median(rates[*turn, CAIRNFS] / rates[*turn, HDFS] for turn in turns)


def by_server(rows: list[dict[str, Any]], field: str) -> dict[str, float]:
    """The median of a field, for each server."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["server"], []).append(row[field])
    return {server: statistics.median(each) for server, each in values.items()}


if __name__ == "__main__":
    sys.exit(main())
