"""Settings that Hadoop's shell is given as `-D name=value`, as far as they mean something here."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.cli.fs.errors import UsageError
from cairnfs.cli.fs.files import Sink
from cairnfs.cli.fs.items import Item
from cairnfs.cli.fs.local_files import LocalFiles

REPLICATION = "dfs.replication"
BLOCK_SIZE = "dfs.blocksize"
TRASH_INTERVAL = "fs.trash.interval"
KNOWN = (REPLICATION, BLOCK_SIZE, TRASH_INTERVAL)

_PREFIXES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


class Properties:
    """What files get that are made, and whether the trash is used."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """The texts are `name=value`; others than KNOWN are left to `unknown`."""
        given = dict(text.partition("=")[::2] for text in texts)
        self.unknown = [name for name in given if name not in KNOWN]
        self._numbers = {name: _parse(name, given[name]) for name in KNOWN if name in given}

    @property
    def trash_interval_minutes(self) -> int:
        """That of somebody who wants a trash where the server has none."""
        return self._numbers.get(TRASH_INTERVAL, 0)

    def create(self, item: Item, *, replication: int | None = None) -> Sink:
        """Make a file, or make it anew."""
        if isinstance(item.files, LocalFiles):
            return item.files.create(item.path, overwrite=True)
        return item.remote.create(
            item.path,
            overwrite=True,
            replication=replication or self._numbers.get(REPLICATION),
            block_size=self._numbers.get(BLOCK_SIZE),
        )


def _parse(name: str, text: str) -> int:
    """A number, which may end with k, m, g or t."""
    digits = text.strip().lower().rstrip("kmgt")
    suffix = text.strip().lower()[len(digits) :]
    if not digits.isdecimal() or suffix not in _PREFIXES:
        raise UsageError(f"-D {name}: {text!r} is not a number")
    return int(digits) << _PREFIXES[suffix]
