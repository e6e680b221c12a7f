"""A file system of plain objects: what HDFS means, done eagerly and naively.

It walks whole subtrees where the product keeps totals, copies itself before
every call so that a refusal leaves nothing behind, and knows no transactions.
It shares value types and error classes with the product, and the arithmetic
by which ACLs change; everything that decides is written here a second time.
"""

from cairnfs.testing.model.file_system import ModelFileSystem
from cairnfs.testing.model.files import (
    ACCESS_TIME_PRECISION_MS,
    BLOCK_SIZE_MIN_BYTES,
    SOFT_LIMIT_MS,
)
from cairnfs.testing.model.names import existing, existing_file, parse
from cairnfs.testing.model.namespace import OVERWRITE, TO_TRASH
from cairnfs.testing.model.nodes import Found, ModelBlock, Node, Usage, User
from cairnfs.testing.model.permissions import ALL, EXECUTE, READ, WRITE, may
from cairnfs.testing.model.tree import DONT_SET

__all__ = [
    "ACCESS_TIME_PRECISION_MS",
    "ALL",
    "BLOCK_SIZE_MIN_BYTES",
    "DONT_SET",
    "EXECUTE",
    "OVERWRITE",
    "READ",
    "SOFT_LIMIT_MS",
    "TO_TRASH",
    "WRITE",
    "Found",
    "ModelBlock",
    "ModelFileSystem",
    "Node",
    "Usage",
    "User",
    "existing",
    "existing_file",
    "may",
    "parse",
]
