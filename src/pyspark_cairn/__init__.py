"""Where Spark finds the data source `cairn` by itself: in modules whose names begin so."""

from cairnfs.spark.source import CairnDataSource as DefaultSource

__all__ = ["DefaultSource"]
