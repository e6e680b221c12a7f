"""How the demo talks: titles, sentences and tables, the same in both of its processes."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.cli.output import format_table


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def show_table(rows: list[list[str]], right: Iterable[int] = ()) -> None:
    for line in format_table(rows, frozenset(right)):
        say(line)
