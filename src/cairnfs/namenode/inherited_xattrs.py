"""CairnProtocol: extended attributes that are inherited."""

from __future__ import annotations

from cairnfs.namenode.responses import encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import declarations, xattr_explanation, xattrs
from cairnfs.namesystem.declarations import word_for
from cairnfs.namesystem.inheritance import name_of
from cairnfs.namesystem.inodes import Declaration
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.xattr_explanation import ExplainedInode, Explanation
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text
from cairnfs.xattr_text import XAttrName

CALLS = Service(CAIRN_PROTOCOL)

_parse = FsPath.parse


@CALLS.handler
def declare_xattr(call: IncomingCall, request: cairn_pb2.DeclareXAttrRequestProto) -> None:
    name = XAttrName.parse(as_text(request.name))
    call.run(declarations.declare_xattr, encode_nothing, name, as_text(request.kind))


@CALLS.handler
def get_declared_xattrs(
    call: IncomingCall, request: cairn_pb2.GetDeclaredXAttrsRequestProto
) -> None:
    def encode(found: tuple[Declaration, ...]) -> cairn_pb2.GetDeclaredXAttrsResponseProto:
        response = cairn_pb2.GetDeclaredXAttrsResponseProto()
        for each in found:
            response.declared.add(
                name=str(name_of(each)), kind=word_for(each.kind), isUsed=each.is_used
            )
        return response

    call.run(declarations.list_declarations, encode)


@CALLS.handler
def unset_xattr(call: IncomingCall, request: cairn_pb2.UnsetXAttrRequestProto) -> None:
    name = XAttrName.parse(as_text(request.name))
    call.run(xattrs.unset_xattr, encode_nothing, _parse(request.src), name)


@CALLS.handler
def explain_xattrs(call: IncomingCall, request: cairn_pb2.ExplainXAttrsRequestProto) -> None:
    def encode(found: list[Explanation]) -> cairn_pb2.ExplainXAttrsResponseProto:
        return cairn_pb2.ExplainXAttrsResponseProto(explanations=map(_to_explanation, found))

    names = (XAttrName.parse(as_text(name)) for name in request.names)
    call.run(xattr_explanation.explain_xattrs, encode, _parse(request.src), *names)


def _to_explanation(found: Explanation) -> cairn_pb2.XAttrExplanationProto:
    message = cairn_pb2.XAttrExplanationProto(
        name=str(found.name), kind=word_for(found.kind), value=found.value
    )
    for reason in found.reasons:
        cause = cairn_pb2.XAttrReasonProto.Cause.ValueType(reason.cause)
        message.reasons.add(cause=cause, path=reason.path, txid=reason.txid)
    message.steps.extend(map(_to_step, found.way))
    return message


def _to_step(inode: ExplainedInode) -> cairn_pb2.XAttrStepProto:
    row = inode.row
    return cairn_pb2.XAttrStepProto(
        path=inode.path,
        renamed=inode.renamed,
        restored=inode.restored,
        set=0 if row is None else row.set,
        value=None if row is None else row.value,
        decided=inode.decided.txid,
        decidedValue=inode.decided.value,
    )
