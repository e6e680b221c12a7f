"""The file systems that traces can be replayed through, made and taken down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.traces.adapter import Adapter
from tests.traces.blockless import ModelAdapter

SYSTEMS = ("model",)
STORES = ("sqlite", "postgres")


@contextlib.contextmanager
def open_adapter(through: str, store: str) -> Iterator[Adapter]:
    yield ModelAdapter()
