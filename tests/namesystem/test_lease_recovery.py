"""Files whose writers are gone are closed: on request, after the soft limit, after the hard one.

Here data is kept elsewhere, so nobody has to be asked; tests/namenode has DataNodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cairnfs.clock import ManualClock
from cairnfs.config import NameNodeSettings
from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    LeaseExpiredException,
)
from cairnfs.namenode import lease_expiry
from cairnfs.namenode.embedded import NameNodeThread, make_namespace
from cairnfs.namenode.lease_expiry import NEVER_MS
from cairnfs.namenode.opening import sqlite_url
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.leases import HARD_LIMIT_MS, SOFT_LIMIT_MS
from cairnfs.namesystem.open_files import OPEN_FILES_PAGE, get_open_files
from cairnfs.testing.scratch import ScratchClient


def expire(fs: ScratchClient) -> None:
    """One round of the duty."""
    expiry = fs.namenode.namenode.lease_expiry
    while fs.namenode.wait(expiry.look_at_page()):
        pass


def test_a_closed_file_has_nothing_to_recover(fs: ScratchClient) -> None:
    fs.write("/f", 10)
    assert fs.recover_lease("/f")


def test_what_there_is_of_a_file_is_kept(fs: ScratchClient) -> None:
    """A last block of which nothing is known was never written."""
    fs.create("/empty")
    fs.create("/unwritten")
    fs.write_blocks("/unwritten", 7, 0)
    fs.create("/flushed")
    fs.write_blocks("/flushed", 7, 0)
    fs.fsync("/flushed", 5)
    other = fs.user("hdfs")
    for path, length in (("/empty", 0), ("/unwritten", 7), ("/flushed", 12)):
        assert other.recover_lease(path)
        assert fs.is_file_closed(path)
        assert fs.info(path).length_bytes == length
        summary = fs.get_content_summary(path)
        assert summary.space_bytes == 3 * length


def test_a_writer_that_lost_its_file_is_told(fs: ScratchClient) -> None:
    status = fs.create("/f")
    block = fs.add_block("/f").block
    assert fs.user("hdfs").recover_lease("/f")
    for file_id in (0, status.id):
        with pytest.raises(LeaseExpiredException, match="File is not open for writing: /f"):
            fs.add_block("/f", block, file_id)
    with pytest.raises(LeaseExpiredException):
        fs.complete("/f", block, status.id)


def test_who_may_not_write_a_file_may_not_take_it(fs: ScratchClient) -> None:
    fs.create("/f", 0o644)
    with pytest.raises(AccessControlException, match='access=WRITE, inode="/f"'):
        fs.user("ada").recover_lease("/f")
    with pytest.raises(FileNotFoundException):
        fs.recover_lease("/g")
    assert not fs.is_file_closed("/f")


def test_the_name_of_the_namenodes_opens_nothing(fs: ScratchClient) -> None:
    """A client that calls itself as they do holds no lease."""
    fs.client_name = "HDFS_NameNode"
    fs.create("/f")
    with pytest.raises(LeaseExpiredException):
        fs.add_block("/f")
    expire(fs)
    assert fs.is_file_closed("/f")


def test_after_the_soft_limit_the_next_client_may_have_the_file(fs: ScratchClient) -> None:
    fs.create("/f")
    fs.write_blocks("/f", 7, 0)
    fs.clock.advance(SOFT_LIMIT_MS + 1)
    with pytest.raises(FileAlreadyExistsException):
        fs.user("hdfs").create("/f")
    assert fs.is_file_closed("/f")
    assert fs.info("/f").length_bytes == 7


def test_after_the_hard_limit_files_are_closed(fs: ScratchClient) -> None:
    others = [fs.user("hdfs") for _ in range(3)]
    for number, client in enumerate(others):
        client.create(f"/{number}")
    fs.clock.advance(HARD_LIMIT_MS)
    others[1].renew_lease()
    expire(fs)
    assert not any(fs.is_file_closed(f"/{number}") for number in range(3))
    fs.clock.advance(1)
    expire(fs)
    assert [fs.is_file_closed(f"/{number}") for number in range(3)] == [True, False, True]
    assert others[1].complete("/1")


def test_writers_are_given_time_after_nobody_was_served(tmp_path: Path) -> None:
    """No NameNode has run for long: those who write could not say that they live."""
    clock = ManualClock()
    url = sqlite_url(tmp_path / "namespace")
    make_namespace(url)
    settings = NameNodeSettings(url, duties=False)
    with NameNodeThread(settings, clock) as namenode:
        namenode.client().create("/f")
    clock.advance(HARD_LIMIT_MS + 1)
    with NameNodeThread(settings, clock) as namenode:
        client, expiry = namenode.client(), namenode.namenode.lease_expiry

        def is_closed_after(milliseconds: int) -> bool:
            clock.advance(milliseconds)
            namenode.wait(expiry.look_at_page())
            return client.is_file_closed("/f")

        assert namenode.namenode.lease_soft_limit_ms == NEVER_MS
        assert not is_closed_after(SOFT_LIMIT_MS + 1)
        assert namenode.namenode.lease_soft_limit_ms == SOFT_LIMIT_MS
        assert not is_closed_after(HARD_LIMIT_MS - SOFT_LIMIT_MS - 1)
        assert is_closed_after(1)


def test_leases_are_looked_at_page_by_page(
    fast_fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_expiry, "PAGE", 10)
    fs = fast_fs
    for number in range(35):
        fs.create(f"/{number}")
    fs.clock.advance(HARD_LIMIT_MS + 1)
    rounds = 1
    while fs.namenode.wait(fs.namenode.namenode.lease_expiry.look_at_page()):
        rounds += 1
    assert rounds == 4
    assert all(fs.is_file_closed(f"/{number}") for number in range(35))


def test_a_deleted_file_has_no_lease(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.create("/d/f")
    fs.create("/g")
    fs.delete("/g")
    fs.delete("/d", recursive=True)
    fs.clock.advance(HARD_LIMIT_MS + 1)
    expire(fs)  # the one below /d is still to be reclaimed
    fs.reclaim()
    expire(fs)


def open_paths(fs: ScratchClient) -> list[str]:
    paths: list[str] = []
    after = InodeId(0)
    while True:
        page = fs.namenode.wait(fs.namenode.namenode.call(get_open_files, after))
        paths += [str(file.path) for file in page.files]
        after = page.next_after
        if not after:
            return paths


def test_files_that_are_written_are_listed_in_pages(fs: ScratchClient) -> None:
    assert open_paths(fs) == []
    fs.write("/closed", 1)
    fs.mkdirs("/d")
    names = [f"/{number}" for number in range(OPEN_FILES_PAGE + 5)]
    for name in names:
        fs.create(name)
    fs.create("/d/gone")
    fs.delete("/d", recursive=True)
    fs.rename("/3", "/three")
    names[3] = "/three"
    fs.complete("/5")
    names.remove("/5")
    assert open_paths(fs) == names
