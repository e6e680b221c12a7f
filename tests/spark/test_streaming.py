"""A stream with source, checkpoint, sink and event log on the cluster, killed and gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.drivers import run_driver
from tests.spark.files import Files

from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

FILES = 16
ROWS = 50  # of a file
DRIVER = Path(__file__).parent / "streaming_driver.py"


def test_a_stream_goes_on_after_its_driver_was_killed(
    spark: SparkSession, cluster: Cluster, directory: str, tmp_path: Path
) -> None:
    """Every row of the source is in the sink exactly once, as if nothing had happened."""
    spark.range(0, FILES * ROWS, numPartitions=FILES).write.parquet(f"{directory}/source")
    files = Files(spark)
    logs = f"{directory}/logs"
    files.make_directory(logs)

    def commits() -> int:
        return len({n for n in files.names(f"{directory}/checkpoint/commits") if n.isdigit()})

    def arguments(name: str, *, rolling: bool) -> Path:
        given = {
            "hadoop": cluster.hadoop_settings(),
            "spark": {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": f"{cluster.uri}{logs}",
                "spark.eventLog.compress": "false",
                "spark.eventLog.rolling.enabled": str(rolling).lower(),
            },
            "directory": directory,
            "local": str(tmp_path),
        }
        path = tmp_path / name
        path.write_text(json.dumps(given))
        return path

    run_driver(DRIVER, arguments("killed", rolling=False), until=lambda: commits() >= 3)
    assert commits() < FILES
    [killed] = files.names(logs)
    # The log is as its writer left it, open and without an end, and readers see what was flushed.
    assert killed.endswith(".inprogress")
    events = read_events(files.read_text(f"{logs}/{killed}"))
    assert "SparkListenerJobEnd" in events
    assert "SparkListenerApplicationEnd" not in events

    application = run_driver(DRIVER, arguments("whole", rolling=True), until=None)
    # One less than files if it was killed before it had put down what the next batch would be.
    assert commits() in (FILES - 1, FILES)
    sink = spark.read.parquet(f"{directory}/sink")
    assert sorted(row.id for row in sink.collect()) == list(range(FILES * ROWS))
    log = f"{logs}/eventlog_v2_{application}"
    [part] = {name for name in files.names(log) if name.startswith("events_")}
    events = read_events(files.read_text(f"{log}/{part}"))
    assert events.count("SparkListenerJobStart") == events.count("SparkListenerJobEnd") > 0
    assert "SparkListenerApplicationEnd" in events


def read_events(log: str) -> list[str]:
    """The events of a log, but for the last line, which may be cut."""
    lines = log[: log.rfind("\n") + 1].splitlines()
    return [json.loads(line)["Event"] for line in lines]
