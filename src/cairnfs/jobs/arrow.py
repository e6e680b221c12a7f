"""DataFrames made by our own functions, of Arrow batches: without a row of Python's in between."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_batches(frame: DataFrame, transform: Transform, schema: pa.Schema) -> DataFrame:
    """What a function makes of each partition, in tasks; it is called once for each."""
    from pyspark.sql.pandas.types import from_arrow_schema

    with warnings.catch_warnings():
        # Spark wants pandas to be there for this, and not to be too new; neither of us uses it.
        warnings.filterwarnings("ignore", ".*pandas", FutureWarning)
        return frame.mapInArrow(transform, from_arrow_schema(schema))
