"""Operations on snapshots that HDFS does not have."""

from __future__ import annotations

import getpass
import json
from typing import Any

from tests.webhdfs.exchange import PREFIX, send

from cairnfs.testing.cluster import Cluster


def ask(cluster: Cluster, method: str, path: str, query: str, user: str = "") -> tuple[int, Any]:
    target = f"{PREFIX}{path}?{query}&user.name={user or getpass.getuser()}"
    answer = send(cluster.namenodes[0].http_address, method, target)
    return answer.status, json.loads(answer.body) if answer.body else None


def names(cluster: Cluster, path: str) -> list[str]:
    _, found = ask(cluster, "GET", path, "op=LISTSTATUS")
    return [each["pathSuffix"] for each in found["FileStatuses"]["FileStatus"]]


def test_a_directory_goes_back_and_is_cloned(cluster: Cluster) -> None:
    ask(cluster, "PUT", "/back/kept", "op=MKDIRS")
    ask(cluster, "PUT", "/back", "op=ALLOWSNAPSHOT")
    ask(cluster, "PUT", "/back", "op=CREATESNAPSHOT&snapshotname=s1")
    ask(cluster, "PUT", "/back/new", "op=MKDIRS")
    ask(cluster, "DELETE", "/back/kept", "op=DELETE")

    clone = "op=CLONESNAPSHOT&snapshotname=s1&destination=/cloned"
    assert ask(cluster, "PUT", "/back", clone) == (200, None)
    assert names(cluster, "/cloned") == ["kept"]
    status, answer = ask(cluster, "PUT", "/back", "op=ROLLBACKSNAPSHOT&snapshotname=s1")
    assert status == 200
    assert names(cluster, "/back") == ["kept"]
    assert names(cluster, f"/back/.snapshot/{answer['SafetySnapshot']}") == ["new"]


def test_changes_come_in_pages(cluster: Cluster) -> None:
    ask(cluster, "PUT", "/changes/old", "op=MKDIRS")
    ask(cluster, "PUT", "/changes", "op=ALLOWSNAPSHOT")
    ask(cluster, "PUT", "/changes", "op=CREATESNAPSHOT&snapshotname=s1")
    ask(cluster, "PUT", "/changes/old", "op=RENAME&destination=/changes/new")
    query = "op=GETSNAPSHOTCHANGES&oldsnapshotname=s1"
    status, answer = ask(cluster, "GET", "/changes", query)
    assert status == 200
    out, come = answer["SnapshotChanges"]["changes"]
    assert (out["kind"], out["path"], out["otherPath"]) == ("MOVED_OUT", "old", "new")
    assert (come["kind"], come["path"], come["otherPath"]) == ("MOVED_IN", "new", "old")
    assert out["fileType"] == "DIRECTORY"
    assert (out["txid"], out["fileId"]) == (come["txid"], come["fileId"])
    assert "cursor" not in answer["SnapshotChanges"]

    for number in range(600):
        ask(cluster, "PUT", f"/changes/old/{number}", "op=MKDIRS")
    ask(cluster, "PUT", "/changes", "op=CREATESNAPSHOT&snapshotname=s2")
    for number in range(600):
        ask(cluster, "PUT", f"/changes/old/{number}", f"op=RENAME&destination=/changes/{number}")
    ask(cluster, "PUT", "/changes", "op=CREATESNAPSHOT&snapshotname=s3")
    query = "op=GETSNAPSHOTCHANGES&oldsnapshotname=s2&snapshotname=s3"
    found, cursor, pages = [], "", 0
    while pages == 0 or cursor:
        _, answer = ask(cluster, "GET", "/changes", f"{query}&cursor={cursor}")
        found += answer["SnapshotChanges"]["changes"]
        cursor = answer["SnapshotChanges"].get("cursor", "")
        pages += 1
    kinds = [each["kind"] for each in found]
    assert kinds == ["MOVED_OUT"] * 600 + ["MOVED_IN"] * 600 + ["MODIFIED"]
    assert pages == 2


def test_what_is_wrong_is_said(cluster: Cluster) -> None:
    ask(cluster, "PUT", "/wrong", "op=MKDIRS")
    for method, query, status, name in (
        ("PUT", "op=ROLLBACKSNAPSHOT", 400, "IllegalArgumentException"),
        ("PUT", "op=ROLLBACKSNAPSHOT&snapshotname=s1", 403, "SnapshotException"),
        ("PUT", "op=CLONESNAPSHOT&snapshotname=s1", 400, "IllegalArgumentException"),
        ("PUT", "op=CLONESNAPSHOT&snapshotname=s1&destination=x", 400, "IllegalArgumentException"),
        ("PUT", "op=CLONESNAPSHOT&snapshotname=s1&destination=/x", 403, "SnapshotException"),
        ("POST", "op=ROLLBACKSNAPSHOT&snapshotname=s1", 400, "IllegalArgumentException"),
        ("GET", "op=GETSNAPSHOTCHANGES&oldsnapshotname=s1", 403, "SnapshotException"),
        ("GET", "op=GETSNAPSHOTCHANGES&cursor=zz", 400, "IllegalArgumentException"),
        ("GET", "op=GETSNAPSHOTCHANGES&cursor=c101", 400, "IllegalArgumentException"),
    ):
        answered, answer = ask(cluster, method, "/wrong", query)
        assert (answered, answer["RemoteException"]["exception"]) == (status, name), query
