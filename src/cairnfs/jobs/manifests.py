"""What a backup is: a head that names all its parts, written last.

    TARGET/monday/head.json           which snapshot this is, and all that belongs to it
    TARGET/monday/manifest/*.parquet  the entries
    TARGET/monday/data/*              the content of files: packs
    TARGET/monday/work/               while it is made: what is planned and done

Without a head there is no backup.  The head has its own checksum and those of the parts of the
manifest, and these have those of files: whatever is changed is noticed.  Entries may refer to packs
of earlier backups beside it.
"""

from __future__ import annotations

import hashlib

import msgspec

from cairnfs.errors import (
    FileNotFoundException,
    IncorrectVersionException,
    IOException,
)
from cairnfs.jobs.places import Place
from cairnfs.jobs.records import TableFile

FORMAT = 1
HEAD = "head.json"
MANIFEST, DATA, WORK = "manifest", "data", "work"


class Snapshotted(msgspec.Struct, frozen=True):
    """Which snapshot of which directory; a name alone may be used again."""

    directory: str
    directory_id: int
    name: str
    id: int | None
    taken_ms: int


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A file of the manifest."""

    name: str
    entries: int
    sha256: str


class Pack(msgspec.Struct, frozen=True, array_like=True):
    """A file with content, by its path from the place where all backups are."""

    path: str
    length: int


class Declared(msgspec.Struct, frozen=True, array_like=True):
    """A name of attributes that are inherited, where the snapshot was taken."""

    name: str
    kind: str


class Head(msgspec.Struct, frozen=True):
    """The head of a backup."""

    format: int
    name: str
    snapshot: Snapshotted
    base: str | None  # the backup that it goes on from
    files: int
    directories: int
    symlinks: int
    bytes: int
    space_bytes: int  # with all replicas, where it comes from
    copied_files: int
    copied_bytes: int
    finished_ms: int
    has_policies: bool
    declared: list[Declared]
    parts: list[Part]
    packs: list[Pack]

    @property
    def tables(self) -> list[TableFile]:
        return [TableFile(part.name, part.sha256) for part in self.parts]


class _Signed(msgspec.Struct, frozen=True):
    """The head as it is in its file."""

    sha256: str
    head: msgspec.Raw


class _Format(msgspec.Struct, frozen=True):
    format: int


def write_head(backups: Place, head: Head) -> None:
    """From now on there is a backup."""
    data = msgspec.json.encode(head)
    signed = _Signed(hashlib.sha256(data).hexdigest(), msgspec.Raw(data))
    (backups / head.name).write(HEAD, msgspec.json.encode(signed))


def read_head(backups: Place, name: str) -> Head:
    """A backup that is whole, as far as its head can tell."""
    where = f"{backups / name}/{HEAD}"
    try:
        data = (backups / name).read(HEAD)
    except FileNotFoundException:
        if not (backups / name).exists():
            raise FileNotFoundException(f"there is no backup {name!r} in {backups}") from None
        raise IOException(
            f"the backup {name!r} in {backups} is not complete: it was cut short; run it again"
        ) from None
    try:
        signed = msgspec.json.decode(data, type=_Signed)
        found = msgspec.json.decode(signed.head, type=_Format).format
        if found != FORMAT:
            raise IncorrectVersionException(
                f"{where} is of format {found}, and this release reads {FORMAT}: use the one that"
                " wrote it"
            )
        if hashlib.sha256(bytes(signed.head)).hexdigest() != signed.sha256:
            raise IOException(f"{where} is not what was written there: it was changed")
        return msgspec.json.decode(signed.head, type=Head)
    except msgspec.MsgspecError as error:
        raise IOException(f"{where} cannot be read: {error}") from None


def list_heads(backups: Place) -> list[Head]:
    """The complete backups of a place, the earliest first."""
    found = [
        read_head(backups, name)
        for name, size in backups.sizes().items()
        if size is None and (backups / name).exists(HEAD)
    ]
    return sorted(found, key=lambda head: (head.snapshot.taken_ms, head.finished_ms))


def check_packs(backups: Place, head: Head) -> None:
    """All content that a backup needs is there, as long as it has to be."""
    sizes: dict[str, dict[str, int | None]] = {}
    for pack in head.packs:
        folder, _, name = pack.path.rpartition("/")
        if folder not in sizes:
            sizes[folder] = (backups / folder).sizes()
        found = sizes[folder].get(name)
        if found != pack.length:
            has = "is not there" if found is None else f"has {found:,} bytes"
            raise IOException(
                f"{backups}/{pack.path} {has}, not {pack.length:,}: the backup {head.name!r} was"
                " cut short or changed"
            )
