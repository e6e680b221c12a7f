"""Storage policies: HDFS's table, and the types that replicas go to."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.blocks.policies import (
    COLD,
    DEFAULT,
    HOT,
    LAZY_PERSIST,
    POLICIES,
    WARM,
    StoragePolicy,
    choose_excess_types,
    choose_storage_types,
    policy_by_id,
    policy_by_name,
)
from cairnfs.blocks.records import StorageType

LETTERS = {
    "D": StorageType.DISK,
    "A": StorageType.ARCHIVE,
    "S": StorageType.SSD,
    "R": StorageType.RAM_DISK,
    "P": StorageType.PROVIDED,
    "N": StorageType.NVDIMM,
}
NAMES = {type: letter for letter, type in LETTERS.items()}

storage_types = st.lists(st.sampled_from(StorageType), max_size=6)


def types(letters: str) -> list[StorageType]:
    return [LETTERS[letter] for letter in letters]


def letters(types: list[StorageType]) -> str:
    """In alphabetical order, as the order does not matter here."""
    return "".join(sorted(NAMES[type] for type in types))


@pytest.mark.parametrize(
    ("id", "name", "placed", "creation", "replication"),
    [
        (15, "LAZY_PERSIST", "RD", "D", "D"),
        (14, "ALL_NVDIMM", "N", "D", "D"),
        (12, "ALL_SSD", "S", "D", "D"),
        (10, "ONE_SSD", "SD", "SD", "SD"),
        (7, "HOT", "D", "", "A"),
        (5, "WARM", "DA", "DA", "DA"),
        (2, "COLD", "A", "", ""),
        (1, "PROVIDED", "PD", "PD", "PD"),
    ],
)
def test_the_table(id: int, name: str, placed: str, creation: str, replication: str) -> None:
    policy = policy_by_id(id)
    assert policy is not None
    assert policy is policy_by_name(name) is policy_by_name(name.title())
    assert policy.name == name
    assert list(policy.storage_types) == types(placed)
    assert list(policy.creation_fallbacks) == types(creation)
    assert list(policy.replication_fallbacks) == types(replication)
    assert policy.copy_on_create_file is (policy is LAZY_PERSIST)


def test_lookups() -> None:
    assert len({policy.id for policy in POLICIES}) == 8
    assert policy_by_id(0) is DEFAULT is HOT
    assert policy_by_id(3) is None
    assert policy_by_name("LUKEWARM") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LAZY_PERSIST", ["", "D", "DD", "DDD"]),
        ("ALL_NVDIMM", ["", "N", "NN", "NNN"]),
        ("ALL_SSD", ["", "S", "SS", "SSS"]),
        ("ONE_SSD", ["", "S", "SD", "SDD"]),
        ("HOT", ["", "D", "DD", "DDD"]),
        ("WARM", ["", "D", "DA", "DAA"]),
        ("COLD", ["", "A", "AA", "AAA"]),
        ("PROVIDED", ["", "P", "PD", "PDD"]),
    ],
)
def test_types_of_a_new_block(name: str, expected: list[str]) -> None:
    policy = policy_by_name(name)
    assert policy is not None
    for replication, wanted in enumerate(expected):
        assert choose_storage_types(policy, replication, is_new_block=True) == types(wanted)


# What Hadoop's TestBlockStoragePolicy asks for, replication 3: the types of existing
# replicas, and those to add by HOT, WARM and COLD.
ALL_AVAILABLE = """
    -   DDD DAA AAA
    D   DD  AA  AAA
    A   DDD DA  AA
    DD  D   AA  AAA
    DA  DD  A   AA
    AA  DDD D   A
    DDD -   AA  AAA
    DDA D   A   AA
    DAA DD  -   A
    AAA DDD D   -
"""
NEW_WITHOUT_DISK = """
    -   -   AAA AAA
    D   -   AA  AAA
    A   -   AA  AA
    DD  -   AA  AAA
    DA  -   A   AA
    AA  -   A   A
    DDD -   AA  AAA
    DDA -   A   AA
    DAA -   -   A
    AAA -   -   -
"""
COPY_WITHOUT_DISK = """
    -   AAA AAA AAA
    D   AA  AA  AAA
    A   AA  AA  AA
    DD  A   AA  AAA
    DA  A   A   AA
    AA  A   A   A
    DDD -   AA  AAA
    DDA -   A   AA
    DAA -   -   A
    AAA -   -   -
"""
WITHOUT_ARCHIVE = """
    -   DDD DDD -
    D   DD  DD  -
    A   DDD DD  -
    DD  D   D   -
    DA  DD  D   -
    AA  DDD D   -
    DDD -   -   -
    DDA D   -   -
    DAA DD  -   -
    AAA DDD D   -
"""


@pytest.mark.parametrize(
    ("table", "unavailable", "is_new_block"),
    [
        (ALL_AVAILABLE, "", True),
        (ALL_AVAILABLE, "", False),
        (NEW_WITHOUT_DISK, "D", True),
        (COPY_WITHOUT_DISK, "D", False),
        (WITHOUT_ARCHIVE, "A", True),
        (WITHOUT_ARCHIVE, "A", False),
    ],
)
def test_types_beside_existing_replicas(table: str, unavailable: str, is_new_block: bool) -> None:
    for line in table.strip().splitlines():
        existing, *columns = ("" if cell == "-" else cell for cell in line.split())
        for policy, expected in zip((HOT, WARM, COLD), columns, strict=True):
            chosen = choose_storage_types(
                policy, 3, types(existing), types(unavailable), is_new_block=is_new_block
            )
            assert letters(chosen) == "".join(sorted(expected)), (policy.name, line)


@pytest.mark.parametrize("is_new_block", [True, False])
def test_nothing_is_left_without_disk_and_archive(is_new_block: bool) -> None:
    for policy in (HOT, WARM, COLD):
        for count in range(4):
            for existing in combinations_with_replacement("DA", count):
                chosen = choose_storage_types(
                    policy, 3, types("".join(existing)), types("DA"), is_new_block=is_new_block
                )
                assert chosen == []


def test_excess_types() -> None:
    for disks in range(7):
        for archives in range(7):
            existing = types("D" * disks + "A" * archives)
            for policy, disks_kept, archives_kept in [(HOT, 3, 0), (WARM, 1, 2), (COLD, 0, 3)]:
                excess = choose_excess_types(policy, 3, existing)
                assert excess.count(StorageType.DISK) == max(0, disks - disks_kept)
                assert excess.count(StorageType.ARCHIVE) == max(0, archives - archives_kept)


@given(st.sampled_from(POLICIES), st.integers(0, 8), storage_types, storage_types, st.booleans())
def test_never_too_many_nor_unavailable(
    policy: StoragePolicy,
    replication: int,
    existing: list[StorageType],
    unavailable: list[StorageType],
    is_new_block: bool,
) -> None:
    chosen = choose_storage_types(
        policy, replication, existing, unavailable, is_new_block=is_new_block
    )
    assert len(chosen) <= replication
    assert not set(chosen) & set(unavailable)
    assert StorageType.RAM_DISK not in chosen


@given(st.sampled_from(POLICIES), st.integers(0, 8), storage_types)
def test_what_is_there_and_missing_makes_what_is_wanted(
    policy: StoragePolicy, replication: int, existing: list[StorageType]
) -> None:
    wanted = choose_storage_types(policy, replication, is_new_block=True)
    excess = choose_excess_types(policy, replication, existing)
    kept = list(existing)
    for type in excess:
        kept.remove(type)
    missing = list(wanted)
    for type in kept:
        missing.remove(type)
    # Nothing is unavailable: a replica of a wrong type stands for no other.
    assert letters(choose_storage_types(policy, replication, kept, is_new_block=False)) == letters(
        missing
    )
