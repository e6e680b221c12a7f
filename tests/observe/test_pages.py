"""/metrics, /jmx and /conf of a NameNode and a DataNode that are at work."""

from __future__ import annotations

import asyncio
import json
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.observe.servers import (
    Pages,
    ServedNameNode,
    observed_cluster,
    served_namenode,
    served_pages,
)

from cairnfs.config import NameNodeSettings
from cairnfs.config_file import load_config
from cairnfs.datanode.figures import DataNodeFigures
from cairnfs.datanode.node import DataNode
from cairnfs.errors import HdfsError, StoreUnavailableException
from cairnfs.namenode import rationed
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread
from cairnfs.namenode.opening import format_namespace
from cairnfs.namenode.server import RpcServer
from cairnfs.observe.jmx import BadQuery, matches
from cairnfs.observe.namenode_facts import RowCounts
from cairnfs.observe.namenode_source import NameNodeSource
from cairnfs.store.schema import Table
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto.acl_pb2 import FsPermissionProto

GOLDEN = Path(__file__).parent / "golden" / "jmx.json"
CONTENT = b"all in one block" * 1000
CLIENT = {"protocol": "ClientProtocol"}

Observed = tuple[ServedNameNode, DataNode, Pages, Pages]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """A cluster in which something has happened: two directories, a file, an error."""
    with observed_cluster(tmp_path_factory.mktemp("observed")) as made:
        namenode, _, pages, _ = made
        wait_until(lambda: pages.sample("cairnfs_namenode_datanodes", state="live") == 1)
        with namenode.connect() as client:
            client.call(
                "mkdirs",
                pb.MkdirsRequestProto(
                    src="/a/b", masked=FsPermissionProto(perm=0o777), createParent=True
                ),
            )
            with pytest.raises(HdfsError):
                client.call(
                    "getListing", pb.GetListingRequestProto(src="a", startAfter=b"", needLocation=0)
                )
        write_and_read(namenode.port)
        yield made


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def write_and_read(port: int) -> None:
    hdfs_native = pytest.importorskip("hdfs_native")
    client = hdfs_native.Client(f"hdfs://127.0.0.1:{port}")
    with client.create("/a/file", hdfs_native.WriteOptions(replication=1)) as writer:
        writer.write(CONTENT)
    with client.read("/a/file") as reader:
        assert reader.read() == CONTENT


def test_calls_and_errors_are_counted_by_method(observed: Observed) -> None:
    _, _, pages, _ = observed
    samples = pages.samples()

    def value(name: str, **labels: str) -> float:
        return samples[name, frozenset({**CLIENT, **labels}.items())]

    assert value("cairnfs_namenode_call_seconds_count", method="mkdirs") == 1
    assert value("cairnfs_namenode_call_seconds_bucket", method="mkdirs", le="+Inf") == 1
    assert 0 < value("cairnfs_namenode_call_seconds_sum", method="mkdirs") < 10
    error = value(
        "cairnfs_namenode_call_errors_total", method="getListing", error="InvalidPathException"
    )
    assert error == 1
    heartbeats = {"protocol": "DatanodeProtocol", "method": "sendHeartbeat"}
    assert samples["cairnfs_namenode_call_seconds_count", frozenset(heartbeats.items())] > 0


def test_the_namespace_and_the_cluster_are_described(observed: Observed) -> None:
    _, _, pages, _ = observed
    assert pages.sample("cairnfs_namenode_inodes", kind="file") == 1
    assert pages.sample("cairnfs_namenode_inodes", kind="directory") == 3  # with the root
    assert pages.sample("cairnfs_namenode_file_bytes") == len(CONTENT)
    assert pages.sample("cairnfs_namenode_datanodes", state="live") == 1
    assert pages.sample("cairnfs_namenode_datanodes", state="decommission_inprogress") == 0
    assert pages.sample("cairnfs_namenode_capacity_bytes", use="total") > 0
    assert pages.sample("cairnfs_namenode_safe_mode") == 0
    assert pages.sample("cairnfs_namenode_duty", duty="redundancy") == 1
    assert pages.sample("cairnfs_namenode_troubled_blocks", state="missing") == 0
    assert pages.sample("cairnfs_namenode_commits_total") > 0
    calls = pages.sample("cairnfs_namenode_operations_total")
    assert calls >= pages.sample("cairnfs_namenode_committed_total") > 0
    assert 0 <= pages.sample("cairnfs_namenode_loop_lag_seconds") < 10
    assert pages.sample("cairnfs_namenode_connections") >= 1  # the DataNode's
    assert pages.sample("cairnfs_namenode_audit_lines_total", outcome="lost") == 0
    assert pages.sample("process_resident_memory_bytes") > 1 << 20
    assert pages.get("/prom")[0] == 200


def test_a_datanode_counts_what_it_moves(observed: Observed) -> None:
    _, _, _, pages = observed
    assert pages.sample("cairnfs_datanode_bytes_written_total") == len(CONTENT)
    assert pages.sample("cairnfs_datanode_bytes_read_total") >= len(CONTENT)
    assert pages.sample("cairnfs_datanode_operation_seconds_count", operation="write_block") == 1
    assert pages.sample("cairnfs_datanode_replicas", state="finalized") == 1
    assert pages.sample("cairnfs_datanode_volumes", state="good") == 1
    assert pages.sample("cairnfs_datanode_volumes", state="failed") == 0
    beans = pages.beans("?qry=Hadoop:service=DataNode,*")
    (activity,) = (bean for name, bean in beans.items() if "DataNodeActivity" in name)
    assert activity["BytesWritten"] == len(CONTENT)
    assert activity["BlocksWritten"] == 1
    info = beans["Hadoop:service=DataNode,name=DataNodeInfo"]
    (volume,) = json.loads(info["VolumeInfo"]).values()
    assert volume["usedSpace"] >= len(CONTENT)


def test_every_attribute_has_the_name_that_hdfs_gives_it(observed: Observed) -> None:
    _, _, pages, _ = observed
    theirs = json.loads(GOLDEN.read_text())
    ours = pages.beans()
    assert set(theirs) <= set(ours)
    for name, attributes in theirs.items():
        assert set(ours[name]) - {"name"} <= set(attributes), name


def test_dashboards_find_what_they_look_for(observed: Observed) -> None:
    namenode, datanode, pages, _ = observed
    beans = pages.beans("?qry=Hadoop:service=NameNode,name=*")
    prefix = "Hadoop:service=NameNode,name="
    system, state = beans[f"{prefix}FSNamesystem"], beans[f"{prefix}FSNamesystemState"]
    assert (system["FilesTotal"], state["FilesTotal"]) == (4, 4)
    assert system["CapacityTotal"] == state["CapacityTotal"] > 0
    assert system["tag.HAState"] == "active"
    assert (state["FSState"], state["NumLiveDataNodes"]) == ("Operational", 1)
    info = beans[f"{prefix}NameNodeInfo"]
    assert info["ClusterId"] == namenode.thread.namenode.cluster_id
    assert info["Safemode"] == ""
    (live,) = json.loads(info["LiveNodes"]).values()
    assert live["xferaddr"] == f"127.0.0.1:{datanode.port}"
    assert live["adminState"] == "In Service"
    assert json.loads(info["DeadNodes"]) == {}
    assert beans[f"{prefix}NameNodeStatus"]["State"] == "active"
    rpc = beans[f"{prefix}RpcActivityForPort8020"]
    assert rpc["RpcProcessingTimeNumOps"] > 0
    detailed = beans[f"{prefix}RpcDetailedActivityForPort8020"]
    assert detailed["MkdirsNumOps"] == 1
    activity = beans[f"{prefix}NameNodeActivity"]
    assert (activity["CreateFileOps"], activity["AddBlockOps"]) == (1, 1)
    assert activity["GetListingOps"] == 0  # it failed
    assert activity["TotalFileOps"] >= 3
    assert activity["TransactionsNumOps"] > 0
    assert not any(name.startswith("java.lang") for name in beans)


def test_one_attribute_and_wrong_questions(observed: Observed) -> None:
    _, _, pages, _ = observed
    name = "Hadoop:service=NameNode,name=NameNodeStatus"
    assert pages.beans(f"?get={name}::State")[name]["State"] == "active"
    assert pages.beans("?qry=Nobody:*") == {}
    assert pages.get(f"/jmx?get={name}::Missing")[0] == 404
    assert pages.get(f"/jmx?get={name}")[0] == 400
    status, _, text = pages.get("/jmx?qry=nonsense")
    assert status == 400
    assert "nonsense is not the name of beans" in text


@pytest.mark.parametrize(
    ("pattern", "is_match"),
    [
        ("*:*", True),
        ("Hadoop:*", True),
        ("Hadoop:name=FSNamesystem,service=NameNode", True),
        ("Hadoop:service=NameNode,name=FSName*", True),
        ("Hadoop:service=NameNode,*", True),
        ("Hadoop:service=NameNode", False),
        ("java.lang:*", False),
        ("Hadoop:service=DataNode,*", False),
        ("Hadoop:kind=x,*", False),
    ],
)
def test_patterns(pattern: str, is_match: bool) -> None:
    assert matches("Hadoop:service=NameNode,name=FSNamesystem", pattern) is is_match


@pytest.mark.parametrize("pattern", ["Hadoop", "Hadoop:", "Hadoop:name"])
def test_patterns_that_are_none(pattern: str) -> None:
    with pytest.raises(BadQuery):
        matches("Hadoop:service=NameNode,name=FSNamesystem", pattern)


def test_the_configuration_is_told_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "cairn.toml"
    file.write_text(
        '[namenode]\nstore = "postgresql://cairn:secret@db/ns"\n[trash]\ninterval_min = 60\n'
    )
    config = load_config(file, environment={"CAIRN_AUDIT_FILES_MAX": "7"})
    with ExitStack() as stack:
        namenode = stack.enter_context(served_namenode(tmp_path))
        source = NameNodeSource(namenode.thread.namenode, namenode.server, 8020, config)
        pages = stack.enter_context(served_pages(namenode.thread, source))
        status, kind, text = pages.get("/conf")
        assert (status, kind.partition(";")[0]) == (200, "text/xml")
        assert "secret" not in text
        properties = {
            each.findtext("name"): (each.findtext("value"), each.findtext("source"))
            for each in ElementTree.fromstring(text.encode())
        }
        assert properties["fs.trash.interval"] == ("60", f"{file}:4")
        assert properties["cairn.audit.files_max"] == ("7", "CAIRN_AUDIT_FILES_MAX")
        assert properties["cairn.namenode.store"] == ("postgresql://cairn:***@db/ns", f"{file}:2")
        assert properties["dfs.replication"] == ("3", "default")
        _, kind, text = pages.get("/conf", accept="application/json")
        assert kind.startswith("application/json")
        assert {each["key"] for each in json.loads(text)["properties"]} == set(properties)
        _, _, text = pages.get("/conf?name=fs.trash.interval", accept="application/json")
        assert json.loads(text)["property"] == {
            "key": "fs.trash.interval",
            "value": "60",
            "isFinal": False,
            "resource": f"{file}:4",
        }
        assert pages.get("/conf?name=no.such.thing")[0] == 404


def test_without_its_store_a_namenode_still_tells_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailableException("the database is gone")

    with ExitStack() as stack:
        namenode = stack.enter_context(served_namenode(tmp_path))
        source = NameNodeSource(
            namenode.thread.namenode, namenode.server, 8020, load_config(environment={})
        )
        pages = stack.enter_context(served_pages(namenode.thread, source))
        assert pages.sample("cairnfs_namenode_store_up") == 1
        monkeypatch.setattr(namenode.thread.namenode.store, "read", fail)
        samples = pages.samples()
        assert samples["cairnfs_namenode_store_up", frozenset()] == 0
        assert ("cairnfs_namenode_file_bytes", frozenset()) not in samples  # unknown, not zero
        monkeypatch.undo()


def test_rows_are_not_counted_at_every_question() -> None:
    class Counting:
        counted = 0

        async def count_rows(self, table: int) -> int:
            Counting.counted += 1
            now_s[0] += 1.0  # a second for each table
            return Counting.counted

    now_s = [0.0]
    counts = RowCounts(Counting(), clock_s=lambda: now_s[0])  # type: ignore[arg-type]
    first = asyncio.run(counts.get())
    assert first[Table.BLOCKS] == 1
    took_s = now_s[0]
    now_s[0] = 499.0 * took_s  # of which it is more than the part that may be spent
    assert asyncio.run(counts.get()) == first
    now_s[0] = 501.0 * took_s
    assert asyncio.run(counts.get()) != first


def test_snapshots_are_counted(tmp_path: Path) -> None:
    with observed_cluster(tmp_path) as (namenode, _, pages, _):
        calls = namenode.thread.client()
        calls.mkdirs("/d")
        calls.allow_snapshot("/d")
        calls.create_snapshot("/d", "s1")
        calls.create_snapshot("/d", "s2")
        assert pages.sample("cairnfs_namenode_snapshottable_directories") == 1
        assert pages.sample("cairnfs_namenode_snapshots") == 2
        assert pages.sample("cairnfs_namenode_to_reclaim", kind="snapshot") == 0
        bean = "Hadoop:service=NameNode,name=FSNamesystem"
        state = pages.beans(f"?qry={bean}")[bean]
        assert (state["SnapshottableDirectories"], state["Snapshots"]) == (1, 2)


def test_nobody_waits_until_many_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        async def count_rows(self, table: int) -> int:
            await may_end.wait()
            return 7

    async def ask() -> None:
        counts = RowCounts(Slow())  # type: ignore[arg-type]
        assert await counts.get() == await counts.get() == {}
        may_end.set()
        assert (await counts.get())[Table.BLOCKS] == 7

    monkeypatch.setattr(rationed, "WAIT_S", 0.01)
    may_end = asyncio.Event()
    asyncio.run(asyncio.wait_for(ask(), 5))


def test_of_several_namenodes_one_has_each_duty(postgres_dsn: str) -> None:
    """And conflicts between them are counted, by operation."""
    asyncio.run(format_namespace(postgres_dsn))
    with ExitStack() as stack:
        threads = [
            stack.enter_context(NameNodeThread(NameNodeSettings(postgres_dsn, duty_interval_s=0.1)))
            for _ in range(2)
        ]
        config = load_config(environment={})
        pages = [
            stack.enter_context(
                served_pages(thread, NameNodeSource(thread.namenode, served(thread), 8020, config))
            )
            for thread in threads
        ]

        def owners(duty: str) -> list[float]:
            return [each.sample("cairnfs_namenode_duty", duty=duty) for each in pages]

        wait_until(lambda: sum(owners("redundancy")) == 1)
        wait_until(lambda: sum(owners("reclaim")) == 1)
        clients = [thread.client() for thread in threads]
        clients[0].mkdirs("/dir")

        def have_met() -> bool:
            list(pool.map(fight, clients))
            return any(
                value > 0
                for each in pages
                for (name, _), value in each.samples().items()
                if name == "cairnfs_namenode_conflicts_total"
            )

        with ThreadPoolExecutor(2) as pool:
            wait_until(have_met)
        assert all(each.sample("cairnfs_namenode_reads_total") > 0 for each in pages)


def fight(client: ClientProtocol) -> None:
    """Change the same row as somebody else, again and again."""
    for mode in range(0o700, 0o777):
        client.set_permission("/dir", mode)


def served(thread: NameNodeThread) -> RpcServer:
    return RpcServer(thread.namenode, SERVICES)


def test_failures_of_a_datanode_are_counted_by_operation() -> None:
    figures = DataNodeFigures()
    with pytest.raises(OSError, match="gone"), figures.operation("read_block"):
        raise OSError("gone")
    with figures.operation("read_block"):
        pass
    assert figures.errors == {("read_block", "OSError"): 1}
    assert figures.operations["read_block"].count == 2
