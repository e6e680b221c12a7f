"""The way to a directory is remembered, and walked anew as soon as anything along it changes."""

from __future__ import annotations

import pytest

from cairnfs.errors import AccessControlException
from cairnfs.testing.scratch import ScratchClient


def test_the_way_to_a_directory_is_forgotten_when_it_changes(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b/c")
    for _ in range(2):
        assert fs.get_file_info("/a/b/c/f") is None
    fs.rename("/a/b", "/a/x")
    assert fs.get_file_info("/a/b/c") is None
    assert fs.get_file_info("/a/x/c") is not None
    fs.mkdirs("/a/b/c")
    fs.delete("/a", recursive=True)
    assert fs.get_file_info("/a/b/c") is None
    assert fs.get_file_info("/a/x/c") is None


def test_who_may_enter_is_asked_anew_when_it_changes(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    alice = fs.user("alice")
    assert alice.get_file_info("/a/b") is not None
    fs.set_permission("/a", 0o700)
    with pytest.raises(AccessControlException, match="Permission denied"):
        alice.get_file_info("/a/b")
    fs.set_permission("/a", 0o755)
    assert alice.get_file_info("/a/b") is not None
