"""Extended attributes that are inherited: declare, unset, explain.  Only on CairnFS."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.client.calls import PathLike
from cairnfs.client.records import DeclaredXAttr, XAttrExplanation, XAttrReason, XAttrStep
from cairnfs.client.root_snapshot import RootSnapshots
from cairnfs.errors import IllegalArgumentException
from cairnfs.wire.proto import cairn_pb2


class InheritedXAttrs(RootSnapshots):
    """What HDFS does not know of attributes."""

    def declare_xattr(self, name: str, kind: str) -> None:
        """Declare how far the attributes of a name reach; for the superuser.

        "follow-path": what is set on a directory holds for everything below it, and what is moved
        takes what its new directory has.  "stay-with-data": what is moved keeps what it had.
        "local", as every name that nobody declared: for one file or directory alone.
        """
        self._call_cairn(
            "declareXAttr",
            cairn_pb2.DeclareXAttrRequestProto(name=name, kind=kind),
            cairn_pb2.DeclareXAttrResponseProto,
        )

    def list_declared_xattrs(self) -> list[DeclaredXAttr]:
        """The names that are not local, in order."""
        response = self._call_cairn(
            "getDeclaredXAttrs",
            cairn_pb2.GetDeclaredXAttrsRequestProto(),
            cairn_pb2.GetDeclaredXAttrsResponseProto,
        )
        return [DeclaredXAttr(each.name, each.kind, each.isUsed) for each in response.declared]

    def unset_xattr(self, path: PathLike, name: str) -> None:
        """Let an inherited attribute be what it is in the directory above, here and below.

        To remove one, in contrast, says that there is none.
        """
        request = cairn_pb2.UnsetXAttrRequestProto(src=self.absolute_path(path), name=name)
        self._call_cairn("unsetXAttr", request, cairn_pb2.UnsetXAttrResponseProto, "src")

    def explain_xattrs(
        self, path: PathLike, names: Iterable[str] | None = None
    ) -> list[XAttrExplanation]:
        """Which operations decided the values of attributes: of these, or of all there are."""
        if isinstance(names, str):
            raise IllegalArgumentException(f"{names!r} is one name: give a list of them")
        request = cairn_pb2.ExplainXAttrsRequestProto(
            src=self.absolute_path(path), names=names or ()
        )
        response = self._call_cairn(
            "explainXAttrs", request, cairn_pb2.ExplainXAttrsResponseProto, "src"
        )
        return [_decode_explanation(each) for each in response.explanations]


def _decode_explanation(message: cairn_pb2.XAttrExplanationProto) -> XAttrExplanation:
    return XAttrExplanation(
        message.name,
        message.kind,
        message.value if message.HasField("value") else None,
        [
            XAttrReason(cairn_pb2.XAttrReasonProto.Cause.Name(each.cause), each.path, each.txid)
            for each in message.reasons
        ],
        [_decode_step(each) for each in message.steps],
    )


def _decode_step(message: cairn_pb2.XAttrStepProto) -> XAttrStep:
    return XAttrStep(
        message.path,
        message.renamed,
        message.restored,
        message.set,
        message.value if message.HasField("value") else None,
        message.decided,
        message.decidedValue if message.HasField("decidedValue") else None,
    )
