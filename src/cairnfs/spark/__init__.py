"""Metadata as DataFrames: `spark.read.format("cairn")`."""
