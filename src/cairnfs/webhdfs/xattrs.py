"""Names and values of extended attributes as WebHDFS's parameters have them."""

from __future__ import annotations

import base64
import binascii

from cairnfs.errors import HadoopIllegalArgumentException, IOException
from cairnfs.wire.proto import xattr_pb2

_NAMESPACES = {name.lower(): name for name, _ in xattr_pb2.XAttrProto.XAttrNamespaceProto.items()}


def parse_name(text: str, value: bytes | None = None) -> xattr_pb2.XAttrProto:
    """An attribute by its name with its namespace, such as `user.colour`."""
    prefix, dot, name = text.partition(".")
    if not dot or prefix.lower() not in _NAMESPACES:
        raise HadoopIllegalArgumentException(
            "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by"
            " a '.'"
        )
    if not name:
        raise HadoopIllegalArgumentException("XAttr name cannot be empty.")
    return xattr_pb2.XAttrProto(namespace=_NAMESPACES[prefix.lower()], name=name, value=value)


def parse_value(text: str | None) -> bytes:
    """As Hadoop's XAttrCodec: hexadecimal after 0x, base 64 after 0s, else text, perhaps quoted."""
    if text is None:
        return b""
    try:
        if text[:2] in ("0x", "0X"):
            return bytes.fromhex(text[2:])
        if text[:2] in ("0s", "0S"):
            return base64.b64decode(text[2:], validate=True)
    except (ValueError, binascii.Error) as error:
        raise IOException(
            f"the value {text!r} of an attribute cannot be decoded: {error}"
        ) from None
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text.encode()
