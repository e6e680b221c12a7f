"""`cairn policy` and `cairn mover`, on a real cluster."""

from __future__ import annotations

import json

from tests.cli.running import run
from tests.policies.clusters import types_of, wait_for_types, write

import cairnfs
from cairnfs.testing.cluster import Cluster


def test_a_policy_is_chosen_and_waited_for(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/f")
    output = run(cluster, "policy", "set", "cold", folder, "--wait")
    assert output.startswith("nothing is left to be done\n")
    assert types_of(cluster, f"{folder}/f") == [{"ARCHIVE": 3}]
    assert run(cluster, "policy", "get", f"{folder}/f").split()[-1] == "COLD"
    found = json.loads(run(cluster, "policy", "get", "--json", folder))
    assert found[folder]["storage_types"] == ["ARCHIVE"]
    run(cluster, "policy", "unset", folder)
    wait_for_types(cluster, f"{folder}/f", DISK=3)


def test_what_cannot_be_is_told_and_tried_again(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/f")
    output = run(cluster, "policy", "set", "ALL_NVDIMM", folder, "--wait", code=1)
    assert output.startswith("nothing more can be done now\n1 block cannot be where the policy")
    assert "1: 3 of 3 replicas find no place on NVDIMM" in output
    assert types_of(cluster, f"{folder}/f") == [{"DISK": 3}]
    assert "find no place on NVDIMM" in run(cluster, "policy", "status")
    status = json.loads(run(cluster, "policy", "status", "--json"))
    assert status["unsatisfied_blocks"] == 1
    run(cluster, "policy", "set", "ALL_SSD", folder, "--wait")
    assert types_of(cluster, f"{folder}/f") == [{"SSD": 3}]


def test_all_policies_are_listed(cluster: Cluster) -> None:
    lines = run(cluster, "policy", "list").splitlines()
    names = [line.split()[1] for line in lines[1:]]
    assert names == [
        *("PROVIDED", "COLD", "WARM", "HOT"),
        *("ONE_SSD", "ALL_SSD", "ALL_NVDIMM", "LAZY_PERSIST"),
    ]
    assert len(json.loads(run(cluster, "policy", "list", "--json"))) == 8


def test_the_mover_looks_at_everything(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/f")
    before = fs.storage_policy_work().scanned_inodes
    assert "nothing is left to be done" in run(cluster, "mover", folder)
    assert fs.storage_policy_work().scanned_inodes == before + 1


def test_who_waits_has_all_of_it_looked_at(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    """Also what has the policy already: it may have found no place so far."""
    write(fs, f"{folder}/f")
    run(cluster, "policy", "set", "COLD", folder, "--wait")
    before = fs.storage_policy_work().scanned_inodes
    run(cluster, "policy", "set", "COLD", folder)
    assert fs.storage_policy_work().scanned_inodes == before
    run(cluster, "policy", "set", "COLD", folder, "--wait")
    assert fs.storage_policy_work().scanned_inodes == before + 1


def test_mistakes_are_told_in_a_line(cluster: Cluster, folder: str) -> None:
    output = run(cluster, "policy", "set", "TEPID", folder, code=1)
    assert output == (
        f"cairn: Cannot find a block policy with the name TEPID; {folder} can have one of PROVIDED,"
        " COLD, WARM, HOT, ONE_SSD, ALL_SSD, ALL_NVDIMM, LAZY_PERSIST\n"
    )
    output = run(cluster, "policy", "get", f"{folder}/none", code=1)
    assert output == f"cairn: File/Directory does not exist: {folder}/none\n"
