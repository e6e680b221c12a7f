"""Files of the cluster as Hadoop's own client in Spark's JVM sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """A FileSystem of Hadoop."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        jsc: Any = spark._jsc
        self.configuration = jsc.hadoopConfiguration()
        self._path = jvm.org.apache.hadoop.fs.Path
        self._to_string = jvm.org.apache.commons.io.IOUtils.toString
        self._files = jvm.org.apache.hadoop.fs.FileSystem.get(self.configuration)

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def make_directory(self, path: str) -> None:
        assert self._files.mkdirs(self._path(path))

    def names(self, path: str) -> set[str]:
        """The names in a directory; none if it is not there."""
        if not self.exists(path):
            return set()
        return {each.getPath().getName() for each in self._files.listStatus(self._path(path))}

    def read_text(self, path: str) -> str:
        """All that a reader sees; of a file that is being written, what was flushed."""
        stream = self._files.open(self._path(path))
        try:
            return str(self._to_string(stream, "UTF-8"))
        finally:
            stream.close()

    def block_locations(self, path: str) -> list[Any]:
        """Hadoop's BlockLocations of a file."""
        status = self._files.getFileStatus(self._path(path))
        return list(self._files.getFileBlockLocations(status, 0, status.getLen()))
