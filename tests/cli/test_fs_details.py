"""What `cairn fs` does beyond Hadoop's shell, and at its edges."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.cairn_shell import run_cairn

from cairnfs.cli.fs.formats import format_size
from cairnfs.cli.fs.globs import compile_pattern, expand_alternatives
from cairnfs.cli.fs.permissions import ModeChange
from cairnfs.cli.fs.trash import Trash
from cairnfs.cli.fs.verbs import VERBS
from cairnfs.cli.progress import PATIENCE_S, Progress
from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.errors import IOException
from cairnfs.modes import format_mode
from cairnfs.testing.cluster import Cluster

PROGRAM = [sys.executable, "-m", "cairnfs.cli"]
SECONDS = 20.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("details") / "cluster", datanodes=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fs(cluster: Cluster) -> Iterator[FileSystem]:
    with connect(cluster.uri) as fs:
        yield fs


def write(fs: FileSystem, path: str, data: bytes = b"some bytes\n") -> None:
    with fs.create(path, overwrite=True, replication=1) as file:
        file.write(data)


def cairn(cluster: Cluster, *arguments: str, code: int = 0) -> str:
    """What `cairn fs` prints on standard output."""
    outcome = run_cairn(cluster.uri, "root", list(arguments))
    assert outcome.code == code, outcome.err
    assert not outcome.err or code
    return outcome.out


def environment(cluster: Cluster) -> dict[str, str]:
    return {**os.environ, "CAIRN_FS": cluster.uri}


# For programs


def test_json_has_a_line_for_each_result(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/json/below")
    write(fs, "/json/file")
    by_name = {
        os.path.basename(entry["path"]): entry
        for entry in map(json.loads, cairn(cluster, "ls", "--json", "/json").splitlines())
    }
    assert by_name["below"]["type"] == "DIRECTORY"
    assert by_name["file"]["length_bytes"] == 11
    assert by_name["file"]["mode"] == "0644"
    assert cairn(cluster, "--json", "-stat", "/json/file").count("\n") == 1
    assert json.loads(cairn(cluster, "du", "-s", "--json", "/json"))["length_bytes"] == 11
    assert json.loads(cairn(cluster, "count", "--json", "-q", "/json"))["directories"] == 2
    assert json.loads(cairn(cluster, "df", "--json"))["capacity_bytes"] > 0
    assert len(json.loads(cairn(cluster, "checksum", "--json", "/json/file"))["digest"]) == 56
    assert "user::rw-" in json.loads(cairn(cluster, "getfacl", "--json", "/json/file"))["entries"]
    assert json.loads(cairn(cluster, "rm", "--json", "/json/file")) == {"deleted": "/json/file"}
    refused = run_cairn(cluster.uri, "root", ["mkdir", "--json", "/json/x"])
    assert refused.code == -1
    assert "there is no --json for mkdir" in refused.err


# Verbs and help


def test_verbs_need_no_dash_and_every_one_has_help(cluster: Cluster) -> None:
    assert cairn(cluster, "ls", "-d", "/") == cairn(cluster, "-ls", "-d", "/")
    shown = cairn(cluster, "help")
    for name, entry in VERBS.items():
        assert f"  {name} " in shown
        assert cairn(cluster, "help", name).startswith(f"-{name} {entry.usage} :\n")
        assert cairn(cluster, "usage", name).rstrip().endswith(f"-{name} {entry.usage}")
    assert "-skipTrash" in VERBS["rm"].options


def test_a_mistake_shows_how_its_verb_is_called(cluster: Cluster) -> None:
    refused = run_cairn(cluster.uri, "root", ["ls", "-Z"])
    assert refused.code == -1
    assert refused.err.splitlines() == [
        "-ls: Illegal option -Z",
        f"Usage: cairn fs [--fs URL] -ls {VERBS['ls'].usage}",
    ]


def test_the_file_system_is_named_in_several_ways(
    cluster: Cluster, fs: FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.mkdirs("/named")
    nowhere = "hdfs://127.0.0.1:1"
    for options in (["--fs", cluster.uri], [f"--fs={cluster.uri}"], ["-fs", cluster.uri]):
        assert run_cairn(nowhere, "root", [*options, "ls", "-d", "/named"]).code == 0
    in_full = f"{cluster.uri.replace('hdfs:', 'cairn:')}/named"
    assert run_cairn(nowhere, "root", ["ls", "-C", "-d", in_full]).out == f"{in_full}\n"

    several = f"{nowhere},{cluster.uri.removeprefix('hdfs://')}"
    assert run_cairn(several, "root", ["ls", "-d", "/named"]).code == 0

    silent = run_cairn(nowhere, "root", ["ls", "/", "/x"])
    assert silent.code == 1
    assert silent.err.count("\n") == 1
    assert f"nobody answers at {nowhere}, which CAIRN_FS names" in silent.err

    elsewhere = run_cairn(cluster.uri, "root", ["ls", f"{nowhere}/x"])
    assert f"nobody answers at {nowhere}, which a path names" in elsewhere.err

    monkeypatch.setenv("CAIRNFS_HOME", str(tmp_path))
    port = cluster.uri.rpartition(":")[2]
    (tmp_path / "cluster.json").write_text(f'{{"namenode": {{"port": {port}}}, "datanodes": []}}')
    assert run_cairn("", "root", ["ls", "-d", "/named"]).code == 0


def test_settings_are_given_as_hadoop_has_them(
    cluster: Cluster, fs: FileSystem, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    sizes = ("-D", "dfs.blocksize=1m", "-Ddfs.replication=2")
    cairn(cluster, *sizes, "put", str(tmp_path / "file"), "/settings")
    cairn(cluster, *sizes, "get", "/settings", str(tmp_path / "back"))
    status = fs.get_file_status("/settings")
    assert (status.block_size_bytes, status.replication) == (1 << 20, 2)
    refused = run_cairn(cluster.uri, "root", ["-D", "dfs.replication=x", "touchz", "/settings2"])
    assert (refused.code, fs.exists("/settings2")) == (-1, False)
    warned = run_cairn(cluster.uri, "root", ["-D", "io.sort=1", "ls", "-d", "/"])
    assert warned.err == "ls: -D io.sort has no effect here\n"


def test_listings_are_sorted_by_time_and_size(cluster: Cluster, fs: FileSystem) -> None:
    for name, length, time_ms in (("a", 3, 2000), ("b", 1, 3000), ("c", 2, 1000), ("d", 2, 1000)):
        write(fs, f"/sorted/{name}", bytes(length))
        fs.set_times(f"/sorted/{name}", time_ms, 10_000 - time_ms)

    def names(*options: str) -> str:
        listed = cairn(cluster, "ls", "-C", *options, "/sorted").splitlines()
        return "".join(path[-1] for path in listed)

    assert names() == "abcd"
    assert names("-r") == "dcba"
    assert names("-t") == "bacd"
    assert names("-t", "-r") == "cdab"
    assert names("-t", "-u") == "cdab"
    assert names("-S") == "acdb"
    assert names("-S", "-r") == "bcda"


def test_paths_may_be_as_deep_as_hdfs_allows(cluster: Cluster, fs: FileSystem) -> None:
    levels = 990
    fs.mkdirs("/deep" + "/d" * levels)
    assert cairn(cluster, "find", "/deep").count("\n") == levels + 1
    fs.delete("/deep", recursive=True)


def test_two_dashes_end_the_options(cluster: Cluster, fs: FileSystem) -> None:
    """Hadoop's shell loses them, and cannot name what begins with a dash."""
    cairn(cluster, "mkdir", "-p", "--", "-dashed", "--json")
    assert fs.exists(f"{fs.home_directory}/-dashed")
    assert cairn(cluster, "ls", "-d", "-C", "--", "--json") == "--json\n"


def test_a_name_that_is_not_utf8_is_refused(cluster: Cluster) -> None:
    outcome = run_cairn(cluster.uri, "root", ["ls", os.fsdecode(b"/\xff"), "/"])
    assert outcome.code == 1
    assert "is not UTF-8" in outcome.err
    assert "Found" in outcome.out


# Copies that do not succeed


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"cairn: interrupted\n"), (signal.SIGTERM, 143, b"")],
)
def test_an_interrupted_put_leaves_nothing_behind(
    cluster: Cluster, fs: FileSystem, number: signal.Signals, code: int, said: bytes
) -> None:
    fs.mkdirs("/interrupted")
    command = [*PROGRAM, "fs", "-put", "-", "/interrupted/file"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(cluster)
    )
    assert process.stdin is not None
    process.stdin.write(bytes(1 << 20))
    process.stdin.flush()
    deadline_s = time.monotonic() + SECONDS
    while not fs.exists("/interrupted/file._COPYING_"):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert errors == said
    assert fs.list_status("/interrupted") == []


def test_copies_in_threads_are_interrupted_too(
    cluster: Cluster, fs: FileSystem, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(4):
        os.mkfifo(tree / f"fifo{number}")  # a file that never ends
    writers = [os.open(path, os.O_RDWR) for path in tree.iterdir()]
    for writer in writers:
        os.write(writer, b"some")
    process = subprocess.Popen(
        [*PROGRAM, "fs", "-put", "-t", "4", str(tree), "/fifos"],
        stderr=subprocess.PIPE,
        env=environment(cluster),
    )
    deadline_s = time.monotonic() + SECONDS
    while not (fs.exists("/fifos") and len(fs.list_status("/fifos")) == 4):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    for writer in writers:  # whoever waits for more notices only then
        os.write(writer, b"more")
    _, errors = process.communicate(timeout=SECONDS)
    for writer in writers:
        os.close(writer)
    assert process.returncode == 130, errors
    assert fs.list_status("/fifos") == []


def test_a_file_is_not_written_over_itself(cluster: Cluster, fs: FileSystem) -> None:
    write(fs, "/itself", b"kept")
    cairn(cluster, "cp", "-f", "/itself", "/itself")
    outcome = run_cairn(cluster.uri, "root", ["cp", "-f", "-d", "/itself", "/itself"])
    assert outcome.err == "cp: `/itself' to `/itself': are identical\n"
    with fs.open("/itself") as file:
        assert file.read() == b"kept"


def test_a_failed_get_leaves_what_was_there(
    cluster: Cluster, fs: FileSystem, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    write(fs, "/unreadable")
    fs.set_permission("/unreadable", 0o600)
    outcome = run_cairn(cluster.uri, "alice", ["get", "-f", "/unreadable", str(kept)])
    assert outcome.code == 1
    assert "Permission denied: user=alice, access=READ" in outcome.err
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [kept]


def test_what_is_copied_in_threads_is_all_there(
    cluster: Cluster, fs: FileSystem, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    for number in range(30):
        folder = tree / f"folder{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}").write_bytes(os.urandom(100 * number))
    cairn(cluster, "put", "-t", "8", "-q", "3", str(tree), "/threads")
    cairn(cluster, "cp", "-t", "4", "/threads", "/threads2")
    cairn(cluster, "get", "-t", "8", "/threads2", str(tmp_path / "back"))
    for path in tree.rglob("*"):
        if path.is_file():
            assert (tmp_path / "back" / path.relative_to(tree)).read_bytes() == path.read_bytes()


def test_a_reader_that_has_seen_enough_ends_it_silently(cluster: Cluster, fs: FileSystem) -> None:
    write(fs, "/long", bytes(4 << 20))
    for verb in (["-cat", "/long"], ["-find", "/"]):
        command = " ".join([*PROGRAM, "fs", *verb])
        done = subprocess.run(
            ["bash", "-c", f"{command} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            env=environment(cluster),
            timeout=SECONDS,
        )
        assert done.stderr == ""
        assert done.stdout.strip() in ("0", "1")


# Terminals


def run_in_terminal(cluster: Cluster, *arguments: str, **more: str) -> str:
    """What a person sees of both streams."""
    master, slave = pty.openpty()
    variables = environment(cluster) | more
    process = subprocess.Popen(
        [*PROGRAM, "fs", *arguments], stdin=slave, stdout=slave, stderr=slave, env=variables
    )
    os.close(slave)
    seen = b""
    try:
        while data := os.read(master, 65536):
            seen += data
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(SECONDS) == 0, seen
    return seen.decode()


def test_colours_are_for_people_who_want_them(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/colours/directory")
    blue = "\033[34;1m/colours/directory\033[0m"
    assert blue in run_in_terminal(cluster, "ls", "/colours")
    assert "\033" not in run_in_terminal(cluster, "ls", "/colours", NO_COLOR="1")
    assert "\033" not in cairn(cluster, "ls", "/colours")


def test_long_copies_show_how_far_they_are(cluster: Cluster, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    os.mkfifo(slow)

    def feed() -> None:
        with slow.open("wb", buffering=0) as pipe:
            for _ in range(3):
                pipe.write(bytes(50_000))
                time.sleep(PATIENCE_S)

    feeder = threading.Thread(target=feed)
    feeder.start()
    seen = run_in_terminal(cluster, "put", str(slow), "/slow")
    feeder.join()
    assert "% [" in seen
    assert "kB/s" in seen
    assert seen.endswith("\r\033[K")


def test_the_share_is_of_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.is_shown = True
    progress.expect(400)
    progress.begin("one", 100)
    progress.advance(50)
    assert capsys.readouterr().err == ""  # what takes no time needs no bar
    time.sleep(PATIENCE_S)
    progress.advance(50)
    assert capsys.readouterr().err.startswith("\r 25% [######..................] 100 B, ")
    progress.clear()
    assert capsys.readouterr().err == "\r\033[K"


# Trash


def test_the_trash_keeps_what_is_removed(cluster: Cluster, fs: FileSystem) -> None:
    trash = Trash(fs, interval_minutes=60)
    current = f"{trash.root}/Current"
    write(fs, "/trashed/file", b"1")
    assert trash.move("/trashed/file") == f"{current}/trashed/file"
    write(fs, "/trashed/file", b"2")
    again = trash.move("/trashed/file")
    assert again is not None
    assert again.startswith(f"{current}/trashed/file1")
    assert trash.move(again) is None  # is there already

    write(fs, "/trashed/file/now/deeper", b"3")  # a file is in its way there
    deeper = trash.move("/trashed/file/now/deeper")
    assert deeper is not None
    assert deeper.startswith(f"{current}/trashed/file1")
    with pytest.raises(IOException, match="as it contains the trash"):
        trash.move("/user")

    trash.checkpoint()
    assert not fs.exists(current)
    (checkpoint,) = fs.list_status(trash.root)
    trash.expunge()
    assert fs.exists(checkpoint.path)
    Trash(fs, interval_minutes=0).expunge()
    assert fs.list_status(trash.root) == []


def test_the_trash_wants_the_rights_of_a_deletion(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/user/alice")
    fs.set_owner("/user/alice", "alice", "alice")
    fs.mkdirs("/user/alice/mine/of-root/sub")
    fs.set_owner("/user/alice/mine", "alice", "alice")
    with (
        connect(cluster.uri, user="alice") as alice,
        pytest.raises(IOException, match="Permission denied"),
    ):
        Trash(alice, interval_minutes=60).move("/user/alice/mine")
    assert fs.exists("/user/alice/mine/of-root/sub")


# Texts


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1 K"),
        (1280, "1.3 K"),
        (600_114, "586.0 K"),
        ((1 << 20) - 1, "1.0 M"),
        (3 << 30, "3 G"),
        (-1536, "-1.5 K"),
    ],
)
def test_sizes_are_rounded_as_hadoop_does(count: int, text: str) -> None:
    assert format_size(count, is_human=True) == text


def test_modes_are_letters() -> None:
    assert format_mode(0o1777) == "rwxrwxrwt"
    assert format_mode(0o1640) == "rw-r----T"


@pytest.mark.parametrize(
    ("change", "mode", "is_directory", "changed"),
    [
        ("750", 0o644, False, 0o750),
        ("1777", 0o755, True, 0o1777),
        ("755", 0o1777, True, 0o755),
        ("g+w,o-r", 0o644, False, 0o660),
        ("a=rX", 0o644, False, 0o444),
        ("a=rX", 0o644, True, 0o555),
        ("+t", 0o755, True, 0o1755),
        ("-t", 0o1755, True, 0o755),
    ],
)
def test_modes_change(change: str, mode: int, is_directory: bool, changed: int) -> None:
    assert ModeChange(change).apply(mode, is_directory) == changed


@pytest.mark.parametrize("text", ["8", "99", "u+z", "go=", "u+r g+r", "2755", ""])
def test_other_modes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a mode"):
        ModeChange(text)


def test_patterns_match_names() -> None:
    assert compile_pattern("a*{b,cd}[0-9]?")("axxcd7z")
    assert not compile_pattern("a*{b,cd}[0-9]?")("axxc7z")
    assert compile_pattern(r"a\*b.(c)+")("a*b.(c)+")
    assert compile_pattern("[^a]")("b")
    assert not compile_pattern("[!a]")("a")


def test_alternatives_with_slashes_are_written_out() -> None:
    assert expand_alternatives("/{a,b}/c") == ["/{a,b}/c"]
    assert expand_alternatives("/{a/b,c}/{d,e/f}") == ["/a/b/d", "/a/b/e/f", "/c/d", "/c/e/f"]
    assert expand_alternatives("/x{/a,/{b/c,d}}") == ["/x/a", "/x/b/c", "/x/d"]
    assert expand_alternatives(r"/\{a/b,c}") == [r"/\{a/b,c}"]
