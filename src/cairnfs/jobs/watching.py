"""How far a query of Spark is: the tasks of its stages, told while it runs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cairnfs.jobs.failures import explained
from cairnfs.jobs.progress import INTERVAL_S, JobProgress, ProgressCallback

if TYPE_CHECKING:
    from pyspark import SparkContext

_GROUP = "spark.jobGroup.id"


@contextmanager
def watched(context: SparkContext, tell: ProgressCallback, title: str) -> Iterator[None]:
    """Run queries; an error of theirs is raised as what a task has raised."""
    group, before = uuid.uuid4().hex, context.getLocalProperty(_GROUP)
    context.setJobGroup(group, title)
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(INTERVAL_S):
            tell(_progress(context, group, title))

    thread = threading.Thread(target=run, name="job-progress", daemon=True)
    tell(JobProgress(title))
    thread.start()
    try:
        with explained():
            yield
    finally:
        is_over.set()
        thread.join()
        context.setLocalProperty(_GROUP, before or "")  # what comes next is another's


def _progress(context: SparkContext, group: str, title: str) -> JobProgress:
    """Stages that have not begun are not known yet, so the total may grow."""
    tracker = context.statusTracker()
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            tasks = tracker.getStageInfo(stage)
            if tasks is not None:
                done += tasks.numCompletedTasks
                total += tasks.numTasks
    return JobProgress(title, done, total)
