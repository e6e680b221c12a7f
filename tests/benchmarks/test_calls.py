"""The benchmark of single calls: each kind is made, and answered without an error."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.calls import CALLS, SEGMENT_TURNS, describe, run_here


def test_every_kind_of_call_is_measured(tmp_path: Path) -> None:
    arguments = argparse.Namespace(
        calls=list(CALLS), number=SEGMENT_TURNS, connections=1, directory=tmp_path
    )
    segments = run_here(arguments)
    assert [segment.call for segment in segments] == list(CALLS)
    assert all(segment.cpu_us > 0 for segment in segments)
    assert [line.split()[0] for line in describe(arguments.calls, segments, segments)][1:] == list(
        CALLS
    )
