"""A whole namespace as a DataFrame, beside Hadoop's recursive listing.

By `python -m benchmarks.spark_scan`.

Namespaces of growing sizes are counted by directory, with one and two cores for Spark:

- **scan**: the table `inodes` of the data source, the one column that it takes;
- **all columns**: the same table, every column of it made and thrown away;
- **listing**: Hadoop's Java client walks the tree (`hdfs dfs -find`, which prints nothing here), in
  the same process that Spark runs in, so without the start of a JVM;
- **Parquet**: Spark reads what it has exported of the same table before.

All take turns on one NameNode with SQLite.  Times are medians of the rounds; CPU seconds
are of all processes together, the NameNode's too, and hold on a busy machine as well.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.sessions import make_session

from benchmarks.machine import cpu_s, describe_machine, heap_mb, peak_mb, processes_below
from benchmarks.namespaces import FILES_OF_A_DIRECTORY, TOP, fill_cluster
from benchmarks.tables import table
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).resolve().parent / "results" / "spark_scan.json"
BAR = 10.0  # how many times as fast as the listing, at least

Figures = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="cairn-bench-", dir=options.directory) as directory:
        machine = describe_machine(Path(directory), None)
        sizes = [
            figures
            for n, inodes in enumerate(options.inodes)
            for figures in measure(
                Path(directory), inodes, options.cores, options.rounds, is_first=n == 0
            )
        ]
    print(render(sizes))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine, "sizes": sizes}, indent=1) + "\n")
    print(f"\nAll figures: {options.json}")
    return 0


def measure(
    directory: Path, inodes: int, cores: Sequence[int], rounds: int, *, is_first: bool = True
) -> list[Figures]:
    """One namespace, with each number of cores."""
    with Cluster(directory / f"cluster{inodes}", datanodes=0) as cluster:
        directories = fill_cluster(cluster, inodes)
        found: list[Figures] = []
        for count in cores:
            local = directory / f"spark{inodes}-{count}"
            settings = {
                "spark.master": f"local[{count}]",
                "spark.driver.memory": "2g",
                "spark.ui.showConsoleProgress": "false",
            }
            spark = make_session(cluster.hadoop_settings(), local, settings)
            try:
                scan = _Scan(spark, cluster, local, directories)
                figures = scan.run(rounds, is_first=is_first and not found)
                found.append({"inodes": inodes, "cores": count, **figures})
                print(render(found[-1:]), flush=True)
            finally:
                spark.stop()
        return found


class _Scan:
    """The ways to count what is in each directory, with one session."""

    def __init__(
        self, spark: SparkSession, cluster: Cluster, local: Path, directories: int
    ) -> None:
        self._spark = spark
        self._url = f"{cluster.uri}/{TOP}"
        self._parquet = f"file://{local}/inodes.parquet"
        self._directories = directories
        self._namenode = cluster.namenodes[0].pid

    def _cpu_s(self) -> float:
        """CPU seconds of the NameNode, and of this process with all that it has started."""
        return sum(cpu_s(pid) for pid in (self._namenode, *processes_below(os.getpid())))

    def run(self, rounds: int, *, is_first: bool) -> Figures:
        self._inodes("parent string").write.mode("overwrite").parquet(self._parquet)
        ways: dict[str, Callable[[], None]] = {
            "scan": self._scan,
            "all_columns": self._scan_all_columns,
            "listing": self._list,
            "parquet": self._read_parquet,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for name, way in ways.items():  # all code is loaded once before it counts
            if is_first or name != "listing":  # whose code stays with the JVM
                way()
        for _ in range(rounds):
            for name, way in ways.items():
                start, used = time.perf_counter(), self._cpu_s()
                way()
                times[name].append(time.perf_counter() - start)
                cpu[name].append(self._cpu_s() - used)
        figures: Figures = {f"{name}_s": statistics.median(took) for name, took in times.items()}
        figures |= {f"{name}_cpu_s": statistics.median(used) for name, used in cpu.items()}
        figures["times_as_fast"] = figures["listing_s"] / figures["scan_s"]
        figures["driver_heap_mb"] = heap_mb(self._spark)
        figures["driver_python_mb"] = peak_mb()
        return figures

    def _inodes(self, schema: str = "") -> DataFrame:
        reader = self._spark.read.format("cairn")
        return (reader.schema(schema) if schema else reader).load(self._url)

    def _scan(self) -> None:
        self._count(self._inodes("parent string"))

    def _scan_all_columns(self) -> None:
        self._inodes().write.format("noop").mode("overwrite").save()

    def _read_parquet(self) -> None:
        self._count(self._spark.read.parquet(self._parquet))

    def _count(self, inodes: DataFrame) -> None:
        found = inodes.groupBy("parent").count().where(f"count = {FILES_OF_A_DIRECTORY}").count()
        assert found >= self._directories, f"{found} of {self._directories} directories"

    def _list(self) -> None:
        jvm = self._spark.sparkContext._jvm
        assert jvm is not None
        hadoop = jvm.org.apache.hadoop
        words = ("-find", f"/{TOP}", "-name", "nothing is called this")
        given = self._spark.sparkContext._gateway.new_array(jvm.String, len(words))
        for n, word in enumerate(words):
            given[n] = word
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()
        status = hadoop.util.ToolRunner.run(hadoop.fs.FsShell(configuration), given)
        assert status == 0, f"the listing ended with {status}"


def render(sizes: Sequence[Figures]) -> str:
    """A table, and the bar at the largest size up to a million inodes that was measured."""
    times = ("scan_s", "all_columns_s", "listing_s", "parquet_s")
    cpu_times = ("scan_cpu_s", "listing_cpu_s", "parquet_cpu_s")
    others = ("times_as_fast", "driver_heap_mb", "driver_python_mb")
    names = ("inodes", "cores", *times, *cpu_times, *others)
    heads = [name.replace("_s", " s").replace("_", " ") for name in names]
    text = table(heads, ([figures[name] for name in names] for figures in sizes))
    judged = max(
        (each for each in sizes if each["inodes"] <= 1_000_000),
        key=lambda each: (each["inodes"], each["cores"]),
        default=None,
    )
    if judged is None:
        return text
    verdict = "passed" if judged["times_as_fast"] >= BAR else "FAILED"
    return (
        f"{text}\n\n{verdict}: with {judged['inodes']:,} inodes {judged['times_as_fast']:.1f} times"
        f" as fast as Hadoop's recursive listing; the bar is {BAR:g}"
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_scan", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--inodes", type=_numbers, default=(100_000, 1_000_000, 2_000_000))
    parser.add_argument("--cores", type=_numbers, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--directory", type=Path, help="where the SQLite files are made")
    return parser.parse_args(arguments)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    raise SystemExit(main())
