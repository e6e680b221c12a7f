"""Counting calls, and the text that Prometheus reads."""

from __future__ import annotations

import math
import timeit

from prometheus_client.parser import text_string_to_metric_families

from cairnfs.observe.figures import BOUNDS_S, CallFigures, Histogram
from cairnfs.observe.process import ProcessFacts, process_families
from cairnfs.observe.prometheus import counter, gauge, histogram, render
from cairnfs.wire.protocols import CLIENT_PROTOCOL

GET_FILE_INFO = CLIENT_PROTOCOL["getFileInfo"]


def test_what_is_rendered_is_read_back() -> None:
    hostile = 'a "quoted"\\ name\nwith two lines'
    took = Histogram()
    for elapsed_s in (0.00005, 0.0001, 0.3, 100.0):
        took.add(elapsed_s)
    text = render(
        [
            counter("some_total", "Some of\nthem.").add(3, name=hostile).add(4, name="plain"),
            gauge("level", "A level.").add(-1.5),
            histogram("took_seconds", "How long.").add_histogram(took, method="m"),
            gauge("nothing", "Is left out."),
        ]
    )
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert set(families) == {"some", "level", "took_seconds"}
    assert families["some"].type == "counter"
    assert {s.labels["name"]: s.value for s in families["some"].samples} == {hostile: 3, "plain": 4}
    assert families["level"].samples[0].value == -1.5
    samples = families["took_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert len(buckets) == len(BOUNDS_S) + 1
    assert buckets["0.0001"] == 2  # a bound belongs to its bucket
    assert (buckets["0.25"], buckets["0.5"], buckets["+Inf"]) == (2, 3, 4)
    assert list(buckets.values()) == sorted(buckets.values())
    sums = {s.name: s.value for s in samples if not s.name.endswith("_bucket")}
    assert sums["took_seconds_count"] == 4
    assert math.isclose(sums["took_seconds_sum"], 100.30015)


def test_calls_are_counted_by_method_and_error() -> None:
    figures = CallFigures()
    figures.note(GET_FILE_INFO, 0.001)
    figures.note(GET_FILE_INFO, 0.002)
    figures.note_error(GET_FILE_INFO, ValueError())
    figures.note(CLIENT_PROTOCOL["create"], 1.0)
    assert figures.by_method[GET_FILE_INFO].count == 2
    assert figures.errors == {(GET_FILE_INFO, "ValueError"): 1}
    assert figures.total().count == 3
    assert math.isclose(figures.total().sum_s, 1.003)


def test_to_count_a_call_costs_next_to_nothing() -> None:
    """0.3 microseconds where this was written; the bound is for busy machines."""
    figures = CallFigures()
    runs = timeit.repeat(lambda: figures.note(GET_FILE_INFO, 0.0003), number=10_000, repeat=10)
    assert min(runs) / 10_000 < 2e-6


def test_the_process_is_described() -> None:
    facts = ProcessFacts.gather()
    assert facts.resident_bytes > 1 << 20
    assert facts.open_files > 2
    text = render(process_families(facts))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["process_cpu_seconds"].samples[0].value > 0
    assert len(families["python_gc_collections"].samples) == 3
