"""Extended attributes as text: names such as "user.author", values as in Hadoop's XAttrCodec.

The numbers of the name spaces are those of Hadoop's protocol.
"""

from __future__ import annotations

import base64
import binascii
import enum
from typing import NamedTuple

from cairnfs.errors import HadoopIllegalArgumentException, IOException

ENCODINGS = ("text", "hex", "base64")

_PREFIX_LENGTH_MIN = 3


class XAttrNamespace(enum.IntEnum):
    """What a name is written behind; it says who may see and change the attribute."""

    USER = 0
    TRUSTED = 1
    SECURITY = 2
    SYSTEM = 3
    RAW = 4


class XAttrName(NamedTuple):
    """Which attribute is meant."""

    namespace: int
    name: str

    @staticmethod
    def parse(text: str) -> XAttrName:
        """From text such as "user.author"."""
        return XAttrName(*parse_name(text))

    def __str__(self) -> str:
        return format_name(self.namespace, self.name)


def parse_name(text: str) -> tuple[XAttrNamespace, str]:
    """The name space, of which the case does not matter, and the name in it."""
    prefix, dot, name = text.partition(".")
    if not dot or len(prefix) < _PREFIX_LENGTH_MIN or (name and prefix.upper() not in _NAMESPACES):
        raise HadoopIllegalArgumentException(
            "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a"
            f" '.': {text!r} is not"
        )
    if not name:
        raise HadoopIllegalArgumentException("XAttr name cannot be empty.")
    return XAttrNamespace[prefix.upper()], name


def format_name(namespace: int, name: str) -> str:
    return f"{XAttrNamespace(namespace).name.lower()}.{name}"


def encode_value(value: bytes, encoding: str) -> str:
    """A value in one of the encodings; text is in quotes."""
    if encoding == "hex":
        return f"0x{value.hex()}"
    if encoding == "base64":
        return f"0s{base64.b64encode(value).decode()}"
    return f'"{value.decode(errors="replace")}"'


def decode_value(text: str) -> bytes:
    """What is in quotes, after 0x in hexadecimal, after 0s in base 64, or the text itself."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].encode(errors="surrogateescape")
    try:
        if text[:2] in ("0x", "0X"):
            return binascii.unhexlify(text[2:])
        if text[:2] in ("0s", "0S"):
            return base64.b64decode(text[2:], validate=True)
    except ValueError as error:
        raise IOException(f"{text!r} is not the value of an attribute: {error}") from None
    return text.encode(errors="surrogateescape")


_NAMESPACES = XAttrNamespace.__members__
