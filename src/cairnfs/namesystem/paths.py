"""Absolute paths, parsed once.

Invariant: `text` and `components` say the same, without empty components, a
trailing slash, NUL or anything that is not UTF-8; two paths are equal when
their texts are.  What HDFS asks only of paths that are created (no colon, a
length, no reserved name) is checked by `check_` methods, since it lets a
caller ask about any path.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cairnfs.errors import (
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    InvalidPathException,
    IOException,
    PathComponentTooLongException,
)
from cairnfs.namesystem.inodes import InodeId

PATH_LENGTH_MAX: Final = 8000  # characters as Java counts them, in UTF-16
PATH_DEPTH_MAX: Final = 1000
TEXT_LENGTH_MAX: Final = 1024
COMPONENT_BYTES_MAX: Final = 255  # dfs.namenode.fs-limits.max-component-length

DOT_SNAPSHOT: Final = b".snapshot"
DOT_RESERVED: Final = b".reserved"
DOT_INODES: Final = b".inodes"
RAW: Final = b"raw"


class FsPath:
    """An absolute path; made by `FsPath.parse` or from another path.  It never changes."""

    __slots__ = ("components", "is_reserved", "snapshot_index", "text")

    def __init__(
        self,
        text: str,
        components: tuple[bytes, ...],
        snapshot_index: int = -1,
        is_reserved: bool = False,
    ) -> None:
        """`snapshot_index` is that of the first component ".snapshot", or -1; `is_reserved` is
        what is at or below /.reserved."""
        self.text: Final = text
        self.components: Final = components
        self.snapshot_index: Final = snapshot_index
        self.is_reserved: Final = is_reserved

    @staticmethod
    def parse(text: str | bytes) -> FsPath:
        """Read a path; raise InvalidPathException if it cannot be one.

        Repeated and trailing slashes are dropped, as DFSUtil.getPathComponents
        does.  HDFS looks up "." and ".." as names that cannot exist, unless it
        creates (isValidName); here no call accepts them.
        """
        if type(text) is str:
            above, slash, name = text.rpartition("/")
            directory = _directories.get(above)
            # What can be printed is UTF-8 without NUL; what is special begins with a dot.
            if directory is not None and slash and name and name[0] != "." and name.isprintable():
                return FsPath(text, (*directory, name.encode()))
        return _parse(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsPath) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"FsPath({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FsPath, (self.text, self.components, self.snapshot_index, self.is_reserved)

    def __str__(self) -> str:
        return self.text

    @property
    def is_root(self) -> bool:
        return not self.components

    @property
    def name(self) -> bytes:
        """The last component; empty for the root, as the root's inode has it."""
        return self.components[-1] if self.components else b""

    @property
    def parent(self) -> FsPath:
        """The directory that holds this path; the root is its own parent."""
        components = self.components[:-1]
        if not components:
            return ROOT
        index = self.snapshot_index
        return FsPath(
            self.text.rpartition("/")[0],
            components,
            index if index < len(components) else -1,
            self.is_reserved,
        )

    def child(self, name: bytes) -> FsPath:
        """The path of a child; the name must be one component."""
        assert name, "the name of a child is not empty"
        assert b"/" not in name, name
        depth = len(self.components)
        snapshot_index = self.snapshot_index
        if snapshot_index < 0 and name == DOT_SNAPSHOT:
            snapshot_index = depth
        return FsPath(
            f"{self.text if depth else ''}/{name.decode()}",
            (*self.components, name),
            snapshot_index,
            self.is_reserved or (depth == 0 and name == DOT_RESERVED),
        )

    def ancestor(self, depth: int) -> FsPath:
        """The path of the first `depth` components; 0 is the root."""
        return _from_components(self.components[:depth])

    def text_to(self, depth: int) -> str:
        """The text of the first `depth` components; 0 is the root."""
        return "/".join(self.text.split("/")[: depth + 1]) or "/"

    def is_ancestor_of(self, other: FsPath) -> bool:
        """Whether `other` is below this path; no path is below itself."""
        if not self.components:
            return bool(other.components)
        return other.text.startswith(self.text + "/")

    # Reserved names

    @property
    def is_exactly_reserved(self) -> bool:
        """Whether this is /.reserved, which delete, setOwner and rename refuse."""
        return self.is_reserved and len(self.components) == 1

    @property
    def is_raw(self) -> bool:
        """Whether this is at or below /.reserved/raw; only the superuser writes there."""
        return self.is_reserved and self.components[1:2] == (RAW,)

    def without_raw(self) -> FsPath:
        """The path that /.reserved/raw/... stands for; any other path unchanged."""
        if not self.is_raw or self.components[2:] == (DOT_RESERVED,):
            return self  # HDFS leaves /.reserved/raw/.reserved alone
        return _from_components(self.components[2:])

    @property
    def is_inodes(self) -> bool:
        """Whether this is at or below /.reserved/.inodes."""
        return self.is_reserved and self.components[1:2] == (DOT_INODES,)

    @property
    def is_by_inode(self) -> bool:
        """Whether this is below /.reserved/.inodes, and so has an `inode_id`."""
        return self.is_reserved and len(self.components) > 2 and self.components[1] == DOT_INODES

    @property
    def inode_id(self) -> InodeId | None:
        """The id in /.reserved/.inodes/ID/..., or None for any other path."""
        if not self.is_by_inode:
            return None
        digits = self.components[2]
        if _JAVA_LONG.fullmatch(digits):
            number = int(digits)
            if -(2**63) <= number < 2**63:
                return InodeId(number)
        raise FileNotFoundException(f"Invalid inode path: {self.text}")

    @property
    def below_inode(self) -> tuple[bytes, ...]:
        """The components after the id; (b"..", ...) asks for the inode's parent."""
        return self.components[3:] if self.is_by_inode else ()

    # Rules for paths that are created

    @property
    def is_too_long(self) -> bool:
        """Whether this is longer or deeper than a path that is created may be."""
        if len(self.text) * 2 > PATH_LENGTH_MAX:  # else short even in UTF-16
            length = len(self.text.encode("utf-16-le")) // 2
        else:
            length = len(self.text)
        return length > PATH_LENGTH_MAX or len(self.components) > PATH_DEPTH_MAX

    def check_length(self, operation: str) -> None:
        """The limits of create, mkdirs, rename (destination) and createSnapshot."""
        is_short = 2 * len(self.text) <= PATH_LENGTH_MAX  # even in UTF-16
        if (not is_short or len(self.components) > PATH_DEPTH_MAX) and self.is_too_long:
            raise IOException(
                f"{operation}: Pathname too long.  Limit {PATH_LENGTH_MAX}"
                f" characters, {PATH_DEPTH_MAX} levels."
            )

    def check_valid_for_creation(self) -> None:
        """No colon: isValidName, asked of mkdirs and of a rename's destination."""
        if ":" in self.text:
            raise InvalidPathException(f"Invalid path name Invalid file name: {self.text}")

    def check_valid_for_file(self) -> None:
        """What create asks first: no colon, nothing reserved but raw and .inodes."""
        if ":" in self.text or (
            self.is_reserved and self.components[1:2] not in ((RAW,), (DOT_INODES,))
        ):
            raise InvalidPathException(f"Invalid path name {self.text}")

    def check_not_reserved_for_creation(self) -> None:
        """No new /.reserved (addLastINode) and no new .snapshot (verifyINodeName).

        For a resolved path: HDFS asks it of each inode it adds, after it has
        checked permissions, and after a path in a real snapshot was refused
        with SnapshotAccessControlException.
        """
        if self.is_reserved:
            raise HadoopIllegalArgumentException(
                'File name ".reserved" is reserved and cannot be created. If this is'
                " during upgrade change the name of the existing file or directory to"
                " another name before upgrading to the new release."
            )
        if self.snapshot_index >= 0:
            raise HadoopIllegalArgumentException(
                f'".snapshot" is a reserved name. {self.text} cannot be created: that is where the'
                " snapshots of a directory are found."
            )


ROOT: Final = FsPath("/", ())


def check_component_length(name: bytes, parent: FsPath | str) -> None:
    """The limit on a name to be added to a directory, in bytes of UTF-8."""
    if len(name) > COMPONENT_BYTES_MAX:
        raise PathComponentTooLongException(
            f"The maximum path component name limit of {name.decode()} in directory"
            f" {parent} is exceeded: limit={COMPONENT_BYTES_MAX} length={len(name)}"
        )


def check_text(text: str, what: str, length_max: int = TEXT_LENGTH_MAX) -> None:
    """Any other text that callers have stored: UTF-8 without NUL, of bounded length."""
    if not text.isprintable():  # else it can't be wrong
        shown = text.encode(errors="backslashreplace").decode()
        if "\0" in text or shown != text:
            raise IllegalArgumentException(f"Invalid {what}: {shown!r}")
    if len(text) > length_max:
        raise IllegalArgumentException(f"A {what} of {len(text)} characters is too long")


# Java's Long.parseLong, but for digits outside ASCII.
_JAVA_LONG: Final = re.compile(rb"[+-]?[0-9]{1,40}")

# The names of directories that were met lately, by their texts, if there is nothing special about
# them: most paths differ from one before in their last name alone.
_directories: dict[str, tuple[bytes, ...]] = {}
_DIRECTORIES_MAX: Final = 8192
_DIRECTORY_LENGTH_MAX: Final = 512


def _parse(given: str | bytes) -> FsPath:
    text = _decode(given) if isinstance(given, bytes) else given
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        shown = text.encode(errors="backslashreplace").decode()
        raise InvalidPathException(f"Invalid path name {shown}: not UTF-8") from None
    if not text.startswith("/"):
        raise InvalidPathException(f"Invalid path name {text}: not an absolute path")
    if "\0" in text:
        shown = text.replace("\0", "\\0")
        raise InvalidPathException(f"Invalid path name {shown}: it has a NUL")

    components = tuple(encoded.split(b"/"))[1:]
    if b"" in components:
        components = tuple(name for name in components if name)
        text = "/" + b"/".join(components).decode()
    if b"/." not in encoded:
        if components:
            _remember_directory(text.rpartition("/")[0], components[:-1])
        return FsPath(text, components)

    # Something may be special: every name that is begins with a dot.
    if b"." in components:
        raise InvalidPathException(f"Invalid path name {text}")
    path = _from_components(components)
    if b".." in components and not (
        # HDFS knows one "..", the parent of an inode (for NFS).
        path.is_by_inode and components.index(b"..") == 3 and components.count(b"..") == 1
    ):
        raise InvalidPathException(f"Invalid path name {text}")
    return path


def _remember_directory(text: str, components: tuple[bytes, ...]) -> None:
    if len(text) <= _DIRECTORY_LENGTH_MAX:
        if len(_directories) >= _DIRECTORIES_MAX:
            _directories.clear()
        _directories[text] = components


def _decode(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        shown = encoded.decode(errors="backslashreplace")
        raise InvalidPathException(f"Invalid path name {shown}: not UTF-8") from None


def _from_components(components: tuple[bytes, ...]) -> FsPath:
    return FsPath(
        "/" + b"/".join(components).decode(),
        components,
        components.index(DOT_SNAPSHOT) if DOT_SNAPSHOT in components else -1,
        components[:1] == (DOT_RESERVED,),
    )
