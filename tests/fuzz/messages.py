"""Messages with random content, and bytes that are damaged at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

DEPTH_MAX = 4
GARBLED = "garbled text"  # long enough to be met nowhere by chance
"""A text that is sent as bytes which are none: a Message takes such from the wire alone."""
_AS_SENT = b"\xff\xfe" * (len(GARBLED) // 2)

# The first few are asked for most: calls shall meet what other calls have made.
PATHS = (
    "/", "/d", "/d/f", "/d/g", "/d/sub", "/d/f/below", "/missing", "//d//f", "/d/", "relative",
    "/..", "/d/../f", "/d/./f", "/.reserved", "/.reserved/raw/d", "/.reserved/.inodes/16385",
    "/.reserved/.inodes/16387/x", "/.reserved/.inodes/-1", "/d/.snapshot/s", "/a:b", "/d/\0",
    "/d/ü", "/" + "n" * 300, "/x" * 1100, "/link", "/link/below", "hdfs://host/d",
)  # fmt: skip
PATHS_ASKED_FOR_MOST = PATHS[:5]
WORDS = (
    "", "hdfs", "alice", "staff", "supergroup", "test", "\0", "é\u2028", "x" * 2000, "HOT",
    "user.a", "user:ada:rwx", "DFSClient_1", "CID-1", GARBLED,
)  # fmt: skip
NUMBERS = (
    0, 1, 2, 3, 7, 511, 512, 1001, 16385, 16386, 16387, 1 << 20, (1 << 27) - 1, 1 << 27,
    (1 << 30) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 62) - 1, 1 << 62,
)  # fmt: skip

_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def fill(
    message: Message, random: Random, *, lacking: float = 0.0, texts: Sequence[str] = ()
) -> Message:
    """Give each field something, nothing, or too much of it.

    `lacking` is how likely it is that a field lacks which the message is required to have.
    """
    _fill(message, random, lacking, texts, 0)
    sent = message.SerializePartialToString().replace(GARBLED.encode(), _AS_SENT)
    message.ParseFromString(sent)
    return message


def _fill(
    message: Message, random: Random, lacking: float, texts: Sequence[str], depth: int
) -> None:
    for field in message.DESCRIPTOR.fields:
        is_deep = depth >= DEPTH_MAX and field.message_type is not None
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(0 if is_deep else random.choice((0, 0, 1, 1, 2, 5))):
                if field.message_type is not None:
                    _fill(values.add(), random, lacking, texts, depth + 1)
                else:
                    values.append(_value(field, random, texts))
        elif random.random() < (lacking if field.is_required else 1.0 if is_deep else 0.4):
            continue
        elif field.message_type is not None:
            part = getattr(message, field.name)
            part.SetInParent()
            _fill(part, random, lacking, texts, depth + 1)
        else:
            setattr(message, field.name, _value(field, random, texts))


def damage(data: bytes, random: Random) -> bytes:
    """The same with a few bytes changed, lost, added or repeated."""
    damaged = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(damaged) + 1)
        kind = random.random()
        if kind < 0.5 and at < len(damaged):
            damaged[at] = random.choice((0, 0x7F, 0x80, 0xFF, random.randrange(256)))
        elif kind < 0.7:
            del damaged[at : at + random.randrange(1, 9)]
        elif kind < 0.9:
            damaged[at:at] = random.randbytes(random.randrange(1, 9))
        else:
            damaged[at:at] = damaged[max(0, at - random.randrange(64)) : at]
    return bytes(damaged)


def cut(data: bytes, random: Random) -> list[bytes]:
    """The same in pieces, as a network may deliver it."""
    pieces = []
    while data:
        size = random.choice((1, 2, 7, 64, 1024, len(data)))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def _value(field: FieldDescriptor, random: Random, texts: Sequence[str]) -> Any:
    kind = field.cpp_type
    if kind in _BOUNDS:
        low, high = _BOUNDS[kind]
        number = random.choice((*NUMBERS, low, high, random.randrange(low, high)))
        return min(max(number * random.choice((1, 1, -1)), low), high)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.choice((b"", b"f", b"\xff\xfe", b"/d/f", random.randbytes(16), bytes(300)))
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if texts:
            return random.choice(texts)
        if random.random() < 0.3:
            return random.choice(WORDS)
        return random.choice(PATHS_ASKED_FOR_MOST if random.random() < 0.7 else PATHS)
    return random.random()  # float, double
