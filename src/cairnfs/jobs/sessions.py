"""What every job is run with: a Spark session, the caller's or its own, and who is told of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from cairnfs.errors import IOException, UnsupportedOperationException
from cairnfs.java import find_java
from cairnfs.jobs.batches import BatchSize
from cairnfs.jobs.progress import ProgressCallback, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
}
_STDERR = 2
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "32",  # 200, for a cluster, are a second or two each time
}


class Options(TypedDict, total=False):
    """What every job can be told."""

    user: str  # in whose name; else HADOOP_USER_NAME, or whoever runs this
    spark: SparkSession  # to run in; else the active one, or one that is made
    master: str  # of the one that is made
    settings: Mapping[str, str]  # of the one that is made
    log: Path  # to which the one that is made writes what Spark says; else standard error
    progress: ProgressCallback
    batch: BatchSize


class Run(NamedTuple):
    """A job under way."""

    spark: SparkSession
    tell: ProgressCallback
    batch: BatchSize


@contextmanager
def running(name: str, options: Options) -> Iterator[Run]:
    """Run a job; a session that is made for it is ended afterwards."""
    tell, batch = options.get("progress", silent), options.get("batch", BatchSize())
    found = options.get("spark") or _find()
    if found is not None:
        yield Run(found, tell, batch)
        return
    master = options.get("master", DEFAULT_MASTER)
    with _stderr_to(options.get("log")):
        made = _make(master, options.get("settings", {}), name)
    try:
        yield Run(made, tell, batch)
    finally:
        made.stop()


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Whatever is started meanwhile has a file for its standard error: Java and Spark talk much."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _find() -> SparkSession | None:
    """The session of whoever calls, as in a notebook."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedOperationException(
            "jobs run on Spark, which is not installed: pip install 'cairnfs[spark]'"
        ) from None
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # of another thread
    return active


def _make(master: str, settings: Mapping[str, str], name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    # Tasks need our package, which the Python that runs this has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(f"cairn job {name}")
    chosen = {**_QUIET, **(_LOCAL if master.startswith("local") else {}), **settings}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        find_java()  # or it says what to do
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise IOException(f"Spark does not start on {master}: {first}") from None
