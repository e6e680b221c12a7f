"""Upload and download of files and trees, and what is left when they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.client.files import MIB, content, read, write

import cairnfs
from cairnfs.client.copying import Progress
from cairnfs.errors import IOException


def make_tree(folder: Path) -> dict[str, bytes]:
    """A tree with empty and nested directories; its files by name."""
    files = {f"file{size}": content(size) for size in (0, 1, 70_000)}
    files |= {"a/b/deep": b"deep", "a/Grüße": content(3 * MIB)}
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "empty").mkdir()
    return files


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_file_there_and_back(fs: cairnfs.FileSystem, folder: str, tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_bytes(content(MIB + 3))
    assert fs.upload(local, f"{folder}/file").bytes == MIB + 3
    assert read(fs, f"{folder}/file") == content(MIB + 3)
    fs.upload(local, f"{folder}/")
    assert [status.name for status in fs.list_status(folder)] == ["file", "local"]
    fs.download(f"{folder}/file", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content(MIB + 3)
    fs.download(f"{folder}/file", f"{tmp_path}/")
    assert {path.name for path in tmp_path.iterdir()} == {"local", "back", "file"}


def test_a_tree_there_and_back(fs: cairnfs.FileSystem, folder: str, tmp_path: Path) -> None:
    files = make_tree(tmp_path / "tree")
    seen: list[Progress] = []
    done = fs.upload(tmp_path / "tree", f"{folder}/tree", progress=seen.append)
    assert (done.files, done.bytes) == (len(files), sum(map(len, files.values())))
    assert (seen[-1].files, seen[-1].bytes) == (seen[-1].files_total, seen[-1].bytes_total)
    assert [p.bytes for p in seen] == sorted(p.bytes for p in seen)
    for name, data in files.items():
        assert read(fs, f"{folder}/tree/{name}") == data
    assert fs.get_file_status(f"{folder}/tree/empty").is_directory
    assert [status.name for status in fs.list_status(folder)] == ["tree"]

    seen.clear()
    done = fs.download(f"{folder}/tree", tmp_path / "back", threads=3, progress=seen.append)
    assert (done.files, done.bytes) == (seen[-1].files_total, seen[-1].bytes_total)
    assert files_below(tmp_path / "back") == files
    assert (tmp_path / "back" / "empty").is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"tree", "back"}


def test_a_large_file_in_parts(
    fs: cairnfs.FileSystem, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.client.copying._PART_BYTES", 100_000)
    write(fs, f"{folder}/file", content(2 * MIB + 1))
    fs.download(f"{folder}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content(2 * MIB + 1)


@pytest.mark.parametrize("part_bytes", [100_000, MIB])
def test_a_download_is_of_one_version(
    fs: cairnfs.FileSystem,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part_bytes: int,
) -> None:
    """Replaced by a longer file, between two parts or before the only one is read."""
    monkeypatch.setattr("cairnfs.client.copying._PART_BYTES", part_bytes)
    path = f"{folder}/file"
    write(fs, path, content(300_000))
    open_file = fs.open
    opened = 0

    def replace_and_open(name: str) -> object:
        nonlocal opened
        opened += 1
        if opened == (2 if part_bytes < 300_000 else 1):
            write(fs, path, content(400_000))
        return open_file(name)

    monkeypatch.setattr(fs, "open", replace_and_open)
    with pytest.raises(IOException, match="was replaced"):
        fs.download(path, tmp_path / "file", threads=1)
    assert list(tmp_path.iterdir()) == []
    fs.download(path, tmp_path / "file", threads=1)
    assert (tmp_path / "file").read_bytes() == content(400_000)


def test_links_to_local_directories_are_followed_but_not_for_ever(
    fs: cairnfs.FileSystem, folder: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "elsewhere" / "below" / "file").write_bytes(b"linked")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "elsewhere")
    assert fs.upload(tmp_path / "tree", f"{folder}/tree").files == 1
    assert read(fs, f"{folder}/tree/link/below/file") == b"linked"
    (tmp_path / "elsewhere" / "below" / "back").symlink_to(tmp_path / "tree")
    with pytest.raises(IOException, match=r"back is a symbolic link to .*tree, which it is in"):
        fs.upload(tmp_path / "tree", f"{folder}/again")
    assert [status.name for status in fs.list_status(folder)] == ["tree"]


def test_what_exists_is_replaced_only_if_wanted(
    fs: cairnfs.FileSystem, folder: str, tmp_path: Path
) -> None:
    files = make_tree(tmp_path / "tree")
    write(fs, f"{folder}/tree/file1", b"old")
    write(fs, f"{folder}/tree/other", b"stays")
    with pytest.raises(FileExistsError):
        fs.upload(tmp_path / "tree", f"{folder}/tree")
    fs.upload(tmp_path / "tree", f"{folder}/tree", overwrite=True)
    assert read(fs, f"{folder}/tree/file1") == files["file1"]
    assert read(fs, f"{folder}/tree/other") == b"stays"
    assert [status.name for status in fs.list_status(folder)] == ["tree"]

    (tmp_path / "tree" / "mine").write_bytes(b"stays")
    with pytest.raises(FileExistsError):
        fs.download(f"{folder}/tree", tmp_path / "tree")
    fs.download(f"{folder}/tree", tmp_path / "tree", overwrite=True)
    assert files_below(tmp_path / "tree") == {**files, "other": b"stays", "mine": b"stays"}
    with pytest.raises(FileExistsError, match="not a directory"):
        fs.upload(tmp_path / "tree", f"{folder}/tree/file1", overwrite=True)
    with pytest.raises(FileExistsError, match="is a directory"):
        fs.upload(tmp_path / "tree" / "mine", f"{folder}/tree", overwrite=True)


def test_what_fails_leaves_nothing(fs: cairnfs.FileSystem, folder: str, tmp_path: Path) -> None:
    files = make_tree(tmp_path / "tree")

    def fail(progress: Progress) -> None:
        if progress.bytes > 100_000:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fs.upload(tmp_path / "tree", f"{folder}/tree", progress=fail)
    with pytest.raises(RuntimeError, match="no more"):
        fs.upload(tmp_path / "tree" / "a" / "Grüße", f"{folder}/file", progress=fail)
    assert fs.list_status(folder) == []

    write(fs, f"{folder}/old", b"old")
    with pytest.raises(RuntimeError, match="no more"):
        fs.upload(tmp_path / "tree" / "a" / "Grüße", f"{folder}/old", progress=fail, overwrite=True)
    assert read(fs, f"{folder}/old") == b"old"

    fs.upload(tmp_path / "tree", f"{folder}/tree")
    with pytest.raises(RuntimeError, match="no more"):
        fs.download(f"{folder}/tree", tmp_path / "back", progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]
    assert files_below(tmp_path / "tree") == files


def test_wrong_arguments(fs: cairnfs.FileSystem, folder: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fs.upload(tmp_path / "nothing", f"{folder}/x")
    with pytest.raises(FileNotFoundError):
        fs.download(f"{folder}/nothing", tmp_path / "x")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="neither a file nor a directory"):
        fs.upload(tmp_path / "pipe", f"{folder}/x")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(ValueError, match="thread"):
        fs.upload(tmp_path / "file", f"{folder}/x", threads=0)
    assert fs.list_status(folder) == []
