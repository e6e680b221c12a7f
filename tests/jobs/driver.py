"""A program of its own that runs a job in small batches: to be killed.

`driver.py JOB MASTER ARGUMENT...`
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from cairnfs import jobs

SMALL = jobs.BatchSize(items=3)
SMALL_ROWS = 2000


def main(job: str, master: str, *arguments: str) -> None:
    settings = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    more = {"task_rows": SMALL_ROWS} if job in ("rollback", "reclaim", "satisfy") else {}
    getattr(jobs, job)(*arguments, master=master, settings=settings, batch=SMALL, **more)


if __name__ == "__main__":
    main(*sys.argv[1:])
