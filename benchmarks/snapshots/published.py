"""What thesis 000 and paper 003 have published, and on what: other machines, other times.

Compare how their figures grow with how ours do, not their seconds with ours.
"""

from __future__ import annotations

from typing import NamedTuple

# Thesis 000, section 4.1.2: "constant, just requires inserting a row into the SNAPS table".
THESIS_CREATE_MS = 20.0

# Figure 4.1: a directory of 1,000,000 files; what one round of changes consists of, and the
# seconds that listing it at the snapshot took after one round, two, and so on.
LISTING_FILES = 1_000_000
MIX = {"add": 5000, "delete": 5000, "move": 5000, "move in": 2500, "rename": 5000}
ROUND_CHANGES = sum(MIX.values())
THESIS_LISTING_S = (3.72, 4.25, 7.98, 10.4, 12.03, 14.21, 17.48, 20.25, 23.35)


class RollbackRow(NamedTuple):
    """One row of figures 4.4 and 4.6: inodes by what became of them after the snapshot."""

    deleted: int
    alone: int
    modified: int
    new: int
    mysql_s: int  # figure 4.4
    clusterj_s: int  # figure 4.6

    @property
    def rows(self) -> int:
        """What the thesis counts as processed: of a modified inode both versions."""
        return self.deleted + self.alone + 2 * self.modified + self.new

    @property
    def files(self) -> int:
        """Those that the snapshot has."""
        return self.deleted + self.alone + self.modified

    @property
    def files_after(self) -> int:
        return self.alone + self.modified + self.new

    @property
    def changes(self) -> int:
        return self.deleted + self.modified + self.new

    def scaled(self, part: float) -> RollbackRow:
        deleted, alone, modified, new = (max(1, int(number * part)) for number in self[:4])
        return RollbackRow(deleted, alone, modified, new, self.mysql_s, self.clusterj_s)


_MYSQL_S = (275, 457, 685, 880, 1090, 1205, 1430, 1660, 1862)
_CLUSTERJ_S = (21, 22, 23, 26, 27, 29, 32, 34, 36)
ROLLBACK = tuple(
    RollbackRow(
        deleted=450_000 - 50_000 * n,
        alone=450_000 - 50_000 * n,
        modified=100_000 * (n + 1),
        new=100_000,
        mysql_s=mysql_s,
        clusterj_s=clusterj_s,
    )
    for n, (mysql_s, clusterj_s) in enumerate(zip(_MYSQL_S, _CLUSTERJ_S, strict=True))
)

# Paper 003, section 4.  Its figures 8 to 10 are drawings; the text has these numbers.
PAPER_CREATE_S = 0.1  # figure 8: "about 1,000 files", and "almost linearly" from there
PAPER_CREATE_FILES = 1_000
PAPER_MEMORY_BYTES = 5 * 1024  # figure 9: "virtually constant (i.e., around 5 KB)"
