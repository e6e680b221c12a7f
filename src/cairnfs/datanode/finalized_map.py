"""Finalized replicas in little memory: a million of them take some 130 MB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cairnfs.datanode.replica import Replica, ReplicaState, size_with_sums
from cairnfs.datanode.volumes import Volume

_VOLUMES_MAX = 256
_LENGTH_BITS = 48


class FinalizedMap:
    """Finalized replicas by block id: stamp, length and volume in one integer each."""

    def __init__(self, volumes: Iterable[Volume]) -> None:
        self._volumes = list(volumes)
        self._numbers = {id(volume): number for number, volume in enumerate(self._volumes)}
        self._packed: dict[int, int] = {}
        assert len(self._volumes) <= _VOLUMES_MAX

    def snapshot(self) -> FinalizedMap:
        """As it is now; a copy of a dict is made in one go."""
        copy = FinalizedMap(self._volumes)
        copy._packed = self._packed.copy()
        return copy

    def __len__(self) -> int:
        return len(self._packed)

    def put(self, block_id: int, generation_stamp: int, length: int, volume: Volume) -> None:
        number = self._numbers[id(volume)]
        self._packed[block_id] = (generation_stamp << _LENGTH_BITS | length) << 8 | number

    def get(self, block_id: int) -> Replica | None:
        packed = self._packed.get(block_id)
        return None if packed is None else self._unpack(block_id, packed)

    def pop(self, block_id: int) -> None:
        self._packed.pop(block_id, None)

    def of(self, volume: Volume) -> list[Replica]:
        number = self._numbers[id(volume)]
        return [
            self._unpack(block_id, packed)
            for block_id, packed in self._packed.items()
            if packed & 0xFF == number
        ]

    def count(self, volume: Volume) -> int:
        number = self._numbers[id(volume)]
        return sum(packed & 0xFF == number for packed in self._packed.values())

    def ids_after(self, block_id: int, volume: Volume) -> list[int]:
        number = self._numbers[id(volume)]
        return sorted(
            each
            for each, packed in self._packed.items()
            if each > block_id and packed & 0xFF == number
        )

    def describe(self, volume: Volume) -> Iterator[tuple[int, int, int]]:
        number = self._numbers[id(volume)]
        for block_id, packed in self._packed.items():
            if packed & 0xFF == number:
                rest = packed >> 8
                yield block_id, rest & (1 << _LENGTH_BITS) - 1, rest >> _LENGTH_BITS

    def _unpack(self, block_id: int, packed: int) -> Replica:
        rest = packed >> 8
        length = rest & (1 << _LENGTH_BITS) - 1
        return Replica(
            block_id,
            rest >> _LENGTH_BITS,
            ReplicaState.FINALIZED,
            self._volumes[packed & 0xFF],
            received_bytes=length,
            acked_bytes=length,
            on_disk_bytes_closed=length,
            used_bytes=size_with_sums(length),
        )
