"""The output of a job becomes the content of a directory by one transaction."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import clean

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    IOException,
    NSQuotaExceededException,
    PathIsNotDirectoryException,
    SnapshotException,
)
from cairnfs.namesystem import job_output
from cairnfs.namesystem.job_output import Committed, OutputMode
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

ADD, PARTITIONS = OutputMode.ADD, OutputMode.REPLACE_PARTITIONS


@pytest.fixture(params=["sqlite", "postgres"])
def fs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ScratchClient]:
    url = request.getfixturevalue("postgres_dsn") if request.param == "postgres" else None
    with scratch_namespace(tmp_path, url=url) as client:
        yield client


def write(fs: ScratchClient, *paths: str) -> None:
    for path in paths:
        fs.mkdirs(path.rpartition("/")[0])
        fs.write(path, 10)


def tree(fs: ScratchClient, top: str) -> dict[str, int]:
    """Files below a directory, each with its id, and empty directories with 0."""
    found: dict[str, int] = {}
    listing = fs.get_listing(top)
    assert listing is not None
    for status in listing.entries:
        path = f"{top}/{status.name.decode()}"
        if status.is_directory:
            found |= tree(fs, path) or {path: 0}
        else:
            found[path] = status.id
    return found


def test_it_takes_the_place_of_what_was_there(fs: ScratchClient) -> None:
    write(fs, "/out/old", "/out/p/older", "/stage/part-0", "/stage/p/part-1")
    staged = tree(fs, "/stage")
    place = fs.info("/out")
    assert fs.commit_output("/stage", "/out") == Committed(moved=2, removed=2)
    assert tree(fs, "/out") == {
        "/out/part-0": staged["/stage/part-0"],
        "/out/p/part-1": staged["/stage/p/part-1"],
    }
    assert fs.get_file_info("/stage") is None
    assert fs.info("/out").id == place.id
    summary = fs.get_content_summary("/")
    assert (summary.files, summary.length_bytes) == (2, 20)


def test_it_becomes_a_directory_that_was_not_there(fs: ScratchClient) -> None:
    write(fs, "/stage/part-0")
    fs.commit_output("/stage", "/out")
    assert list(tree(fs, "/out")) == ["/out/part-0"]
    assert fs.get_file_info("/stage") is None


def test_added_files_go_beside_the_others(fs: ScratchClient) -> None:
    write(
        fs, "/out/_SUCCESS", "/out/day=1/a", "/stage/_SUCCESS", "/stage/day=1/b", "/stage/day=2/c"
    )
    done = fs.commit_output("/stage", "/out", ADD)
    assert done == Committed(moved=3, removed=1)
    assert set(tree(fs, "/out")) == {
        "/out/_SUCCESS",
        "/out/day=1/a",
        "/out/day=1/b",
        "/out/day=2/c",
    }
    assert fs.get_content_summary("/").directories == fs.get_content_summary("/out").directories + 1


def test_what_is_there_is_not_added_to(fs: ScratchClient) -> None:
    write(fs, "/out/day=1/a", "/stage/day=0/z", "/stage/day=1/a")
    before = tree(fs, "/out") | tree(fs, "/stage")
    with pytest.raises(FileAlreadyExistsException, match="/out/day=1/a already exists: nothing of"):
        fs.commit_output("/stage", "/out", ADD)
    assert tree(fs, "/out") | tree(fs, "/stage") == before


def test_partitions_are_replaced_one_by_one(fs: ScratchClient) -> None:
    write(
        fs,
        "/out/y=1/m=1/old",
        "/out/y=1/m=2/old",
        "/out/y=2/m=1/old",
        "/stage/y=1/m=2/new",
        "/stage/y=3/m=1/new",
    )
    fs.commit_output("/stage", "/out", PARTITIONS)
    assert set(tree(fs, "/out")) == {
        "/out/y=1/m=1/old",
        "/out/y=1/m=2/new",
        "/out/y=2/m=1/old",
        "/out/y=3/m=1/new",
    }


def test_snapshots_show_one_or_the_other(fs: ScratchClient) -> None:
    write(fs, "/out/a", "/out/d/b", "/stage/a", "/stage/d/c")
    fs.allow_snapshot("/out")
    fs.create_snapshot("/out", "before")
    old = [path.replace("/out", "/out/.snapshot/before") for path in tree(fs, "/out")]
    fs.commit_output("/stage", "/out")
    new = tree(fs, "/out")
    fs.create_snapshot("/out", "after")
    assert list(tree(fs, "/out/.snapshot/before")) == old
    told = {b"/".join(entry.path) for entry in fs.snapshot_diff("/out", "before", "after")}
    assert told == {b"", b"a", b"d"}
    write(fs, "/stage/z")
    fs.commit_output("/stage", "/out")
    fs.rollback_snapshot("/out", "after")
    assert list(tree(fs, "/out")) == list(new)
    clean(fs)


def test_a_clone_takes_output_as_well(fs: ScratchClient) -> None:
    write(fs, "/out/a", "/out/d/b", "/stage/a", "/stage/d/c")
    fs.allow_snapshot("/out")
    fs.create_snapshot("/out", "s")
    fs.clone_snapshot("/out", "s", "/clone")
    fs.commit_output("/stage", "/clone", PARTITIONS)
    assert set(tree(fs, "/clone")) == {"/clone/a", "/clone/d/c"}
    write(fs, "/stage/e/f")
    fs.commit_output("/stage", "/clone")
    assert set(tree(fs, "/clone")) == {"/clone/e/f"}
    assert set(tree(fs, "/out")) == {"/out/a", "/out/d/b"}
    clean(fs)


def test_quotas_count_what_goes_before_what_comes(fs: ScratchClient) -> None:
    write(fs, "/out/a", "/out/b", "/stage/a", "/stage/b", "/more/a", "/more/b", "/more/c")
    fs.set_quota("/out", 3)  # the directory itself, and two files
    fs.commit_output("/stage", "/out")
    with pytest.raises(NSQuotaExceededException):
        fs.commit_output("/more", "/out")
    assert set(tree(fs, "/out")) == {"/out/a", "/out/b"}
    assert len(tree(fs, "/more")) == 3


def test_who_may_not_is_told_and_nothing_changes(fs: ScratchClient) -> None:
    write(fs, "/out/kept", "/ada/stage/a")
    fs.write("/file", 10)
    fs.set_owner("/ada", "ada", "ada")
    fs.set_owner("/ada/stage", "ada", "ada")
    ada = fs.user("ada")
    before = tree(fs, "/out"), tree(fs, "/ada")
    refusals: list[tuple[type[Exception], str, str]] = [
        (AccessControlException, "/ada/stage", "/out"),
        (FileNotFoundException, "/ada/none", "/out"),
        (FileNotFoundException, "/ada/stage", "/ada/x/y"),
        (IOException, "/ada/stage", "/ada/stage/below"),
        (IOException, "/ada/stage", "/ada"),
        (FileAlreadyExistsException, "/ada/stage", "/file"),
        (PathIsNotDirectoryException, "/file", "/out"),
    ]
    for error, src, dst in refusals:
        with pytest.raises(error):
            (ada if error is AccessControlException else fs).commit_output(src, dst)
    with pytest.raises(IllegalArgumentException, match="7 is not a mode"):
        fs.commit_output("/ada/stage", "/out", 7)  # type: ignore[arg-type]
    assert (tree(fs, "/out"), tree(fs, "/ada")) == before


def test_who_adds_to_a_directory_below_must_write_there(fs: ScratchClient) -> None:
    write(fs, "/out/p=1/kept", "/ada/stage/p=1/a", "/ada/stage/p=1/q=2/b")
    for path in ("/ada", "/ada/stage", "/ada/stage/p=1", "/ada/stage/p=1/q=2", "/out"):
        fs.set_owner(path, "ada", "ada")
    ada = fs.user("ada")
    before = tree(fs, "/out"), tree(fs, "/ada")
    for mode in (ADD, PARTITIONS):
        with pytest.raises(AccessControlException, match='access=WRITE_EXECUTE, inode="/out/p=1"'):
            ada.commit_output("/ada/stage", "/out", mode)
    assert (tree(fs, "/out"), tree(fs, "/ada")) == before
    fs.set_permission("/out/p=1", 0o777)
    ada.commit_output("/ada/stage", "/out", ADD)
    assert set(tree(fs, "/out")) == {"/out/p=1/kept", "/out/p=1/a", "/out/p=1/q=2/b"}


def test_what_has_snapshots_of_its_own_stays(fs: ScratchClient) -> None:
    write(fs, "/out/d/a", "/stage/d/b")
    fs.allow_snapshot("/out/d")
    fs.create_snapshot("/out/d", "s")
    with pytest.raises(SnapshotException, match="/out/d"):
        fs.commit_output("/stage", "/out")
    fs.commit_output("/stage", "/out", ADD)
    assert set(tree(fs, "/out")) == {"/out/d/a", "/out/d/b"}
    clean(fs)


def test_there_is_a_limit(fs: ScratchClient, monkeypatch: pytest.MonkeyPatch) -> None:
    write(fs, *(f"/stage/{n}" for n in range(3)), "/out/old")
    monkeypatch.setattr(job_output, "ENTRIES_MAX", 3)
    with pytest.raises(IOException, match="more than 3 entries"):
        fs.commit_output("/stage", "/out")
    monkeypatch.setattr(job_output, "ENTRIES_MAX", 4)
    fs.commit_output("/stage", "/out")
    assert len(tree(fs, "/out")) == 3


@pytest.mark.parametrize("seed", range(4))
def test_any_output_goes_where_a_plain_model_says(fs: ScratchClient, seed: int) -> None:
    choose = random.Random(seed)
    fs.allow_snapshot("/")
    fs.mkdirs("/out")
    expected: dict[str, int] = {}
    for step in range(6):
        mode = choose.choice(list(OutputMode))
        names = {f"p={choose.randrange(3)}/q={choose.randrange(2)}/f{step}-{n}" for n in range(3)}
        write(fs, *(f"/stage/{name}" for name in names), "/stage/_SUCCESS")
        staged = {path.removeprefix("/stage"): id for path, id in tree(fs, "/stage").items()}
        fs.commit_output("/stage", "/out", mode)
        if mode is OutputMode.REPLACE:
            expected = {}
        if mode is PARTITIONS:
            parts = {path.rpartition("/")[0] for path in staged}
            expected = {p: id for p, id in expected.items() if p.rpartition("/")[0] not in parts}
        expected |= staged
        assert {p.removeprefix("/out"): id for p, id in tree(fs, "/out").items()} == expected
        if choose.random() < 0.5:
            fs.create_snapshot("/", f"s{step}")
    clean(fs)
