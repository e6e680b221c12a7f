"""The operations of DataTransferProtocol: who does which, and which are refused."""

from __future__ import annotations

from google.protobuf.message import Message

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.copying import Copying
from cairnfs.datanode.figures import DataNodeFigures
from cairnfs.datanode.moving import Moving
from cairnfs.datanode.reading import Reading
from cairnfs.datanode.writing import Writing
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.transfer import Op, Request, Status, encode_message


class Operations:
    """What this DataNode does for those who connect to it."""

    def __init__(
        self,
        reading: Reading,
        writing: Writing,
        copying: Copying,
        moving: Moving,
        figures: DataNodeFigures,
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._copying = copying
        self._moving = moving
        self._figures = figures

    def run(self, request: Request, connection: Connection) -> bool:
        """Do it; True if another operation may follow on the connection."""
        with self._figures.operation(request.op.name.lower()):
            return self._run(request, connection)

    def _run(self, request: Request, connection: Connection) -> bool:
        match request.message:
            case pb.OpReadBlockProto() as message:
                return self._reading.read_block(message, connection)
            case pb.OpBlockChecksumProto() as message:
                self._reading.block_checksum(message, connection)
            case pb.OpCopyBlockProto() as message:
                self._moving.copy_block(message, connection)
            case pb.OpWriteBlockProto() as message:
                self._writing.write_block(message, connection)
            case pb.OpReplaceBlockProto() as message:
                self._moving.replace_block(message, connection)
            case pb.OpTransferBlockProto() as message:
                self._copying.transfer_block(message, connection)
            case _:
                _refuse(request.op, connection)
        return False


def _refuse(op: Op, connection: Connection) -> None:
    """Say that something is not offered; the client does without."""
    text = f"{op.name} is not offered by this DataNode"
    match op:
        case Op.REQUEST_SHORT_CIRCUIT_SHM:
            answer: Message = pb.ShortCircuitShmResponseProto(
                status=Status.ERROR_UNSUPPORTED, error=text
            )
        case Op.RELEASE_SHORT_CIRCUIT_FDS:
            answer = pb.ReleaseShortCircuitAccessResponseProto(
                status=Status.ERROR_UNSUPPORTED, error=text
            )
        case _:
            answer = pb.BlockOpResponseProto(status=Status.ERROR_UNSUPPORTED, message=text)
    connection.send(encode_message(answer))
