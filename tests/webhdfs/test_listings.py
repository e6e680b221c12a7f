"""Directories with more entries than the NameNode tells at once."""

from __future__ import annotations

import getpass
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from tests.webhdfs.exchange import send

import cairnfs
from cairnfs.testing.cluster import Cluster

USER = f"user.name={getpass.getuser()}"
NAMES = [f"entry {number:04} ü" for number in range(2050)]


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> str:
    with cairnfs.connect(cluster.uri) as fs, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: fs.mkdirs(f"/many/{name}"), NAMES))
    return cluster.namenodes[0].http_address


def names(statuses: list[dict[str, str]]) -> list[str]:
    return [status["pathSuffix"] for status in statuses]


def test_a_listing_is_whole(address: str) -> None:
    answer = send(address, "GET", f"/webhdfs/v1/many?op=LISTSTATUS&{USER}")
    assert (answer.status, answer.type) == (200, "application/json")
    assert names(json.loads(answer.body)["FileStatuses"]["FileStatus"]) == NAMES


def test_a_listing_in_batches_is_whole(address: str) -> None:
    found: list[str] = []
    sizes = []
    while True:
        after = f"&startafter={quote(found[-1])}" if found else ""
        target = f"/webhdfs/v1/many?op=LISTSTATUS_BATCH&{USER}{after}"
        page = json.loads(send(address, "GET", target).body)["DirectoryListing"]
        statuses = page["partialListing"]["FileStatuses"]["FileStatus"]
        found += names(statuses)
        sizes.append(len(statuses))
        if not page["remainingEntries"]:
            break
    assert found == NAMES
    assert sizes == [1000, 1000, 50]
