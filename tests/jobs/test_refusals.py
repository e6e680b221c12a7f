"""What jobs do not do, and what they say then; nothing is left of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.jobs.conftest import remove_everything
from tests.jobs.trees import write

import cairnfs
from cairnfs.errors import HdfsError
from cairnfs.jobs import backup, mirror, restore
from cairnfs.jobs.manifests import FORMAT, read_head, write_head
from cairnfs.jobs.places import Place
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]


def make_data(fs: cairnfs.FileSystem) -> None:
    write(fs, "/data/a", b"content of a")
    write(fs, "/data/b/c", b"content of c")
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s1")


@pytest.fixture(scope="module")
def pristine(
    cluster: Cluster, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A place with one backup, s1."""
    place = tmp_path_factory.mktemp("backups")
    with cairnfs.connect(cluster.uri) as fs:
        make_data(fs)
        backup(f"{fs.url}/data", "s1", f"file://{place}")
        remove_everything(fs)
    return place


@pytest.fixture
def made(pristine: Path, tmp_path: Path) -> Path:
    """A copy of it, in the place for backups."""
    shutil.copytree(pristine, tmp_path / "backups")
    return tmp_path / "backups" / "s1"


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(HdfsError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_backup_that_cannot_be(fs: cairnfs.FileSystem, backups: str, made: Path) -> None:
    make_data(fs)
    fs.create_snapshot("/data", "s2")
    data = f"{fs.url}/data"
    assert refused(lambda: backup(data, "s3", backups)) == (
        "/data has no snapshot 's3'; there are s1, s2"
    )
    said = refused(lambda: backup(f"{fs.url}/data/b", "s1", backups))
    assert said.startswith("/data/b has no snapshot 's1'; there are none")
    assert refused(lambda: backup(f"{fs.url}/nothing", "s1", backups)) == (
        "Directory does not exist: /nothing"
    )
    assert "is a backup of another snapshot" in refused(
        lambda: backup(data, "s2", backups, name="s1")
    )
    assert "'/backups' does not say on which file system" in refused(
        lambda: backup(data, "s2", "/backups")
    )
    assert "'a/b' cannot be the name" in refused(lambda: backup(data, "s2", backups, name="a/b"))
    (made.parent / "s2").mkdir()
    (made.parent / "s2" / "photo").write_bytes(b"mine")
    assert "is not empty, and no backup" in refused(lambda: backup(data, "s2", backups))
    assert "is a backup of another snapshot" in refused(lambda: backup(data, "s1", backups))


def test_a_place_that_is_taken(fs: cairnfs.FileSystem, backups: str, made: Path) -> None:
    fs.mkdirs("/full/of")
    write(fs, "/file", b"1")
    assert "/full is not empty" in refused(lambda: restore(backups, f"{fs.url}/full"))
    assert "/file is there, and no directory" in refused(lambda: restore(backups, f"{fs.url}/file"))
    assert "/ cannot be restored in place" in refused(lambda: restore(backups, f"{fs.url}/"))
    assert {each.name for each in fs.list_status("/")} == {"full", "file"}


def cut_short(made: Path, backups: str) -> str:
    (made / "head.json").unlink()
    return "is not complete: it was cut short"


def lose_a_pack(made: Path, backups: str) -> str:
    next((made / "data").iterdir()).unlink()
    return "is not there, not 24: the backup 's1' was cut short or changed"


def shorten_a_pack(made: Path, backups: str) -> str:
    pack = next((made / "data").iterdir())
    pack.write_bytes(pack.read_bytes()[:-1])
    return "has 23 bytes, not 24: the backup 's1' was cut short or changed"


def spoil_a_pack(made: Path, backups: str) -> str:
    pack = next((made / "data").iterdir())
    pack.write_bytes(pack.read_bytes().replace(b"of c", b"of d"))
    return "is damaged: the content of b/c is not what was backed up"


def change_the_manifest(made: Path, backups: str) -> str:
    part = next((made / "manifest").iterdir())
    part.write_bytes(part.read_bytes().replace(b"b/c", b"b/d"))
    return "is not what was written there: it was changed or is damaged"


def change_the_head(made: Path, backups: str) -> str:
    head = made / "head.json"
    head.write_bytes(head.read_bytes().replace(b'"files":2', b'"files":1'))
    return "head.json is not what was written there: it was changed"


def be_of_another_version(made: Path, backups: str) -> str:
    signed = json.loads((made / "head.json").read_text())
    signed["head"]["format"] = FORMAT + 1
    (made / "head.json").write_text(json.dumps(signed))
    return f"is of format {FORMAT + 1}, and this release reads {FORMAT}"


def be_too_large(made: Path, backups: str) -> str:
    head = read_head(Place(backups), "s1")
    write_head(Place(backups), msgspec.structs.replace(head, space_bytes=1 << 60))
    return "needs 1,152,921,504,606,846,976: add DataNodes, or make room"


@pytest.mark.parametrize(
    "spoil",
    [
        cut_short,
        lose_a_pack,
        shorten_a_pack,
        spoil_a_pack,
        change_the_manifest,
        change_the_head,
        be_of_another_version,
        be_too_large,
    ],
)
def test_a_backup_that_is_not_whole(
    spoil: Callable[[Path, str], str], fs: cairnfs.FileSystem, backups: str, made: Path
) -> None:
    expected = spoil(made, backups)
    assert expected in refused(lambda: restore(backups, f"{fs.url}/again", name="s1"))
    assert not fs.exists("/again")


def test_no_backup_at_all(fs: cairnfs.FileSystem, backups: str) -> None:
    assert "there is no backup 's1' in" in refused(
        lambda: restore(backups, f"{fs.url}/again", name="s1")
    )
    assert "there is no complete backup in" in refused(lambda: restore(backups, f"{fs.url}/again"))


def test_a_mirror_that_somebody_else_changed(
    fs: cairnfs.FileSystem, other: cairnfs.FileSystem
) -> None:
    write(fs, "/data/a", b"1")
    fs.allow_snapshot("/data")
    source, target = f"{fs.url}/data", f"{other.url}/copy"
    write(other, "/copy/mine", b"1")
    assert "is there, and not as a mirror" in refused(lambda: mirror(source, target))
    other.delete("/copy/mine")
    mirror(source, target)
    write(other, "/copy/mine", b"1")
    assert "is not as the last round has left it" in refused(lambda: mirror(source, target))
    other.delete("/copy/mine")
    mirror(source, target)
    for snapshot in fs.list_snapshots("/data"):
        fs.delete_snapshot("/data", snapshot.status.name)
    assert "is gone: remove the copy" in refused(lambda: mirror(source, target))
    fs.mkdirs("/more")
    assert "is the mirror of another directory: of /data" in refused(
        lambda: mirror(f"{fs.url}/more", target)
    )
    assert "cannot be a mirror of itself" in refused(lambda: mirror(source, source))
