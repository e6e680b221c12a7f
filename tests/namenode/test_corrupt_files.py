"""Which files have lost what was in them, as an administrator asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from tests.namenode.datanodes import BLOCK_BYTES, FakeCluster, FakeDataNode, others
from tests.namenode.rpc import RpcClient

from cairnfs.errors import AccessControlException
from cairnfs.namesystem import corrupt_files, layered_children, layers, unsettled
from cairnfs.store.schema import Table
from cairnfs.wire.proto import client_namenode_pb2 as pb


def list_corrupt_files(rpc: RpcClient, path: str = "/", cookie: str | None = None) -> list[str]:
    """As Hadoop's client asks: until an answer is empty."""
    found: list[str] = []
    while True:
        request = pb.ListCorruptFileBlocksRequestProto(path=path, cookie=cookie)
        response = rpc.call("listCorruptFileBlocks", request).corrupt
        if not response.files:
            return found
        found += response.files
        cookie = response.cookie


def test_files_that_lost_their_blocks_are_listed_to_the_superuser(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corrupt_files, "CORRUPT_PAGE", 2)
    for directory in ("/d", "/dd"):
        cluster.client.mkdirs(directory)
    lost = ["/d/f", "/d/g", "/dd/f", "/e", "/i"]
    for path in (*lost, "/gone"):
        cluster.write(path, replication=3 if path in lost else 1)
    assert list_corrupt_files(rpc) == []

    cluster.bury(*others(cluster))
    cluster.client.delete("/gone")
    assert list_corrupt_files(rpc) == lost
    assert list_corrupt_files(rpc, "/d") == ["/d/f", "/d/g"]
    assert list_corrupt_files(rpc, "/e") == ["/e"]
    assert list_corrupt_files(rpc, "/i") == ["/i"]  # behind pages that have none
    assert list_corrupt_files(rpc, "/missing") == []
    assert list_corrupt_files(rpc, cookie="no number") == lost
    assert list_corrupt_files(rpc, cookie="-1") == lost
    assert list_corrupt_files(rpc, cookie="[0,0,0,[]," + "[" * 50_000) == lost
    assert list_corrupt_files(rpc, cookie="9" * 30) == []
    with RpcClient(cluster.port, "ada") as other, pytest.raises(AccessControlException):
        list_corrupt_files(other)

    nodes[0].come()
    cluster.live(3)
    assert list_corrupt_files(rpc) == []


def test_who_shares_a_block_shares_its_loss(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    client = cluster.client
    client.mkdirs("/d")
    for path in ("/d/kept", "/d/deleted"):
        cluster.write(path)
    client.allow_snapshot("/d")
    client.create_snapshot("/d", "s")
    client.clone_snapshot("/d", "s", "/clone")
    client.set_permission("/clone/kept", 0o600)  # from now on it has rows of its own
    client.delete("/d/deleted")
    cluster.bury(*others(cluster))
    assert sorted(set(list_corrupt_files(rpc))) == ["/clone/kept", "/d/kept"]


# What has no rows of its own


def files_below(cluster: FakeCluster, directory: str = "/") -> list[str]:
    """All that a walk meets."""
    found = []
    for status in cluster.client.get_listing(directory).entries:
        path = f"{directory.rstrip('/')}/{status.name.decode()}"
        found += files_below(cluster, path) if status.is_directory else [path]
    return found


def lose_all(cluster: FakeCluster) -> None:
    """What snapshots do not need is reclaimed, and every DataNode is gone for good."""
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.bury(*others(cluster))


def make(cluster: FakeCluster, *paths: str) -> None:
    """Files below /d, and a snapshot of it."""
    for path in paths:
        cluster.client.mkdirs(path.rpartition("/")[0])
        cluster.write(path)
    cluster.client.allow_snapshot("/d")
    cluster.client.create_snapshot("/d", "s")


@pytest.fixture(params=["pages of 2", "large pages"])
def pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a transaction looks at: next to nothing, or all, beside few of the blocks at a time."""
    monkeypatch.setattr(corrupt_files, "CORRUPT_PAGE", 2)
    if request.param == "pages of 2":
        monkeypatch.setattr(corrupt_files, "VIRTUAL_PAGE", 2)
        monkeypatch.setattr(unsettled, "_NAMES_FIRST", 2)
        monkeypatch.setattr(unsettled, "_NOTES_PAGE", 2)
        monkeypatch.setattr(unsettled, "NAMES_MAX", 2)
        monkeypatch.setattr(layered_children, "NAMES_MAX", 2)


@pytest.mark.usefixtures("nodes", "pages")
def test_what_a_roll_back_brought_back_is_listed(cluster: FakeCluster, rpc: RpcClient) -> None:
    make(cluster, "/d/a", "/d/b", "/d/x/c", "/d/x/y/e", "/d/z")
    cluster.client.delete("/d/a")
    cluster.client.delete("/d/x", recursive=True)
    cluster.client.rollback_snapshot("/d", "s")
    assert list_corrupt_files(rpc) == []
    lose_all(cluster)
    lost = ["/d/a", "/d/b", "/d/x/c", "/d/x/y/e", "/d/z"]
    assert list_corrupt_files(rpc) == lost == sorted(files_below(cluster))
    assert list_corrupt_files(rpc, "/d/x") == ["/d/x/c", "/d/x/y/e"]
    assert list_corrupt_files(rpc, "/d/x/y/e") == ["/d/x/y/e"]
    assert list_corrupt_files(rpc, "/d/") == lost
    assert list_corrupt_files(rpc, "/dd") == []


@pytest.mark.usefixtures("nodes", "pages")
def test_a_clone_is_listed_without_and_beside_its_originals(
    cluster: FakeCluster, rpc: RpcClient
) -> None:
    make(cluster, "/d/deleted", "/d/kept", "/d/x/kept")
    cluster.client.clone_snapshot("/d", "s", "/clone")
    cluster.client.delete("/d/deleted")
    lose_all(cluster)
    clone = ["/clone/deleted", "/clone/kept", "/clone/x/kept"]
    assert sorted(list_corrupt_files(rpc)) == [*clone, "/d/kept", "/d/x/kept"]
    assert list_corrupt_files(rpc, "/clone") == clone
    assert list_corrupt_files(rpc, "/d") == ["/d/kept", "/d/x/kept"]


@pytest.mark.usefixtures("nodes", "pages")
def test_clones_of_clones_and_roll_backs_of_roll_backs_are_listed_once(
    cluster: FakeCluster, rpc: RpcClient
) -> None:
    client = cluster.client
    names = ["a", "b", "x/a", "x/b", "x/y/a", "x/y/b", "x/z/a", "x/z/b"]
    make(cluster, *(f"/d/{name}" for name in names))
    client.mkdirs("/w")
    client.clone_snapshot("/d", "s", "/w/one")
    client.set_permission("/w/one/x/y/a", 0o600)  # it and all above it get rows
    client.delete("/w/one/x/y/b")
    client.allow_snapshot("/w")
    client.create_snapshot("/w", "t")
    client.clone_snapshot("/w", "t", "/two")  # in which there is a clone
    client.rename("/two/one/x/z", "/moved")
    client.delete("/w/one", recursive=True)
    client.rollback_snapshot("/w", "t")
    client.delete("/w/one/a")
    client.create_snapshot("/w", "u")
    client.delete("/w/one/x", recursive=True)
    client.rollback_snapshot("/w", "u")
    client.set_permission("/w/one/x/b", 0o600)
    client.delete("/d/a")
    client.rollback_snapshot("/d", "s")
    client.rename("/d/x", "/d/renamed")
    lose_all(cluster)
    listed = list_corrupt_files(rpc)
    assert sorted(listed) == sorted(files_below(cluster))
    assert "/moved/a" in listed
    assert "/w/one/a" not in listed
    assert "/w/one/x/y/b" not in listed
    assert len(listed) == 8 + 6 + 5 + 2  # /d, /w, /two, /moved


@pytest.mark.usefixtures("nodes", "pages")
def test_what_is_no_longer_there_or_has_rows_by_now_is_no_trouble_to_the_list(
    cluster: FakeCluster, rpc: RpcClient
) -> None:
    client = cluster.client
    make(cluster, *(f"/d/{n}" for n in range(9)))
    for clone in ("/deleted", "/hidden", "/settled"):
        client.clone_snapshot("/d", "s", clone)
    for n in range(8):
        client.delete(f"/hidden/{n}")  # pages of nothing else
    for n in range(9):
        client.set_permission(f"/settled/{n}", 0o600)
    client.delete("/deleted", recursive=True)
    cluster.bury(*others(cluster))
    assert Counter(list_corrupt_files(rpc)) == Counter(files_below(cluster))


def test_directories_with_too_many_origins_are_looked_at_too(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers, "LAYERS_MANY", 1)
    make(cluster, "/d/a", "/d/b")
    cluster.client.clone_snapshot("/d", "s", "/clone")
    cluster.client.allow_snapshot("/clone")
    cluster.client.create_snapshot("/clone", "s")
    cluster.client.rollback_snapshot("/clone", "s")
    assert cluster.rows(Table.LAYERED, layers.LayeredQueue.DEEP)
    cluster.bury(*others(cluster))
    assert list_corrupt_files(rpc) == ["/clone/a", "/clone/b", "/d/a", "/d/b"]


def test_a_clone_has_not_lost_what_was_written_after_its_snapshot(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    client = cluster.client
    make(cluster, "/d/whole")
    client.create("/d/f", block_size_bytes=BLOCK_BYTES)
    first = cluster.add_block("/d/f")
    for storage in first.targets:
        cluster.finish(storage, first, BLOCK_BYTES)
    second = cluster.add_block("/d/f", msgspec.structs.replace(first, length_bytes=BLOCK_BYTES))
    client.create_snapshot("/d", "t")
    client.clone_snapshot("/d", "t", "/clone")
    for storage in second.targets:
        cluster.finish(storage, second, 10)
    assert cluster.complete("/d/f", second, 10)
    for node in nodes:
        node.delete(second.id)
    cluster.live(2)
    assert list_corrupt_files(rpc) == ["/d/f"]


def test_what_gets_rows_between_two_pages_is_told_all_the_same(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corrupt_files, "VIRTUAL_PAGE", 1)
    make(cluster, "/d/a", "/d/x/b", "/d/x/c", "/d/x/e")
    cluster.client.clone_snapshot("/d", "s", "/clone")
    lose_all(cluster)
    found, cookie = list[str](), ""
    for change in ("", "/clone/x/e", "/clone/x/b", *[""] * 20):
        if change:
            cluster.client.set_permission(change, 0o600)
        request = pb.ListCorruptFileBlocksRequestProto(path="/clone", cookie=cookie)
        response = rpc.call("listCorruptFileBlocks", request).corrupt
        found, cookie = [*found, *response.files], response.cookie
        if not response.files:
            break
    assert set(found) == set(files_below(cluster, "/clone"))


@pytest.mark.parametrize(
    "cookie",
    [
        '[0,0,0,["Lg=="]]',
        '[1,9223372036854775807,9223372036854775807,["AAAA","LwD/"]]',
        '[0,99999,16385,[""]]',
        "[2,0,0]",
        "[0,-1,0]",
        "[0,0]",
        "[",
        "1.5",
        '"1"',
    ],
)
def test_a_cookie_that_nobody_was_given_does_no_harm(
    sqlite_cluster: FakeCluster, cookie: str
) -> None:
    cluster = sqlite_cluster
    cluster.add("a", "b", "c")
    make(cluster, "/d/a")
    cluster.client.clone_snapshot("/d", "s", "/clone")
    lose_all(cluster)
    with RpcClient(cluster.port) as rpc:
        assert set(list_corrupt_files(rpc, cookie=cookie)) <= {"/clone/a", "/d/a"}


def test_without_a_lost_block_no_clone_is_looked_at(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def spy(original: Callable[..., object]) -> Callable[..., object]:
        def look(tx: object, reached: object, near: object) -> object:
            looked.append(str(near))
            return original(tx, reached, near)

        return look

    monkeypatch.setattr(corrupt_files, "virtual_behind", spy(corrupt_files.virtual_behind))
    make(cluster, "/d/a")
    cluster.client.clone_snapshot("/d", "s", "/clone")
    assert list_corrupt_files(rpc) == []
    assert looked == []
    cluster.bury(*nodes)
    assert list_corrupt_files(rpc) == ["/clone/a", "/d/a"]
    assert looked == ["/"]
