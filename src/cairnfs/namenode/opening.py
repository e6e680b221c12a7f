"""Making a namespace, and opening the store that holds it, from its URL."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from cairnfs.clock import Clock, SystemClock
from cairnfs.config import FormatSettings, NameNodeSettings
from cairnfs.namesystem.inodes import ROOT_ID, ROOT_NAME, ROOT_PARENT_ID, Inode, Kind
from cairnfs.namesystem.lookup import ROOT_KEY
from cairnfs.namesystem.marks import MARKS_KEY, Mark
from cairnfs.store.base import Store
from cairnfs.store.batches import Put
from cairnfs.store.sqlite import SqliteStore, format_file
from cairnfs.transaction.records import encode
from cairnfs.transaction.runner import LoneMember, Membership


class OpenStore(NamedTuple):
    """A store that is ready, what is written down in it, and our place in it."""

    store: Store
    membership: Membership
    meta: Mapping[str, str]


async def format_namespace(
    url: str, settings: FormatSettings | None = None, clock: Clock | None = None
) -> None:
    """Make an empty namespace: a root directory that belongs to the superuser."""
    settings = settings or FormatSettings()
    now_ms = (clock or SystemClock()).now_ms()
    meta = {
        "superuser": settings.superuser,
        "supergroup": settings.supergroup,
        "cluster id": f"CID-{uuid.uuid4()}",
        "created": str(now_ms),
    }
    root = Inode(
        id=ROOT_ID,
        parent_id=ROOT_PARENT_ID,
        name=ROOT_NAME,
        kind=Kind.DIRECTORY,
        mode=0o755,
        owner=settings.superuser,
        group=settings.supergroup,
        mtime_ms=now_ms,
        atime_ms=0,
    )
    rows = [
        Put(ROOT_KEY, ROOT_ID, 1, encode(root), False),
        Put(MARKS_KEY, None, 1, encode(Mark()), False),
    ]
    if _is_postgres(url):
        from cairnfs.store.postgres import format_database

        await format_database(url, meta, rows)
    else:
        format_file(sqlite_path(url), meta, rows)


async def open_store(settings: NameNodeSettings) -> OpenStore:
    """Open a formatted store; on PostgreSQL, join the NameNodes that are there.

    If it fails, nothing stays open.
    """
    async with AsyncExitStack() as opened:
        store: Store
        membership: Membership
        if _is_postgres(settings.store):
            from cairnfs.namenode.membership import PostgresMembership
            from cairnfs.store.postgres import PostgresStore

            store = shared = await PostgresStore.open(settings.store)
            opened.push_async_callback(shared.close)
            membership = await PostgresMembership.join(
                shared,
                settings.address,
                heartbeat_interval_s=settings.heartbeat_interval_s,
                expiry_s=settings.expiry_s,
            )
            opened.push_async_callback(membership.leave)
        else:
            store = SqliteStore(sqlite_path(settings.store))
            opened.push_async_callback(store.close)
            membership = LoneMember()
        meta = await store.meta()
        opened.pop_all()
    return OpenStore(store, membership, meta)


def sqlite_path(url: str) -> Path:
    """The file of `sqlite:///absolute/path` or `sqlite:relative/path`."""
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or parts.netloc or parts.path in ("", "/"):
        raise ValueError(
            f"{url} is not a store: use sqlite:///path/of/file or postgresql://user@host/database"
        )
    if parts.query or parts.fragment:
        raise ValueError(f"{url} names no file: write # as %23 and ? as %3F")
    return Path(unquote(parts.path))


def sqlite_url(path: Path) -> str:
    """The URL of a file: the inverse of `sqlite_path`."""
    return f"sqlite://{quote(str(path.absolute()))}"


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))
