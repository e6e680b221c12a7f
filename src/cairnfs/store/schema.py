"""Every kind of row in one table, and the version of the whole.

| table         | a            | b             | id           | what                              |
|---------------|--------------|---------------|--------------|-----------------------------------|
| INODES        | parent id    | name          | inode id     | files, directories, links         |
| BLOCKS        | inode id     | index         | block id     | the blocks of a file, in order    |
| LEASES        | 0            | inode id      |              | who is writing a file             |
| HOLDERS       | 0            | client name   |              | when a writer was last heard of   |
| ORPHANS       | 0            | inode id      |              | detached subtrees to be reclaimed |
| REPLICAS      | storage      | block id      | block id     | what is on which storage          |
| DATANODES     | 0            | uuid          |              | DataNodes and their storages      |
| CHECKS        | queue        | block id      | block id     | blocks whose replicas to look at  |
| INVALIDATIONS | storage      | block id      | block id     | replicas to be deleted            |
| DELETIONS     | storage      | block id      |              | replicas that were, not long ago  |
| RECOVERIES    | 0            | block id      |              | blocks whose writers are gone     |
| SNAPSHOTTABLE | 0            | inode id      |              | of what snapshots may be taken    |
| SNAPSHOTS     | inode id     | name          |              | snapshots of it                   |
| MOMENTS       | 0            | TxID, inode   |              | the same in the order of TxIDs    |
| HELD          | 0            | TxID, inode   |              | orphans that a snapshot needs     |
| REMOVALS      | 0            | TxID, inode   |              | deleted snapshots to be reclaimed |
| WHITEOUTS     | content id   | name          |              | names that only an origin has     |
| CONTENTS      | 0            | content id    |              | whose content that is             |
| SCHEDULES     | 0            | inode id      |              | when to take and delete snapshots |
| IDENTITIES    | 0            | inode id      |              | under what id it is found now     |
| LAYERED       | queue        | TxID, inode   |              | directories that have an origin   |
| ROOT_SNAPSHOT | 0            |               |              | the one of the whole file system  |
| POLICY_SCANS  | 0            | inode id      |              | subtrees whose blocks may move    |
| POLICY_MARKS  | 0            | inode id      |              | below which policies were chosen  |
| PLACEMENTS    | queue        | block id      | block id     | blocks to be where they belong    |
| SATISFIED     | 0            |               |              | how much of that was done         |
| VIEWS         | 0            | number        |              | moments held for who reads all    |
| BALANCING     | 0            |               |              | that DataNodes are to be balanced |
| HOLDS         | TxID         | orphan's id   |              | orphans that this snapshot needs  |
| MOMENT_CHANGES| 0            | TxID, inode   |              | moments that came late, or went   |
| MARKS         | content id   | inode id      |              | the way to what a roll-back keeps |

`INDEX` and `NUMBER` pack a block's index and an id so that byte order is number order; `PAIR`
packs a TxID and an id.  Totals are past rows of their own, as if they were rows of TOTALS.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

SCHEMA_VERSION: Final = 10

Key = tuple[int, int, bytes]
"""`(table, a, b)`; keys of one table and one `a` are listed in order of `b`."""


class Table(enum.IntEnum):
    """Tables of rows; the numbers are stored."""

    INODES = 0
    BLOCKS = 1
    LEASES = 2
    HOLDERS = 3
    ORPHANS = 4
    REPLICAS = 5
    DATANODES = 6
    CHECKS = 7
    INVALIDATIONS = 8
    DELETIONS = 9
    RECOVERIES = 10
    SNAPSHOTTABLE = 11
    SNAPSHOTS = 12
    MOMENTS = 13
    HELD = 14
    REMOVALS = 15
    WHITEOUTS = 16
    CONTENTS = 17
    SCHEDULES = 18
    IDENTITIES = 19
    LAYERED = 20
    ROOT_SNAPSHOT = 21
    POLICY_SCANS = 22
    POLICY_MARKS = 23
    PLACEMENTS = 24
    SATISFIED = 25
    VIEWS = 26
    BALANCING = 27
    MARKS = 28
    MOMENT_CHANGES = 29
    HOLDS = 30
    TOTALS = 100  # of past rows only


KEEPS_PAST: Final = frozenset(
    int(table)
    for table in (Table.INODES, Table.BLOCKS, Table.WHITEOUTS, Table.IDENTITIES, Table.MARKS)
)
"""Tables whose superseded versions a snapshot may need."""

INDEX: Final = struct.Struct(">I")
NUMBER: Final = struct.Struct(">Q")
PAIR: Final = struct.Struct(">QQ")

FIRST_INODE_ID: Final = 16386  # the root is 16385
FIRST_BLOCK_ID: Final = (1 << 30) + 1  # 1073741825, as in HDFS
FIRST_GENERATION_STAMP: Final = 1001

COUNTERS = {
    "inode id": FIRST_INODE_ID,
    "block id": FIRST_BLOCK_ID,
    "generation stamp": FIRST_GENERATION_STAMP,
    "storage": 1,
}

REPLY_RETENTION_MS: Final = 600_000  # ten minutes, as HDFS's retry cache
