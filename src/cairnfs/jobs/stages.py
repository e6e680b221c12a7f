"""What a job has planned and done, kept in a directory: so it can go on after whatever ended it.

A job is a few *stages*, one after the other.  A stage has a plan, which is made once and written
down as batches (`batches`); a task works off each of them and puts down what it has done.  Who
runs the job again finds the same plan, and skips what is put down.  A task that was killed, or had
no time to say that it was done, runs again: **what it does must come to the same, however often it
is done, also by two at a time.**
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
import pyarrow as pa

from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.jobs.batches import Batch, BatchSize, cut
from cairnfs.jobs.failures import explained
from cairnfs.jobs.patience import patiently
from cairnfs.jobs.places import Place
from cairnfs.jobs.progress import JobProgress, Meter, ProgressCallback
from cairnfs.jobs.records import TableFile, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAN = "plan.json"
JOB = "job.json"

_S = TypeVar("_S", bound=msgspec.Struct)
_R = TypeVar("_R", bound=msgspec.Struct)

Task = Callable[[pa.Table], _R]
"""Works off the items of a batch; what it has done."""


class Work:
    """The directory of one job, while it is under way."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def find(self, kind: type[_S]) -> _S | None:
        """What is to be done here, if that was noted."""
        try:
            data = self.place.read(JOB)
        except FileNotFoundException:
            return None
        return decode(data, kind, f"{self.place}/{JOB}")

    def begin(self, job: msgspec.Struct) -> None:
        """Note what is to be done."""
        self.place.write(JOB, msgspec.json.encode(job))

    def end(self) -> None:
        """It is done: nothing is left of it."""
        self.place.remove()


class Stage(Generic[_R]):
    """A step of a job; `title` is what people see while it is under way."""

    def __init__(
        self, work: Work, name: str, title: str, result: type[_R], *, plan_of: str = ""
    ) -> None:
        """`plan_of` names another stage whose batches this one works off, too."""
        self._place = work.place / name
        self._plan = work.place / (plan_of or name)
        self._title = title
        self._result = result

    def plan(self, make: Callable[[], DataFrame], size: BatchSize | None = None) -> list[Batch]:
        """The batches; they are made of the items of a DataFrame unless they are there already."""

        def find_or_make() -> list[Batch]:
            found = self._find_plan()
            return self._make_plan(make, size or BatchSize()) if found is None else found

        return patiently(find_or_make)

    def apply(self, spark: SparkSession, task: Task[_R], tell: ProgressCallback) -> list[_R]:
        """Work off all batches, level by level; what each of them has come to.

        Those that were worked off before are not again.
        """
        batches = self._find_plan()
        assert batches is not None, f"stage {self._title} has no plan"
        items, volume = sum(each.items for each in batches), sum(each.bytes for each in batches)
        results: list[_R] = []
        with Meter(spark.sparkContext, tell, self._title, items, volume) as meter:
            runner = _Runner(self._plan / "plan", self._place / "done", task, self._result, meter)
            for _, level in groupby(batches, key=lambda batch: batch.level):
                results += _run_all(spark, list(level), runner)
        return results

    def files(self) -> list[TableFile]:
        """Where the items of the plan are."""
        return [TableFile(f"{batch.name}.parquet") for batch in self._find_plan() or ()]

    @property
    def items(self) -> Place:
        return self._plan / "plan"

    def _make_plan(self, make: Callable[[], DataFrame], size: BatchSize) -> list[Batch]:
        with explained():
            made = cut(make(), self._plan / "plan", size)
        self._plan.write(PLAN, msgspec.json.encode(made))
        return made

    def _find_plan(self) -> list[Batch] | None:
        try:
            data = self._plan.read(PLAN)
        except FileNotFoundException:
            return None
        try:
            return msgspec.json.decode(data, type=list[Batch])
        except msgspec.MsgspecError as error:
            raise IOException(f"{self._plan}/{PLAN} cannot be read: {error}") from None


def decode(data: bytes, kind: type[_S], where: str) -> _S:
    """What was noted in a file of ours."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise IOException(f"{where} cannot be read: {error}") from None


def tell_of(tell: ProgressCallback, title: str) -> None:
    """Something is under way of which nobody knows how much there is."""
    tell(JobProgress(title))


class _Runner(Generic[_R]):
    """What a task does with a batch; sent to wherever it runs."""

    def __init__(
        self, plan: Place, done: Place, task: Task[_R], result: type[_R], meter: Meter
    ) -> None:
        self._plan = plan
        self._done = done
        self._task = task
        self._result = result
        self._items = meter.items
        self._bytes = meter.bytes

    def __call__(self, batches: Iterator[Batch]) -> Iterator[bytes]:
        for batch in batches:
            yield patiently(partial(self._run, batch))
            self._items.add(batch.items)
            self._bytes.add(batch.bytes)

    def _run(self, batch: Batch) -> bytes:
        note = f"{batch.name}.json"
        try:
            return self._done.read(note)
        except FileNotFoundException:
            pass
        items = read_table(self._plan, TableFile(f"{batch.name}.parquet"))
        result = msgspec.json.encode(self._task(items))
        self._done.write(note, result)
        return result

    def decode(self, data: bytes) -> _R:
        return msgspec.json.decode(data, type=self._result)


def _run_all(spark: SparkSession, batches: list[Batch], runner: _Runner[_R]) -> list[_R]:
    """Each batch is a task; of them, the driver sees what they have come to."""
    tasks = spark.sparkContext.parallelize(batches, len(batches))
    with explained():
        return [runner.decode(data) for data in tasks.mapPartitions(runner).collect()]
