"""The file of the audit log: rotation, a disk that is full, a file that is taken away."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cairnfs.config import AuditSettings
from cairnfs.observe import audit_file
from cairnfs.observe.audit import AuditLog, describe_user, escape
from cairnfs.observe.audit_file import AuditFile

FULL = Path("/dev/full")  # to write there is to have no room


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def make(path: Path, file_bytes_max: int = 1 << 20, files_max: int = 3) -> AuditFile:
    file = AuditFile(path, file_bytes_max=file_bytes_max, files_max=files_max)
    file.start()
    return file


def test_lines_are_written_in_order_soon(tmp_path: Path) -> None:
    path = tmp_path / "new" / "audit.log"
    file = make(path)
    for number in range(2500):
        file.add(f"line {number}")
    wait_until(lambda: file.lines_written == 2500)
    assert path.read_text().splitlines() == [f"line {number}" for number in range(2500)]
    file.add("the last one")
    file.stop()
    assert path.read_text().endswith("\nthe last one\n")
    assert file.lines_lost == 0


def test_a_long_file_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("from before\n")
    file = make(path, file_bytes_max=4096, files_max=3)
    for number in range(5):
        file.add(f"{number} " + "x" * 4000)
        wait_until(lambda: file.lines_written == number + 1)  # noqa: B023
    file.stop()
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["audit.log", "audit.log.1", "audit.log.2"]
    assert [(tmp_path / name).read_text()[0] for name in names] == ["4", "3", "2"]


def test_a_single_file_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = make(path, file_bytes_max=4096, files_max=1)
    for number in range(3):
        file.add(f"{number} " + "x" * 4000)
        wait_until(lambda: file.lines_written == number + 1)  # noqa: B023
    file.stop()
    assert [each.name for each in tmp_path.iterdir()] == ["audit.log"]
    assert path.read_text()[0] == "2"


def test_a_full_disk_costs_lines_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And when there is room again, it goes on."""
    path = tmp_path / "audit.log"
    path.symlink_to(FULL)
    file = make(path)
    with caplog.at_level(logging.ERROR, audit_file.__name__):
        for number in range(3):
            file.add(f"lost {number}")
            wait_until(lambda: file.lines_lost == number + 1)  # noqa: B023
    complaints = [record.getMessage() for record in caplog.records]
    assert len(complaints) == 1  # not for every line
    assert "No space left on device" in complaints[0]
    assert str(path) in complaints[0]
    path.unlink()
    file.add("kept")
    wait_until(lambda: file.lines_written == 1)
    file.stop()
    assert path.read_text() == "kept\n"
    assert file.lines_lost == 3


def test_a_line_that_was_cut_off_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.log"
    file = make(path)
    real_write = audit_file.os.write
    calls = []

    def write_little(fd: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return real_write(fd, data[:4])
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(fd, data)

    monkeypatch.setattr(audit_file.os, "write", write_little)
    file.add("cut off")
    wait_until(lambda: file.lines_lost == 1)
    file.add("whole")
    wait_until(lambda: file.lines_written == 1)
    file.stop()
    assert path.read_text() == "cut \nwhole\n"


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    """As logrotate does."""
    path = tmp_path / "audit.log"
    file = make(path)
    file.add("old")
    wait_until(lambda: file.lines_written == 1)
    path.rename(tmp_path / "moved")
    file.add("new")
    wait_until(lambda: file.lines_written == 2)
    file.stop()
    assert (tmp_path / "moved").read_text() == "old\n"
    assert path.read_text() == "new\n"


def test_a_disk_that_hangs_costs_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "UNWRITTEN_BYTES_MAX", 1000)
    file = AuditFile(tmp_path / "audit.log", file_bytes_max=1 << 20, files_max=2)
    for _ in range(100):  # nobody writes: the thread is not started
        file.add("x" * 99)
    assert file.lines_lost == 89
    file.start()
    wait_until(lambda: file.lines_written == 11)
    file.add("again")
    wait_until(lambda: file.lines_written == 12)
    file.stop()


def test_a_path_that_cannot_be_right_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"the audit log .*/file/audit.log cannot be written"):
        AuditLog.open(AuditSettings(str(tmp_path / "file" / "audit.log")))
    with pytest.raises(OSError, match="Is a directory"):
        AuditLog.open(AuditSettings(str(tmp_path)))


def test_no_file_no_log() -> None:
    assert AuditLog.open(AuditSettings()) is None


def test_a_line_cannot_be_forged(tmp_path: Path) -> None:
    """Whatever is in a name: one line, the same number of tabs."""
    path = tmp_path / "audit.log"
    log = AuditLog.open(AuditSettings(str(path)))
    assert log is not None
    evil = "x\tcmd=delete\n2026-01-01 INFO FSNamesystem.audit: allowed=true\r\x85\u2028\x00"

    class Status:
        owner, group, mode = evil, evil, 0o1644

    log.write(
        allowed=False,
        ugi=describe_user(evil, evil + "2"),
        address="127.0.0.1",
        command="create",
        src=evil,
        dst=evil,
        status=Status(),
        caller_context=evil,
        caller_signature=evil.encode()[:40],
    )
    log.close()
    text = path.read_text()
    assert len(text.splitlines()) == 1
    assert text.count("\n") == 1
    fields = text.rstrip("\n").split("\t")
    assert [field.partition("=")[0].rpartition(" ")[2] for field in fields] == [
        *("allowed", "ugi", "ip", "cmd", "src", "dst", "perm", "proto", "callerContext"),
    ]
    assert text.isascii()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("/plain path", "/plain path"),
        ("tab\tand\nline", "tab\\tand\\nline"),
        ('"\\', '\\"\\\\'),
        ("é☃𝄞", "\\u00E9\\u2603\\uD834\\uDD1E"),
        ("\x00\x7f\x85", "\\u0000\\u007F\\u0085"),
        (None, "null"),
    ],
)
def test_escapes_are_those_of_java(text: str | None, escaped: str) -> None:
    assert escape(text) == escaped


def test_excluded_commands_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog.open(AuditSettings(str(path), excluded_commands=("getfileinfo",)))
    assert log is not None
    for command in ("getfileinfo", "delete"):
        log.write(allowed=True, ugi="u", address="", command=command, src="/")
    log.close()
    assert "cmd=delete" in path.read_text()
    assert "cmd=getfileinfo" not in path.read_text()
    assert "ip=null" in path.read_text()
