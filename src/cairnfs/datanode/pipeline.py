"""Receive a block: from a client or a DataNode, to disk, and on to the next DataNode.

    upstream --packets--> BlockReceiver --packets--> mirror
    upstream <---acks---- PacketResponder <--acks--- mirror

A packet is passed on first, then written, then marked as done; its acknowledgement goes
upstream when it is done here and acknowledged by the mirror.  So nothing is acknowledged
that is not in the hands of every DataNode's operating system (on disk, if the client
asked for hsync).  The last DataNode checks the checksums and acknowledges by itself.

When the mirror fails, the client is told (SUCCESS, ERROR) and builds a new pipeline;
when this DataNode fails, it closes the connection and is found to be the bad one.  In
either case what was written stays, to be recovered under a new generation stamp.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from typing import NamedTuple

from cairnfs.datanode.connection import Connection, is_disconnect
from cairnfs.datanode.figures import BYTES_WRITTEN, DataNodeFigures
from cairnfs.datanode.replica import Replica
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.errors import IOException
from cairnfs.network.throttle import Throttle
from cairnfs.wire.checksum import Checksum
from cairnfs.wire.packets import UNKNOWN_SEQNO, Ack, Packet, encode_ack
from cairnfs.wire.transfer import Status

log = logging.getLogger(__name__)

BUFFER_BYTES = 512 << 10
_SUCCESS = Status.SUCCESS


class ChecksumException(IOException, java_class="org.apache.hadoop.fs.ChecksumException"):
    """What was received does not match its checksums."""


class _Done(NamedTuple):
    """A packet that this DataNode has written."""

    seqno: int
    end: int
    is_last: bool
    is_sync: bool


class TransferWriter:
    """The thread that serves a write: the `Writer` of a replica."""

    def __init__(self, upstream: Connection) -> None:
        self.upstream = upstream
        self.mirror: Connection | None = None
        self.stopped = False
        self._finished = threading.Event()

    def stop(self, limit_s: float) -> bool:
        """Make the connections end, and wait until nobody writes any more."""
        self.stopped = True
        self.upstream.shutdown()
        if self.mirror is not None:
            self.mirror.shutdown()
        return self._finished.wait(limit_s)

    def finished(self) -> None:
        self._finished.set()


class BlockReceiver:
    """One replica being received."""

    def __init__(
        self,
        replica: Replica,
        writer: TransferWriter,
        *,
        replicas: Replicas,
        reports: Reports,
        settings: DataNodeSettings,
        checksum: Checksum,
        acknowledges: bool,
        figures: DataNodeFigures,
    ) -> None:
        self.replica = replica
        self._replicas = replicas
        self._reports = reports
        self._sync_on_close = settings.sync_on_close
        self._writer = writer
        self._upstream = writer.upstream
        self._mirror = mirror = writer.mirror
        self._checksum = checksum
        self._acknowledges = acknowledges
        self._figures = figures
        assert replica.file is not None
        self._file = replica.file
        self._translates = checksum != self._file.checksum
        self._verifies = mirror is None or not acknowledges or self._translates
        self._responder: PacketResponder | None = None
        self._mirror_failed = False
        self._directory_synced = False

    def receive(self, throttle: Throttle | None = None) -> None:
        """Receive until the last packet.  With acknowledgements, the replica is final then."""
        self._upstream.expect_packets(BUFFER_BYTES)
        if self._mirror is not None and self._acknowledges:
            self._responder = PacketResponder(self, self._writer)
            self._responder.start()
        try:
            while not self._take(packets := self._upstream.read_packets()):
                if throttle is not None:
                    throttle.wait(sum(len(packet.data) for packet in packets))
        except BaseException:
            self._writer.stopped = True
            if self._mirror is not None:
                self._mirror.shutdown()
            raise
        finally:
            if self._responder is not None:
                self._responder.finish()
        if self._responder is not None and not self._responder.finalized:
            raise IOException(f"the pipeline of {self.replica.block} failed")

    # Packets.

    def _take(self, packets: list[Packet]) -> bool:
        """Handle packets that arrived together; True after the last of the block."""
        for packet in packets:
            self._check_place(packet)
        self._pass_on(packets)
        bad = self._first_bad(packets) if self._verifies else None
        good = packets if bad is None else packets[:bad]
        self._write(good)
        if self._acknowledges:
            self._acknowledge(good)
        if bad is not None:
            self._refuse(packets[bad])
        return packets[-1].is_last

    def _check_place(self, packet: Packet) -> None:
        replica = self.replica
        if packet.offset > replica.received_bytes:
            raise IOException(
                f"Received an out-of-sequence packet for {replica.block} from"
                f" {self._upstream.peer} at offset {packet.offset}. Expecting packet starting"
                f" at {replica.received_bytes}"
            )
        if packet.sums and len(packet.sums) != self._checksum.sums_bytes(len(packet.data)):
            raise IOException(
                f"{len(packet.sums)} bytes of checksums do not go with {len(packet.data)} of data"
            )
        if packet.end > replica.received_bytes:
            replica.received_bytes = packet.end

    def _pass_on(self, packets: list[Packet]) -> None:
        if self._mirror is None or self._mirror_failed:
            return
        try:
            self._mirror.send_all([packet.raw for packet in packets])
        except OSError as error:
            if self._writer.stopped:
                raise
            # Go on here; the responder tells the client, who will close the pipeline.
            log.info("%s: cannot pass on to %s: %s", self.replica, self._mirror.peer, error)
            self._mirror_failed = True
            self._mirror.shutdown()

    def _first_bad(self, packets: list[Packet]) -> int | None:
        for index, packet in enumerate(packets):
            if packet.sums and not self._checksum.matches(packet.data, packet.sums):
                return index
        return None

    def _write(self, packets: list[Packet]) -> None:
        pieces = [
            (packet.offset, packet.data, None if self._translates else packet.sums or None)
            for packet in packets
            if packet.data
        ]
        with self._replicas.volumes.watch(self.replica.volume):
            self._file.write_all(pieces)
        self._figures.add(BYTES_WRITTEN, sum(len(data) for _, data, _ in pieces))
        if any(packet.is_sync for packet in packets):
            self._sync()

    def _sync(self) -> None:
        with self._replicas.volumes.watch(self.replica.volume):
            self._file.sync()
            if not self._directory_synced:
                self._replicas.sync_directory(self.replica)
                self._directory_synced = True

    def _acknowledge(self, packets: list[Packet]) -> None:
        done = [_Done(each.seqno, each.end, each.is_last, each.is_sync) for each in packets]
        if not done:
            return
        if self._responder is not None:
            self._responder.enqueue(done)
        else:
            self._upstream.send(b"".join(self.settle(each, (_SUCCESS,)) for each in done))

    def settle(self, done: _Done, statuses: tuple[Status, ...]) -> bytes:
        """The acknowledgement of a packet that every DataNode from here on has."""
        if not any(statuses):
            if done.is_last:
                self.finalize(sync=done.is_sync)
            self.replica.acked_bytes = max(self.replica.acked_bytes, done.end)
        return encode_ack(done.seqno, statuses)

    def finalize(self, *, sync: bool = False, delete_hint: str = "") -> None:
        """The replica is complete."""
        sync = sync or self._sync_on_close
        if sync:
            self._sync()
        self._replicas.finalize(self.replica, sync=sync)
        self._reports.received(self.replica.block, self.replica.volume, delete_hint)

    def _refuse(self, packet: Packet) -> None:
        """Say that a packet is corrupt, and end: whoever sent it is to blame, or the wire."""
        if self._acknowledges and self._responder is None:
            self._upstream.send(encode_ack(packet.seqno, (Status.ERROR_CHECKSUM,)))
        raise ChecksumException(
            f"Checksum error in block {self.replica.block} from {self._upstream.peer}"
            f" at {packet.offset}. Terminating due to a checksum error."
        )


class PacketResponder:
    """Passes acknowledgements from the mirror on to upstream, when we are done as well."""

    def __init__(self, receiver: BlockReceiver, writer: TransferWriter) -> None:
        assert writer.mirror is not None
        self.finalized = False
        self._receiver = receiver
        self._writer = writer
        self._upstream = writer.upstream
        self._mirror = writer.mirror
        self._written: queue.SimpleQueue[list[_Done]] = queue.SimpleQueue()
        self._done: deque[_Done] = deque()  # taken out of the queue
        self._thread = threading.Thread(
            target=self._run, name=f"responder blk_{receiver.replica.block_id}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def enqueue(self, packets: list[_Done]) -> None:
        """These are written here."""
        self._written.put(packets)

    def finish(self) -> None:
        """No more will come; wait until the last is acknowledged, or cannot be."""
        self._written.put([])
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self.finalized and self._relay(self._mirror.read_acks()):
                pass
        except OSError as error:
            if self._writer.stopped or self.finalized:
                return
            log.info("%s: the mirror failed: %s", self._receiver.replica, error)
            self._tell_of_mirror()
        except Exception:
            log.exception("%s: responder failed", self._receiver.replica)
            self._upstream.shutdown()

    def _relay(self, acks: list[Ack]) -> bool:
        """Send these upstream; False if nothing more is to be done."""
        replies = []
        for ack in acks:
            statuses = (_SUCCESS, *ack.statuses)
            if ack.seqno == UNKNOWN_SEQNO or (not ack.is_success and ack.is_out_of_band):
                # A DataNode further down has lost its mirror, or is about to restart.
                replies.append(encode_ack(UNKNOWN_SEQNO, statuses))
                continue
            if ack.statuses[:1] == (Status.ERROR_CHECKSUM,):
                # What we sent was corrupt: we are the bad one, not the mirror.
                log.warning("%s: the mirror received corrupt data", self._receiver.replica)
                self._upstream.shutdown()
                return False
            done = self._next_done()
            if done is None:
                return False
            if done.seqno != ack.seqno:
                raise IOException(f"seqno: expected={done.seqno}, received={ack.seqno}")
            replies.append(self._settle(done, statuses))
        try:
            self._upstream.send(b"".join(replies))
        except OSError as error:
            if not is_disconnect(error):
                raise
            self._upstream.shutdown()
            return False
        return True

    def _next_done(self) -> _Done | None:
        if not self._done:
            self._done.extend(self._written.get())
        return self._done.popleft() if self._done else None

    def _settle(self, done: _Done, statuses: tuple[Status, ...]) -> bytes:
        try:
            reply = self._receiver.settle(done, statuses)
        except OSError:
            self._upstream.shutdown()  # our own failure: the connection's end tells of it
            raise
        self.finalized = done.is_last and not any(statuses)
        return reply

    def _tell_of_mirror(self) -> None:
        try:
            self._upstream.send(encode_ack(UNKNOWN_SEQNO, (_SUCCESS, Status.ERROR)))
        except OSError:
            self._upstream.shutdown()
