"""WebHDFS operations on extended attributes that are inherited; HDFS has none of them."""

from __future__ import annotations

from aiohttp import web

from cairnfs.errors import IllegalArgumentException
from cairnfs.webhdfs.calls import WebCall
from cairnfs.webhdfs.looking import Operation, encoding_of
from cairnfs.webhdfs.requests import answer_json, answer_nothing
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL
from cairnfs.xattr_text import encode_value


async def declare_xattr(call: WebCall) -> web.Response:
    _check_root(call)
    message = cairn_pb2.DeclareXAttrRequestProto(
        name=call.required("xattr.name"), kind=call.required("xattr.kind")
    )
    await call.rpc("declareXAttr", message, CAIRN_PROTOCOL)
    return answer_nothing()


async def get_declared_xattrs(call: WebCall) -> web.Response:
    _check_root(call)
    request = cairn_pb2.GetDeclaredXAttrsRequestProto()
    response = await call.rpc("getDeclaredXAttrs", request, CAIRN_PROTOCOL)
    declared = [
        {"name": each.name, "kind": each.kind, "isUsed": each.isUsed} for each in response.declared
    ]
    return answer_json({"DeclaredXAttrs": declared})


async def unset_xattr(call: WebCall) -> web.Response:
    message = cairn_pb2.UnsetXAttrRequestProto(src=call.path, name=call.required("xattr.name"))
    await call.rpc("unsetXAttr", message, CAIRN_PROTOCOL)
    return answer_nothing()


async def explain_xattrs(call: WebCall) -> web.Response:
    """Which operation decides each value; without a name, of all that are inherited."""
    encoding = encoding_of(call, "text")
    message = cairn_pb2.ExplainXAttrsRequestProto(
        src=call.path, names=call.parameters.texts("xattr.name")
    )
    response = await call.rpc("explainXAttrs", message, CAIRN_PROTOCOL)
    return answer_json(
        {"XAttrExplanations": [_describe(each, encoding) for each in response.explanations]}
    )


def _check_root(call: WebCall) -> None:
    if call.path != "/":
        raise IllegalArgumentException(
            f"{call.operation} is about the whole file system: its path is /, not {call.path}"
        )


def _describe(found: cairn_pb2.XAttrExplanationProto, encoding: str) -> dict[str, object]:
    return {
        "name": found.name,
        "kind": found.kind,
        "value": encode_value(found.value, encoding) if found.HasField("value") else None,
        "reasons": [
            {
                "cause": cairn_pb2.XAttrReasonProto.Cause.Name(reason.cause),
                "path": reason.path,
                "txid": reason.txid,
            }
            for reason in found.reasons
        ],
        "steps": [_describe_step(step, encoding) for step in found.steps],
    }


def _describe_step(step: cairn_pb2.XAttrStepProto, encoding: str) -> dict[str, object]:
    return {
        "path": step.path,
        "renamed": step.renamed,
        "restored": step.restored,
        "set": step.set,
        "value": encode_value(step.value, encoding) if step.HasField("value") else None,
        "decided": step.decided,
        "decidedValue": (
            encode_value(step.decidedValue, encoding) if step.HasField("decidedValue") else None
        ),
    }


GET: dict[str, Operation] = {
    "GETDECLAREDXATTRS": get_declared_xattrs,
    "EXPLAINXATTRS": explain_xattrs,
}
PUT: dict[str, Operation] = {"DECLAREXATTR": declare_xattr, "UNSETXATTR": unset_xattr}
