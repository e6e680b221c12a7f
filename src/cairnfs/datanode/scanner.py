"""Read every replica once in a while, slowly, and report those that have decayed.

Where a scan of a volume has got to is kept in a file there, so that a restart does not
begin again.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from dataclasses import dataclass

from cairnfs.datanode.errors import ReplicaNotFoundException
from cairnfs.datanode.replica import Block, ReplicaReader, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.volumes import Volume
from cairnfs.errors import IOException

log = logging.getLogger(__name__)

CURSOR_NAME = "scanner.cursor"
_CURSOR_INTERVAL_S = 60.0
_IDLE_S = 5.0
_PIECE_BYTES = 1 << 20


@dataclass
class Cursor:
    """How far the scan of a volume is."""

    block_id: int = 0  # the last one that was read
    started_ms: int = 0

    @classmethod
    def load(cls, volume: Volume) -> Cursor:
        try:
            stored = json.loads((volume.pool / CURSOR_NAME).read_text())
            return cls(int(stored["block_id"]), int(stored["started_ms"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def save(self, volume: Volume) -> None:
        path = volume.pool / CURSOR_NAME
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(self.__dict__))
            temporary.replace(path)
        except OSError as error:
            log.info("cannot keep the scanner's place: %s", error)


class BlockScanner:
    """Scans all volumes in turn, in one thread, at a limited rate."""

    def __init__(
        self, replicas: Replicas, reports: Reports, *, bytes_per_s: int, period_s: float
    ) -> None:
        self._replicas = replicas
        self._reports = reports
        self._bytes_per_s = bytes_per_s
        self._period_s = period_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scanner", daemon=True)

    def start(self) -> None:
        if self._bytes_per_s > 0:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def scan(self, block_id: int) -> bool:
        """Read one replica; False if it is bad, which is reported.

        A finding counts only if the replica is still what it was: it may have been
        appended to or deleted in the meantime.
        """
        try:
            before = self._replicas.get(block_id)
            reader = self._replicas.open_for_read(Block(block_id, 0))
        except ReplicaNotFoundException:
            return True
        except OSError as error:
            return self._judge(before.block, str(error))
        with reader:
            try:
                wrong = self._find_corruption(reader)
            except OSError as error:
                return self._judge(before.block, str(error))
        return wrong is None or self._judge(before.block, f"wrong checksum at {wrong}")

    def _find_corruption(self, reader: ReplicaReader) -> int | None:
        size = reader.checksum.bytes_per_checksum
        step = max(1, _PIECE_BYTES // size) * size
        for offset in range(0, reader.length_bytes, step):
            started_s = time.monotonic()
            wanted = min(step, reader.length_bytes - offset)
            data = os.pread(reader.data_fd, wanted, offset)
            if len(data) < wanted:
                raise IOException(f"the block file ends at {offset + len(data)}")
            wrong = reader.checksum.first_mismatch(data, reader.read_sums(offset, wanted))
            if wrong is not None:
                return offset + wrong
            if self._bytes_per_s > 0:
                self._stopping.wait(
                    max(0.0, wanted / self._bytes_per_s - (time.monotonic() - started_s))
                )
            if self._stopping.is_set():
                return None
        return None

    def _judge(self, block: Block, finding: str) -> bool:
        now = self._replicas.find(block.id)
        if now is None or now.block != block or now.state is not ReplicaState.FINALIZED:
            return True
        if not self._replicas.volumes.check(now.volume):
            return True  # all of the volume is lost, and reported so
        log.warning("%s is corrupt: %s", now, finding)
        self._reports.bad(block, now.volume)
        return False

    def _run(self) -> None:
        while not self._stopping.is_set():
            scanned = 0
            for volume in list(self._replicas.volumes.good):
                try:
                    scanned += self._scan_volume(volume)
                except Exception:
                    log.exception("scanning %s failed", volume)
            if not scanned:
                self._stopping.wait(_IDLE_S)

    def _scan_volume(self, volume: Volume) -> int:
        """Go on where the last scan of this volume stopped."""
        cursor = Cursor.load(volume)
        now_ms = time.time_ns() // 1_000_000
        waiting = self._replicas.finalized_after(cursor.block_id, volume)
        if not waiting:
            if cursor.block_id and now_ms - cursor.started_ms < self._period_s * 1000:
                return 0
            cursor = Cursor(0, now_ms)
            waiting = self._replicas.finalized_after(0, volume)
        scanned, saved_s = 0, time.monotonic()
        for block_id in waiting:
            self.scan(block_id)
            if self._stopping.is_set() or volume.failed:
                break
            scanned += 1
            cursor.block_id = block_id
            if time.monotonic() - saved_s > _CURSOR_INTERVAL_S:
                cursor.save(volume)
                saved_s = time.monotonic()
        cursor.save(volume)
        return scanned
