"""Attributes that are inherited, storage policies among them: set where they differ from above.

The latest operation counts, so that whatever is above has to be set before: by levels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import UnsupportedOperationException
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.entries import TOP
from cairnfs.jobs.trees import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def declared_names(fs: FileSystem) -> frozenset[str]:
    """Of the attributes that a cluster hands down."""
    try:
        return frozenset(each.name for each in fs.list_declared_xattrs())
    except UnsupportedOperationException:  # an HDFS: it has none
        return frozenset()


def plan_inherited(entries: DataFrame, names: Iterable[str]) -> DataFrame:
    """The entries whose policy or inherited attributes are not those of their directories.

    What has no policy takes what it finds: none was chosen for it, here or above.
    """
    from pyspark.sql import functions as f

    wanted = list(names)
    values = f.map_from_entries(f.filter("xattrs", lambda xattr: xattr["name"].isin(wanted)))
    own = entries.where("kind != 'symlink'").select("path", "kind", "policy", values.alias("own"))
    above = own.select(
        f.col("path").alias("above"),
        f.col("policy").alias("policy_above"),
        f.col("own").alias("own_above"),
    )
    parent = f.expr(
        f"case when path = '{TOP}' then null when instr(path, '/') = 0 then '{TOP}'"
        " else substring_index(path, '/', size(split(path, '/')) - 1) end"
    )
    depth = f.expr(f"case when path = '{TOP}' then 0 else size(split(path, '/')) end")
    joined = own.withColumn("above", parent).join(above, "above", "left")
    is_other_policy = ~f.col("policy").eqNullSafe(f.col("policy_above"))
    values_differ = ~f.expr("array_sort(map_entries(own)) <=> array_sort(map_entries(own_above))")
    has_values = (f.size("own") > 0) | (f.coalesce(f.size("own_above"), f.lit(0)) > 0)
    is_other = (f.col("policy").isNotNull() & is_other_policy) | (values_differ & has_values)
    return (
        joined.where(is_other)
        .select(
            "path",
            "policy",
            f.map_entries("own").alias("own"),
            f.map_keys("own_above").alias("names_above"),
            depth.cast("int").alias("level"),
            f.lit(0).cast("bigint").alias("cost"),
        )
        .sortWithinPartitions("level", "path")
    )


@dataclass(frozen=True)
class SetInherited:
    """The task."""

    top: Directory

    def __call__(self, items: pa.Table) -> Written:
        with self.top.connect() as fs:
            for row in items.to_pylist():
                path = (self.top / row["path"]).path
                if row["policy"] is not None:
                    fs.set_storage_policy(path, row["policy"])
                own = {each["key"]: bytes(each["value"]) for each in row["own"] or ()}
                for name, value in own.items():
                    fs.set_xattr(path, name, value)
                for name in set(row["names_above"] or ()) - own.keys():
                    fs.remove_xattr(path, name)
        return Written()
