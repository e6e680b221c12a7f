"""Spark sessions that use a cluster, as small and quiet as they can be."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_session(
    hadoop_settings: Mapping[str, str], local: Path, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """`hadoop_settings` are a client's; `local` is for what Spark keeps on this machine."""
    from pyspark.sql import SparkSession

    # What Spark starts to look for data sources must have them, too.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("cairnfs-tests")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(local),
        "spark.sql.warehouse.dir": str(local / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # A Python that is started on a busy machine needs longer than 15 seconds.
        "spark.python.authenticate.socketTimeout": "300s",
        "spark.sql.catalogImplementation": "in-memory",
        **{f"spark.hadoop.{name}": value for name, value in hadoop_settings.items()},
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
