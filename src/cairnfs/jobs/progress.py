"""How far a job is: told to whoever wants to know, from time to time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

if TYPE_CHECKING:
    from pyspark import SparkContext

INTERVAL_S = 0.5


class JobProgress(msgspec.Struct, frozen=True):
    """How much of a stage is done; `stage` is what people call it."""

    stage: str
    items: int = 0
    items_total: int = 0
    bytes: int = 0
    bytes_total: int = 0


ProgressCallback: TypeAlias = Callable[[JobProgress], object]


def silent(progress: JobProgress) -> None:
    """For those who do not want to know."""


class Meter:
    """Counts what tasks have done, wherever they run, and tells it while a stage is under way."""

    def __init__(
        self, context: SparkContext, tell: ProgressCallback, stage: str, items: int, bytes: int
    ) -> None:
        self._tell = tell
        self._total = JobProgress(stage, 0, items, 0, bytes)
        self.items = context.accumulator(0)
        self.bytes = context.accumulator(0)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-progress", daemon=True)

    def __enter__(self) -> Self:
        self._show()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        if error is None:
            self._show()

    def _run(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            self._show()

    def _show(self) -> None:
        self._tell(
            msgspec.structs.replace(self._total, items=self.items.value, bytes=self.bytes.value)
        )
