"""Prometheus's text format, version 0.0.4: families of samples become text.

Why not `prometheus_client`: to count a call with it takes longer than all our accounting, and
what is left for it to do then is what is written here (docs/decisions/0012-observing.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cairnfs.observe.figures import BOUNDS_S, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


@dataclass(slots=True)
class Family:
    """A metric and its samples, one for each set of labels."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)  # suffix first

    def add(self, value: float, **labels: str) -> Family:
        self.samples.append(("", labels, value))
        return self

    def add_histogram(self, histogram: Histogram, **labels: str) -> Family:
        """Its buckets, each with those below it, the sum and the count."""
        reached = 0
        for bound, count in zip((*BOUNDS_S, None), histogram.counts, strict=True):
            reached += count
            le = "+Inf" if bound is None else _format(bound)
            self.samples.append(("_bucket", {**labels, "le": le}, reached))
        self.samples.append(("_sum", labels, histogram.sum_s))
        self.samples.append(("_count", labels, reached))
        return self


def counter(name: str, help: str) -> Family:
    """Something that only grows; its name ends with _total."""
    assert name.endswith("_total")
    return Family(name, "counter", help)


def gauge(name: str, help: str) -> Family:
    """Something that goes up and down."""
    return Family(name, "gauge", help)


def histogram(name: str, help: str) -> Family:
    return Family(name, "histogram", help)


def render(families: Iterable[Family]) -> str:
    """The text; a family without samples is left out."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {_escape(family.help)}")
        lines.append(f"# TYPE {family.name} {family.type}")
        for suffix, labels, value in family.samples:
            lines.append(f"{family.name}{suffix}{_format_labels(labels)} {_format(value)}")
    return "\n".join(lines) + "\n"


def _format_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(v, quote=True)}"' for name, v in labels.items()) + "}"


def _format(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escape(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text
