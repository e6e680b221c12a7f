"""Spark and CairnFS: metadata as DataFrames, and jobs that can be undone."""

from cairnfs.spark.as_of import as_of, read
from cairnfs.spark.guard import guarded
from cairnfs.spark.inputs import find_input, pin_inputs, record_inputs, recorded_inputs
from cairnfs.spark.output import atomic_output, write_atomically

__all__ = [
    "as_of",
    "atomic_output",
    "find_input",
    "guarded",
    "pin_inputs",
    "read",
    "record_inputs",
    "recorded_inputs",
    "write_atomically",
]
