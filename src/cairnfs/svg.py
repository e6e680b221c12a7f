"""Charts as SVG, lines and bars: axes, marks, a legend, and nothing that needs a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 230, 40, 50
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STEPS = 5
BARS_LEFT, BARS_TOP, BARS_WIDTH, BAR_STEP = 240, 40, 360, 24
NAME_MAX = 34  # what there is room for beside a bar


@dataclass(frozen=True)
class Line:
    """One series; published ones are dashed."""

    name: str
    points: Sequence[tuple[float, float]]
    is_published: bool = False


@dataclass(frozen=True)
class Axis:
    """Where a value is drawn."""

    label: str
    is_logarithmic: bool = False

    def over(self, values: Sequence[float], begin: float, end: float) -> Scale:
        low, high = (min(values), max(values)) if self.is_logarithmic else (0.0, max(values))
        if self.is_logarithmic:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
        return Scale(low, high if high > low else low + 1, begin, end, self.is_logarithmic)


@dataclass(frozen=True)
class Scale:
    """From values to places on the page."""

    low: float
    high: float
    begin: float
    end: float
    is_logarithmic: bool

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_logarithmic:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)

    def marks(self) -> list[float]:
        if self.is_logarithmic:
            powers = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            return [10.0**power for power in powers]
        rough = self.high / STEPS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [step * n for n in range(int(self.high / step * 1.0001) + 1)]


def draw(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """The chart as an SVG document; logarithmic axes leave out what is not above 0."""
    shown = [(line, _points(line, x, y)) for line in lines]
    points = [point for _, some in shown for point in some]
    across = x.over([a for a, _ in points], LEFT, WIDTH - RIGHT)
    up = y.over([b for _, b in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, 'font-size="15"'),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x.label, 'text-anchor="middle"'),
        _text(16, HEIGHT / 2, y.label, f'text-anchor="middle" {_turned(16, HEIGHT / 2)}'),
    ]
    for mark in up.marks():
        at = up.place(mark)
        parts.append(_stroke([(LEFT, at), (WIDTH - RIGHT, at)], "#dddddd", 1))
        parts.append(_text(LEFT - 6, at + 4, f"{mark:,.10g}", 'text-anchor="end"'))
    for mark in across.marks():
        at = across.place(mark)
        parts.append(_text(at, HEIGHT - BOTTOM + 16, f"{mark:,.10g}", 'text-anchor="middle"'))
    for n, (line, some) in enumerate(shown):
        color, dash = COLORS[n % len(COLORS)], "6 4" if line.is_published else ""
        placed = [(across.place(a), up.place(b)) for a, b in some]
        parts.append(_stroke(placed, color, 2, dash))
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in placed]
        at = TOP + 10 + 20 * n
        parts.append(_stroke([(WIDTH - RIGHT + 12, at), (WIDTH - RIGHT + 36, at)], color, 2, dash))
        parts.append(_text(WIDTH - RIGHT + 42, at + 4, line.name))
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True)
class Bar:
    """One value with its name; `text` is how people read it, `before` what it was once."""

    name: str
    value: float
    text: str
    before: float | None = None


def draw_bars(title: str, bars: Sequence[Bar]) -> str:
    """One bar below the other, from the same line to the right; a thin one is what it was."""
    high = max((max(bar.value, bar.before or 0) for bar in bars), default=0) or 1
    height = BARS_TOP + BAR_STEP * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(10, 22, title, 'font-size="15"'),
    ]
    for n, bar in enumerate(bars):
        at = BARS_TOP + BAR_STEP * n
        parts.append(_text(BARS_LEFT - 8, at + 13, _shorten(bar.name), 'text-anchor="end"'))
        parts.append(_box(at, bar.value / high, 18, COLORS[0]))
        if bar.before is not None:
            parts.append(_box(at + 6, bar.before / high, 6, COLORS[4]))
        end = BARS_LEFT + BARS_WIDTH * max(bar.value, bar.before or 0) / high
        parts.append(_text(end + 6, at + 13, bar.text))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(at: float, share: float, height: int, color: str) -> str:
    width = max(1.0, BARS_WIDTH * share)
    return (
        f'<rect x="{BARS_LEFT}" y="{at:.1f}" width="{width:.1f}" height="{height}" fill="{color}"/>'
    )


def _shorten(name: str) -> str:
    """Its end, which tells more than its beginning."""
    return name if len(name) <= NAME_MAX else f"…{name[1 - NAME_MAX :]}"


def _points(line: Line, x: Axis, y: Axis) -> list[tuple[float, float]]:
    return [
        (a, b)
        for a, b in line.points
        if (a > 0 or not x.is_logarithmic) and (b > 0 or not y.is_logarithmic)
    ]


def _stroke(points: Sequence[tuple[float, float]], color: str, width: int, dash: str = "") -> str:
    places = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>'
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _turned(x: float, y: float) -> str:
    return f'transform="rotate(-90 {x:.0f} {y:.0f})"'
