"""A namespace for each test, under each of the concurrency controls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cairnfs.config import Control
from cairnfs.testing.scratch import ScratchClient, scratch_namespace


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def fs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScratchClient]:
    """The superuser's client of a new namespace; what is left is checked afterwards."""
    with scratch_namespace(tmp_path, request.param) as client:
        yield client


@pytest.fixture
def fast_fs(tmp_path: Path) -> Iterator[ScratchClient]:
    """As `fs`, under the default control only: for tests of many calls."""
    with scratch_namespace(tmp_path) as client:
        yield client
