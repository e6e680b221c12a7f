"""The output of a job, seen by nobody until it is whole, and then by everybody at once."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import cairnfs
from cairnfs.client.addresses import split_url
from cairnfs.client.job_output import check_output_mode
from cairnfs.errors import IllegalArgumentException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextlib.contextmanager
def atomic_output(
    destination: str,
    mode: str = "overwrite",
    *,
    staging: str | None = None,
    user: str | None = None,
) -> Iterator[str]:
    """Write to the place that is given; when all went well, it becomes the destination's content.

    That is one transaction, see `FileSystem.commit_output` for the modes.  The place is a hidden
    directory beside the destination unless `staging` says where; it is removed if what is inside
    the `with` statement fails.
    """
    check_output_mode(mode)
    beginning, path = split_url(destination)
    if not path:
        raise IllegalArgumentException(f"{destination} cannot be the output of a job")
    above, _, name = path.rpartition("/")
    place = staging or f"{beginning}{above}/.{name}.output-{uuid.uuid4().hex}"
    with cairnfs.connect(destination, user=user) as fs:
        try:
            yield place
            fs.commit_output(place, destination, mode)
        except BaseException:
            with contextlib.suppress(OSError):  # it is in nobody's way
                fs.delete(place, recursive=True)
            raise


def write_atomically(
    frame: DataFrame,
    destination: str,
    *,
    format: str = "parquet",
    mode: str = "overwrite",
    partition_by: Sequence[str] = (),
    **options: Any,
) -> None:
    """Write a DataFrame so that readers find all of it, or what was there before."""
    with atomic_output(destination, mode) as place:
        writer = frame.write.format(format).options(**options)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(place)
