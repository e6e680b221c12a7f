"""The story of the product, with a cluster, Spark and Hadoop's own shell in a temporary folder.

    make demo

Starts a NameNode and three DataNodes, writes a table to `hdfs://` with Spark, takes snapshots,
lets a bad job damage the table, shows what has changed, goes back in place, checks every value,
lists everything with Hadoop's FsShell, shows figures, stops everything.

Invariant: however it ends, no process and no file of it is left.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from cairnfs.cli.errors import CommandError
from cairnfs.cli.local_cluster import LocalCluster
from cairnfs.cli.output import format_bytes
from cairnfs.demo_spark import INNER, TABLE, Figures
from cairnfs.demo_words import say, title
from cairnfs.errors import UnsupportedOperationException
from cairnfs.java import find_java

ROWS = 1_000_000
WAREHOUSE = "/warehouse"
SHOWN_LINES_MAX = 12
JVM_OPTIONS = ("-XX:-UsePerfData", "-XX:+UseSerialGC")  # no traces in /tmp; few threads
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Nothing of a Hadoop or Spark that may be configured on this machine.
FOREIGN_SETTINGS = (
    "HADOOP_CONF_DIR",
    "HADOOP_HOME",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "YARN_CONF_DIR",
)
# The root at "warn", or Spark says that it changes it.
QUIET = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
logger.hadoop.name = org.apache.hadoop
logger.hadoop.level = error
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="make demo", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"to write ({ROWS:,})")
    given = parser.parse_args(arguments)
    try:
        with _stoppable():
            java = find_java()
            jars = find_jars()
            with tempfile.TemporaryDirectory(prefix="cairnfs-demo-") as folder:
                _run(Path(folder), java, jars, max(1, given.rows))
    except (CommandError, UnsupportedOperationException) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; everything was stopped and removed", file=sys.stderr)
        return 130
    return 0


def find_jars() -> Path:
    """Where PySpark keeps Spark and Hadoop's client."""
    try:
        import pyspark
    except ModuleNotFoundError:
        raise CommandError(
            "PySpark is missing: `make demo` installs it, as does pip install 'cairnfs[spark]'"
        ) from None
    return Path(pyspark.__file__).parent / "jars"


def _run(folder: Path, java: str, jars: Path, rows: int) -> None:
    cluster = LocalCluster(folder / "cluster")
    try:
        title("A cluster: one NameNode, three DataNodes, one command")
        cluster.up(base_port=random.randrange(21_000, 21_900, 20), say=say)
        (cluster.conf / "log4j2.properties").write_text(QUIET)
        title(f"Spark writes {rows:,} rows of Parquet to {cluster.uri}, and reads them back")
        figures = _run_spark(folder, cluster, rows)
        title("Hadoop's own shell sees the same, now and in the snapshot")
        shell = (
            java,
            *JVM_OPTIONS,
            "-cp",
            f"{cluster.conf}:{jars}/*",
            "org.apache.hadoop.fs.FsShell",
        )
        table = f"{WAREHOUSE}/{TABLE}"
        _list(shell, table)
        _list(shell, f"{table}/.snapshot/{INNER}/day=1")
        title("In figures")
        _show(figures, *_count(shell))
    except CommandError:
        _show_logs(cluster)
        raise
    finally:
        # A second Ctrl-C must not leave processes behind.
        for number in STOPPING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if cluster.exists:
            cluster.down()
    print("\nStopped; nothing is left.  `make cluster` starts a cluster that stays.")


def _show_logs(cluster: LocalCluster) -> None:
    """What the nodes said last, since the logs go with the folder."""
    for log in sorted(cluster.directory.glob("logs/*.log")):
        print(f"\n{log.name} ends with", file=sys.stderr)
        for line in log.read_text(errors="replace").splitlines()[-SHOWN_LINES_MAX:]:
            print(f"  {line}", file=sys.stderr)


@contextmanager
def _stoppable() -> Iterator[None]:
    """End by an exception, as Ctrl-C does, also when asked to by a signal."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in STOPPING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Spark


def _run_spark(folder: Path, cluster: LocalCluster, rows: int) -> Figures:
    """Run the other half, with nothing of it outside of the folder.

    In a session of its own, so that it ends with its JVM, wherever it is interrupted.
    """
    scratch = folder / "spark"
    scratch.mkdir()
    figures = folder / "figures.json"
    module = [sys.executable, "-P", "-m", "cairnfs.demo_spark"]
    child = subprocess.Popen(
        [*module, str(cluster.directory), WAREHOUSE, str(rows), str(figures)],
        cwd=scratch,  # where Spark puts what it has no other place for
        env=_spark_environment(scratch, cluster),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if child.wait() != 0:
            raise CommandError("Spark has failed; above is why")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return msgspec.json.decode(figures.read_bytes(), type=Figures)


def _spark_environment(scratch: Path, cluster: LocalCluster) -> dict[str, str]:
    java_options = " ".join((*JVM_OPTIONS, f"-Djava.io.tmpdir={scratch}"))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": cluster.conf,
        "spark.driver.extraJavaOptions": java_options,
        "spark.sql.shuffle.partitions": 8,
        "spark.sql.warehouse.dir": scratch / "warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    arguments = ["--master", "local[2]"]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*arguments, "pyspark-shell"]),
        "PYTHONWARNINGS": "ignore::FutureWarning",  # of PySpark, about pandas
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SPARK_LAUNCHER_OPTS": java_options,
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(scratch),
    }
    for name in FOREIGN_SETTINGS:
        environment.pop(name, None)
    return environment


# Hadoop's shell, and figures


def _list(shell: tuple[str, ...], path: str) -> None:
    lines = _call(*shell, "-ls", "-R", path).splitlines()
    say(f"$ hdfs dfs -ls -R {path}")
    for line in lines[:SHOWN_LINES_MAX]:
        say(line)
    if len(lines) > SHOWN_LINES_MAX:
        say(f"... and {len(lines) - SHOWN_LINES_MAX} more")


def _count(shell: tuple[str, ...]) -> tuple[int, int, int]:
    """Directories, files, bytes."""
    directories, files, size, _ = _call(*shell, "-count", f"{WAREHOUSE}/{TABLE}").split()
    return int(directories), int(files), int(size)


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"`{' '.join(command[-3:])}` failed: {done.stderr.strip()}")
    return done.stdout


def _show(figures: Figures, directories: int, files: int, size: int) -> None:
    calls = sorted(figures.calls.items(), key=lambda call: -call[1])
    copies = sum(figures.replicas.values()) / max(1, files - 1)  # _SUCCESS is empty
    rows = {
        "rows": f"{figures.content.rows:,}",
        "files": f"{files} in {directories} directories",
        "bytes": f"{format_bytes(size)}; each block has {copies:.0f} replicas",
        "write": f"{figures.write_s:.1f} s, {size / 1e6 / figures.write_s:.0f} MB/s",
        "read": f"{figures.read_s:.1f} s, {size / 1e6 / figures.read_s:.0f} MB/s",
        "snapshots": f"{figures.snapshot_s * 1000:.1f} ms, both of them",
        "differences": f"{figures.changes} in {figures.diff_s * 1000:.1f} ms",
        "roll-back": f"{figures.rollback_s * 1000:.1f} ms",
        "verification": f"{figures.verify_s:.1f} s, all rows",
        "replicas": ", ".join(f"{count} on {name}" for name, count in figures.replicas.items()),
        "client calls": f"{sum(figures.calls.values())}: "
        + ", ".join(f"{name} {count}" for name, count in calls),
    }
    for name, value in rows.items():
        say(f"{name:13} {value}")


if __name__ == "__main__":
    sys.exit(main())
