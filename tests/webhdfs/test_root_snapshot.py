"""The root snapshot over HTTP: our own operations."""

from __future__ import annotations

from tests.webhdfs.test_snapshots import ask, names

from cairnfs.testing.cluster import Cluster


def test_everything_goes_back(cluster: Cluster) -> None:
    ask(cluster, "PUT", "/rooted/kept", "op=MKDIRS")
    status, answer = ask(cluster, "PUT", "/", "op=CREATEROOTSNAPSHOT&snapshotname=upgrade")
    assert status == 200
    taken = answer["RootSnapshot"]
    assert taken["snapshotName"] == "upgrade"
    ask(cluster, "DELETE", "/rooted/kept", "op=DELETE")
    ask(cluster, "PUT", "/rooted/new", "op=MKDIRS")
    ask(cluster, "PUT", "/rooted/new2", "op=MKDIRS")
    _, answer = ask(cluster, "GET", "/", "op=GETROOTSNAPSHOTSTATUS")
    found = answer["RootSnapshot"]
    assert {key: found[key] for key in taken} == taken
    assert found["now"]["directoryCount"] == found["then"]["directoryCount"] + 1
    assert found["lastTxid"] >= found["txid"] + 3
    assert found["hindrances"] == []

    status, answer = ask(cluster, "PUT", "/", "op=ROLLBACKROOTSNAPSHOT")
    assert status == 200
    assert names(cluster, "/rooted") == ["kept"]
    safety = answer["SafetySnapshot"]
    assert names(cluster, f"/.snapshot/{safety}/rooted") == ["new", "new2"]
    status, answer = ask(cluster, "PUT", "/", "op=FINALIZEROOTSNAPSHOT")
    assert (status, answer) == (200, {"DeletedSnapshots": [safety, "upgrade"]})
    _, answer = ask(cluster, "GET", "/", "op=GETROOTSNAPSHOTSTATUS")
    assert answer["RootSnapshot"] is None


def test_what_is_wrong_is_said(cluster: Cluster) -> None:
    for method, path, query, status, name in (
        ("PUT", "/", "op=ROLLBACKROOTSNAPSHOT", 403, "SnapshotException"),
        ("PUT", "/", "op=FINALIZEROOTSNAPSHOT", 403, "SnapshotException"),
        ("PUT", "/below", "op=CREATEROOTSNAPSHOT", 400, "IllegalArgumentException"),
        ("GET", "/below", "op=GETROOTSNAPSHOTSTATUS", 400, "IllegalArgumentException"),
        ("PUT", "/", "op=CREATEROOTSNAPSHOT&snapshotname=a/b", 400, "InvalidPathException"),
        ("GET", "/", "op=CREATEROOTSNAPSHOT", 400, "IllegalArgumentException"),
    ):
        answered, answer = ask(cluster, method, path, query)
        assert (answered, answer["RemoteException"]["exception"]) == (status, name), query
    for query in ("CREATEROOTSNAPSHOT", "ROLLBACKROOTSNAPSHOT", "FINALIZEROOTSNAPSHOT"):
        answered, answer = ask(cluster, "PUT", "/", f"op={query}", user="stranger")
        assert answered == 403
        assert answer["RemoteException"]["exception"] == "AccessControlException"
