"""A program of its own: streams one file after the other from `source` to `sink`, then ends.

`streaming_driver.py ARGUMENTS`, a file of JSON: `hadoop` and `spark` settings, the `directory`
on the cluster, and a `local` one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.spark.sessions import make_session


def main(arguments: str) -> None:
    given = json.loads(Path(arguments).read_text())
    directory = given["directory"]
    spark = make_session(given["hadoop"], Path(given["local"]), given["spark"])
    query = (
        spark.readStream.schema("id LONG")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{directory}/source")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{directory}/sink")
    )
    query.awaitTermination()
    print(spark.sparkContext.applicationId)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
