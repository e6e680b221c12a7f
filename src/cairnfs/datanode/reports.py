"""What the transfer side has to tell the NameNodes, as an interface."""

from __future__ import annotations

from typing import Protocol

from cairnfs.datanode.replica import Block
from cairnfs.datanode.volumes import Volume


class Reports(Protocol):
    """Whoever passes on to the NameNodes what happens to replicas.  None of it waits."""

    def receiving(self, block: Block, volume: Volume) -> None:
        """A client has begun to write a replica."""

    def received(self, block: Block, volume: Volume, delete_hint: str = "") -> None:
        """A replica is complete; with a hint, the one of that DataNode may go."""

    def deleted(self, block: Block, volume: Volume) -> None:
        """A replica is gone."""

    def bad(self, block: Block, volume: Volume) -> None:
        """A replica is corrupt."""
