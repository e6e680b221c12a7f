"""What a job would do, for people: a few lines, however much there is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cairnfs.jobs.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlanLine(msgspec.Struct, frozen=True):
    """What is done with so many items; an example tells which are meant."""

    action: str
    kind: str
    items: int
    bytes: int
    example: str


class Plan(msgspec.Struct, frozen=True):
    """The whole of it."""

    title: str
    lines: list[PlanLine]


def summarize(title: str, items: DataFrame) -> Plan:
    """Count items with `action`, `kind`, `path` and `cost`; Spark does, not the driver."""
    from pyspark.sql import functions as f

    counted = items.groupBy("action", "kind").agg(
        f.count("*").alias("items"), f.sum("cost").alias("bytes"), f.min("path").alias("example")
    )
    with explained():
        rows = counted.orderBy("action", "kind").collect()
    return Plan(title, [PlanLine(*row) for row in rows])
