"""What the driver of a job gets to see of a namespace, as that grows.

By `python -m benchmarks.spark_driver`.

Jobs that look at everything below a directory are run on namespaces of growing sizes:

- **usage**, with all of its tables;
- **fsck**;
- **backup**, as a dry run, which plans all of it.

How many bytes the tasks have sent to the driver, Spark's own UI tells, stage by stage; for
the stage with the most of them, how many there were.  Then what is left in the driver's heap,
and the most that its Python has ever had: neither may grow with the namespace.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.sessions import make_session

import cairnfs
from benchmarks.machine import describe_machine, heap_mb, peak_mb
from benchmarks.namespaces import TOP, fill_cluster
from benchmarks.tables import table
from cairnfs import jobs
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).resolve().parent / "results" / "spark_driver.json"

Figures = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="cairn-bench-", dir=options.directory) as name:
        directory = Path(name)
        machine = describe_machine(directory, None)
        figures = [row for inodes in options.inodes for row in measure(directory, inodes)]
    print(render(figures))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n")
    print(f"\nAll figures: {options.json}")
    return 0


def measure(directory: Path, inodes: int) -> list[Figures]:
    """Each job once, in one session, on one namespace."""
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.retainedStages": "100000",
        "spark.ui.showConsoleProgress": "false",
    }
    with Cluster(directory / f"cluster{inodes}", datanodes=0) as cluster:
        fill_cluster(cluster, inodes)
        local = directory / f"spark{inodes}"
        spark = make_session(cluster.hadoop_settings(), local, settings)
        try:
            return [
                {"inodes": inodes, "job": name, **_run(spark, job)}
                for name, job in _jobs(spark, f"{cluster.uri}/{TOP}", local).items()
            ]
        finally:
            spark.stop()


def _jobs(spark: SparkSession, url: str, local: Path) -> dict[str, Callable[[], object]]:
    def plan_backup() -> None:
        with cairnfs.connect(url) as fs:
            fs.allow_snapshot(f"/{TOP}")
            fs.create_snapshot(f"/{TOP}", "s")
        jobs.plan_backup(url, "s", f"file://{local}/backups", spark=spark)

    return {
        "usage": lambda: jobs.usage(url, output=f"file://{local}/usage", spark=spark),
        "fsck": lambda: jobs.fsck(url, spark=spark),
        "backup": plan_backup,
    }


def _run(spark: SparkSession, job: Callable[[], object]) -> Figures:
    earlier = {stage["stageId"] for stage in _stages(spark)}
    start = time.perf_counter()
    job()
    took_s = time.perf_counter() - start
    stages = [stage for stage in _stages(spark) if stage["stageId"] not in earlier]
    most = max(stages, key=lambda stage: int(stage["resultSize"]))
    return {
        "s": took_s,
        "stages": len(stages),
        "tasks": sum(stage["numCompleteTasks"] for stage in stages),
        "sent_kb": sum(stage["resultSize"] for stage in stages) / 1e3,
        "most_sent_kb": most["resultSize"] / 1e3,
        "by_tasks": most["numCompleteTasks"],
        "driver_heap_mb": heap_mb(spark),
        "driver_python_mb": peak_mb(),
    }


def _stages(spark: SparkSession) -> list[dict[str, Any]]:
    """What the UI tells of the stages that have ended; it may be a moment late."""
    context = spark.sparkContext
    time.sleep(1)
    assert context.uiWebUrl is not None
    port = context.uiWebUrl.rsplit(":", 1)[1]
    url = f"http://127.0.0.1:{port}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(f"{url}?status=complete") as reply:
        stages: list[dict[str, Any]] = json.load(reply)
    return stages


def render(figures: Sequence[Figures]) -> str:
    sent = ("sent_kb", "most_sent_kb", "by_tasks")
    names = ("job", "inodes", "s", "stages", "tasks", *sent, "driver_heap_mb", "driver_python_mb")
    ordered = sorted(figures, key=lambda each: each["job"])
    heads = [name.replace("_", " ") for name in names]
    return table(heads, ([each[name] for name in names] for each in ordered))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_driver", description=__doc__.split("\n\n")[0]
    )
    sizes = (100_000, 1_000_000, 2_000_000)
    parser.add_argument("--inodes", type=int, nargs="+", default=sizes)
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--directory", type=Path, help="where the SQLite files are made")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
