"""Pages of a directory whose content comes from elsewhere are the same, however they are cut."""

from __future__ import annotations

import random

import pytest
from tests.namesystem.test_rollback import clean

from cairnfs.namesystem import layered_children
from cairnfs.testing.scratch import ScratchClient

FILES = 60


@pytest.mark.parametrize("rows_at_a_time", [1, 2, 7, 2000])
def test_pages_hide_and_show_what_they_should(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int
) -> None:
    """Rows of its own, whiteouts and two origins, read in pages that end anywhere."""
    monkeypatch.setattr(layered_children, "_PAGE", rows_at_a_time)
    random_ = random.Random(rows_at_a_time)
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    names = {f"f{number:02}" for number in random_.sample(range(100), FILES)}
    for name in names:
        fs.write(f"/d/{name}")
    for round_ in ("once", "twice"):
        fs.create_snapshot("/d", round_)
        fs.rollback_snapshot("/d", round_)
        for name in random_.sample(sorted(names), 15):
            fs.delete(f"/d/{name}")
            names.discard(name)
        for number in random_.sample(range(100), 10):
            fs.mkdirs(f"/d/f{number:02}-{round_}")
            names.add(f"f{number:02}-{round_}")
    for limit in (1, 3, 8, 1000):
        assert list_in_pages(fs, limit) == sorted(names)
    clean(fs)


def list_in_pages(fs: ScratchClient, limit: int) -> list[str]:
    names: list[str] = []
    after = b""
    while True:
        page = fs.get_listing("/d", after, limit)
        assert page is not None
        names += [entry.name.decode() for entry in page.entries]
        if not page.remaining:
            return names
        after = page.entries[-1].name
