"""fsspec's view of the file system, and programs that use it by URL."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.client.files import MIB, content, read

import cairnfs
from cairnfs.testing.cluster import Cluster

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def base(cluster: Cluster, folder: str) -> str:
    """The URL of a directory of the test's own."""
    return f"cairn://{cluster.namenodes[0].address}{folder}"


@pytest.fixture
def adapter(base: str) -> Any:
    adapter, _ = fsspec.core.url_to_fs(base)
    return adapter


def test_urls(adapter: Any, cluster: Cluster, base: str, folder: str) -> None:
    address = cluster.namenodes[0].address
    assert adapter._strip_protocol(f"cairn://{address}/a/b/") == "/a/b"
    assert adapter._strip_protocol(f"cairn://{address}") == "/"
    assert adapter.unstrip_protocol("/a/b") == f"cairn://{address}/a/b"
    assert fsspec.core.url_to_fs(base)[1] == folder
    assert fsspec.core.url_to_fs("cairn://one:1,two:2/x")[0].client.url == "hdfs://one:1,two:2"
    assert fsspec.core.url_to_fs("cairn://ada@one:1/x")[0].client.user == "ada"


def test_files(adapter: Any, fs: cairnfs.FileSystem, folder: str, base: str) -> None:
    data = content(MIB + 10)
    with fsspec.open(f"{base}/file", "wb") as file:
        file.write(data)
    assert read(fs, f"{folder}/file") == data
    with fsspec.open(f"{base}/file", "rb") as file:
        assert file.read() == data
    with fsspec.open(f"{base}/text", "wt", encoding="utf-8") as file:
        file.write("Grüße")
    with fsspec.open(f"{base}/text", "rt", encoding="utf-8") as file:
        assert file.read() == "Grüße"
    with pytest.raises(FileExistsError), adapter.open(f"{folder}/text", "xb"):
        pass
    assert adapter.cat_file(f"{folder}/file", 5, 20) == data[5:20]
    assert adapter.cat_file(f"{folder}/file", -20, -5) == data[-20:-5]
    assert adapter.cat(f"{folder}/text") == "Grüße".encode()
    adapter.pipe(f"{folder}/piped", b"piped")
    assert read(fs, f"{folder}/piped") == b"piped"
    assert adapter.size(f"{folder}/file") == MIB + 10
    assert adapter.isfile(f"{folder}/file")
    assert adapter.isdir(folder)
    assert not adapter.exists(f"{folder}/nothing")
    with pytest.raises(FileNotFoundError):
        adapter.info(f"{folder}/nothing")
    assert adapter.modified(f"{folder}/file").timestamp() > 0
    assert adapter.checksum(f"{folder}/file") != adapter.checksum(f"{folder}/text")


def test_trees(adapter: Any, fs: cairnfs.FileSystem, folder: str, tmp_path: Any) -> None:
    adapter.makedirs(f"{folder}/a/b")
    with pytest.raises(FileExistsError):
        adapter.makedirs(f"{folder}/a/b")
    adapter.makedirs(f"{folder}/a/b", exist_ok=True)
    adapter.touch(f"{folder}/a/one")
    adapter.pipe(f"{folder}/a/b/two", b"two")
    assert adapter.ls(f"{folder}/a", detail=False) == [f"{folder}/a/b", f"{folder}/a/one"]
    assert adapter.find(folder) == [f"{folder}/a/b/two", f"{folder}/a/one"]
    assert adapter.glob(f"{folder}/a/*") == [f"{folder}/a/b", f"{folder}/a/one"]
    assert adapter.glob(f"{folder}/**/two") == [f"{folder}/a/b/two"]
    assert [path for path, _, _ in adapter.walk(folder)] == [folder, f"{folder}/a", f"{folder}/a/b"]
    adapter.cp(f"{folder}/a", f"{folder}/copy", recursive=True)
    assert read(fs, f"{folder}/copy/b/two") == b"two"
    adapter.mv(f"{folder}/copy", f"{folder}/a/b")
    assert read(fs, f"{folder}/a/b/copy/b/two") == b"two"
    adapter.get(f"{folder}/a", str(tmp_path / "got"), recursive=True)
    assert (tmp_path / "got" / "b" / "two").read_bytes() == b"two"
    adapter.put(str(tmp_path / "got"), f"{folder}/put", recursive=True)
    assert read(fs, f"{folder}/put/b/two") == b"two"
    with pytest.raises(OSError, match="non empty"):
        adapter.rmdir(f"{folder}/a")
    with pytest.raises(NotADirectoryError):
        adapter.rmdir(f"{folder}/a/one")
    adapter.rm(f"{folder}/a", recursive=True)
    with pytest.raises(FileNotFoundError):
        adapter.rm(f"{folder}/a")
    assert not adapter.exists(f"{folder}/a")


def test_it_can_be_sent_to_other_processes(adapter: Any, folder: str) -> None:
    assert pickle.loads(pickle.dumps(adapter)).exists(folder)


def test_pandas(base: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"number": range(1000), "name": [f"n{i}" for i in range(1000)]})
    table.to_csv(f"{base}/table.csv", index=False)
    assert pandas.read_csv(f"{base}/table.csv").equals(table)
    table.to_parquet(f"{base}/table.parquet")
    assert pandas.read_parquet(f"{base}/table.parquet").equals(table)
    assert list(pandas.read_parquet(f"{base}/table.parquet", columns=["name"])) == ["name"]


def test_pyarrow(adapter: Any, folder: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pyarrow.table({"part": [n % 3 for n in range(300)], "value": list(range(300))})
    dataset.write_dataset(
        table, f"{folder}/set", format="parquet", partitioning=["part"], filesystem=adapter
    )
    found = dataset.dataset(f"{folder}/set", partitioning=["part"], filesystem=adapter)
    assert sorted(found.to_table()["value"].to_pylist()) == list(range(300))
    ones = found.to_table(filter=pyarrow.compute.field("part") == 1)
    assert sorted(ones["value"].to_pylist()) == list(range(1, 300, 3))


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, with pandas 3.1
def test_dask(base: str) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"number": range(1000)})
    dataframe.from_pandas(table, npartitions=4).to_parquet(f"{base}/dask")
    assert int(dataframe.read_parquet(f"{base}/dask")["number"].sum().compute()) == 499_500
    (_, *_) = dataframe.from_pandas(table, npartitions=2).to_csv(f"{base}/csv-*.csv")
    assert len(dataframe.read_csv(f"{base}/csv-*.csv")) == 1000


def test_extended_attributes(adapter: Any, base: str, folder: str) -> None:
    adapter.pipe_file(f"{folder}/file", b"content")
    adapter.setxattr(f"{base}/file", **{"user.author": "ada", "user.data": b"\x00\xff"})
    assert adapter.getxattr(f"{folder}/file", "user.author") == b"ada"
    assert adapter.client.get_xattrs(f"{folder}/file") == {
        "user.author": b"ada",
        "user.data": b"\x00\xff",
    }
    adapter.setxattr(f"{base}/file", **{"user.author": None})
    with pytest.raises(OSError, match="not found"):
        adapter.getxattr(f"{base}/file", "user.author")
