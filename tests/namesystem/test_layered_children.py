"""Pages of a directory whose content comes from elsewhere are the same, however they are cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.namesystem.test_rollback import clean
from tests.namesystem.test_root_snapshot import settle

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


def test_a_step_of_settling_looks_at_a_bounded_number_of_names(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all of them were deleted since, and nothing is left to give a row to."""
    monkeypatch.setattr(layered_children, "NAMES_MAX", 8)
    looked_at: list[int] = []
    by_names = layered_children._by_names

    def counting(*arguments: Any) -> Iterator[Any]:
        looked_at.append(0)
        for each in by_names(*arguments):
            looked_at[-1] += 1
            yield each

    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    for number in range(FILES):
        fs.write(f"/d/f{number:02}")
    fs.create_snapshot("/d", "s")
    fs.rollback_snapshot("/d", "s")
    for number in range(FILES):
        if number != 30:
            fs.delete(f"/d/f{number:02}")
    fs.delete_snapshot("/d", "s")
    monkeypatch.setattr(layered_children, "_by_names", counting)
    settle(fs)
    assert max(looked_at) == 8
    assert sum(looked_at) >= FILES
    assert fs.names("/d") == ["f30"]
    assert "/d/f30" in fs.dump()  # it has a row of its own now
    clean(fs)


def test_the_longer_a_page_lacks_children_the_more_is_read_at_a_time(
    fast_fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = fast_fs
    fs.mkdirs("/d")
    fs.allow_snapshot("/d")
    for number in range(100):
        fs.write(f"/d/f{number:02}")
    fs.create_snapshot("/d", "s")
    fs.rollback_snapshot("/d", "s")
    for number in range(99):
        fs.delete(f"/d/f{number:02}")
    sizes: list[int] = []
    read = layered_children._Layer.read

    def counting(layer: Any, after: bytes, size: int) -> Any:
        sizes.append(size)
        return read(layer, after, size)

    monkeypatch.setattr(layered_children._Layer, "read", counting)
    page = fs.get_listing("/d", b"", 1)
    assert page is not None
    assert [entry.name for entry in page.entries] == [b"f99"]
    assert len(sizes) < 20
    clean(fs)
