"""`cairn fs` does and says what Hadoop's shell does and says, on a real cluster."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cairn_shell import run_cairn
from tests.cli.tables import comparable, compare
from tests.client.real_hdfs import JARS, RealHdfs
from tests.compatibility.record import GOLDEN, HERE, SCRIPTS, make_local_files
from tests.compatibility.shell import CALL, FILL, Outcome, parse_bytes, why_not
from tests.compatibility.test_fsshell import known_differences
from tests.compatibility.transcript import (
    Entry,
    find_differences,
    read_script,
    read_transcript,
    run_script,
)

from cairnfs.cli.main import main
from cairnfs.client.filesystem import connect
from cairnfs.errors import HdfsError
from cairnfs.testing.cluster import Cluster

NAME = getpass.getuser()

# Our words are not Hadoop's: it shows a Java exception, or knows less.
OTHER_WORDS = {"-mkdir //double//slashes", "-setfattr -n user.colour -v 0xzz /x/file"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("fs") / "cluster") as cluster:
        yield cluster


def find_differences_from_hdfs(
    uri: str, directory: Path, script: str = "fsshell.txt"
) -> list[tuple[Entry, Entry]]:
    """Run a table of tests/compatibility, whose outcomes on a real HDFS are recorded."""
    local = directory / "local"
    make_local_files(local)

    def run(user: str, arguments: list[str]) -> Outcome:
        if arguments[0] == CALL:
            call(uri, user, *arguments[1:])
            return Outcome("", "", 0)
        return run_cairn(uri, user, arguments)

    entries = run_script(read_script(HERE / script), run, superuser=NAME, local=local, uri=uri)
    differences = find_differences(
        [comparable(entry) for entry in read_transcript(GOLDEN / script) if is_verb(entry)],
        [comparable(entry) for entry in entries if is_verb(entry)],
    )
    return [
        (golden, ours)
        for golden, ours in differences
        if not (golden.command in OTHER_WORDS and golden.code == ours.code)
    ]


def call(uri: str, user: str, method: str, *arguments: str) -> None:
    """A call for which there is no verb; only what it changes matters here."""
    calls = {"allowSnapshot": "allow_snapshot", "disallowSnapshot": "disallow_snapshot"}
    calls["createSnapshot"] = "create_snapshot"
    calls["removeXAttr"] = "remove_xattr"
    with connect(uri, user=user) as fs, contextlib.suppress(HdfsError):
        if method in calls:
            getattr(fs, calls[method])(*arguments)
        elif method == "setXAttr":
            path, name, value, *flags = arguments
            chosen = flags[0] if flags else "CREATE,REPLACE"
            create, replace = "CREATE" in chosen, "REPLACE" in chosen
            fs.set_xattr(path, name, parse_bytes(value) or b"", create=create, replace=replace)
        elif method == FILL:
            for number in range(int(arguments[1])):
                fs.set_xattr(arguments[0], f"user.{number}", b"x")


def is_verb(entry: Entry) -> bool:
    return f"{CALL} " not in entry.command


@pytest.mark.parametrize("script", SCRIPTS)
def test_commands_end_as_on_hdfs(cluster: Cluster, tmp_path: Path, script: str) -> None:
    with connect(cluster.uri) as fs:
        for status in fs.list_status("/"):
            fs.delete(status.path, recursive=True)
    unexpected = [
        f"{golden}\n--- here\n{ours}"
        for golden, ours in find_differences_from_hdfs(cluster.uri, tmp_path, script)
        if golden.command not in known_differences(script)
    ]
    assert not unexpected, "\n\n" + "\n\n".join(unexpected)


@pytest.mark.java
@pytest.mark.skipif(not JARS.is_dir(), reason="there is no Apache HDFS to test with")
def test_commands_do_on_hdfs_what_hadoops_shell_does(tmp_path: Path) -> None:
    with RealHdfs(tmp_path, datanodes=3) as hdfs:
        assert find_differences_from_hdfs(hdfs.uri, tmp_path) == []
        for action in (["report"], ["fsck", "/"], ["leases"], ["safemode", "get"], ["namenodes"]):
            assert main(["admin", "--fs", hdfs.uri, *action, "--json"]) == 0


@pytest.mark.java
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_commands_end_as_with_hadoops_shell(cluster: Cluster, tmp_path: Path) -> None:
    """A table of our own, run with both shells."""
    differences = [f"{theirs}\n--- here\n{ours}" for theirs, ours in compare(cluster, tmp_path)]
    assert not differences, "\n\n" + "\n\n".join(differences)
    fetched = [
        sorted(path.relative_to(root) for path in root.rglob("*") if not path.name.endswith(".crc"))
        for root in (tmp_path / "hadoop", tmp_path / "cairn")
    ]
    assert fetched[0] == fetched[1]
    for path in fetched[0]:
        theirs, ours = tmp_path / "hadoop" / path, tmp_path / "cairn" / path
        if theirs.is_file():
            assert theirs.read_bytes() == ours.read_bytes(), path
    kept = [(tmp_path / shell / "got" / "old-too").stat() for shell in ("hadoop", "cairn")]
    assert kept[0].st_mode == kept[1].st_mode
    assert int(kept[0].st_mtime) == int(kept[1].st_mtime) == 1_400_000_000
