"""Messages with random content, and bytes that are damaged at random."""

from __future__ import annotations

from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

DEPTH_MAX = 4

NUMBERS = (0, 1, 2, 3, 7, 16385, 16386, 1 << 20, (1 << 27) - 1, 1 << 27, (1 << 31) - 1)
LARGE_NUMBERS = ((1 << 32) - 1, 1 << 40, (1 << 62) - 1, (1 << 63) - 1)
TEXTS = (
    "",
    "/",
    "/a",
    "/a/b/c",
    "/d/file",
    "/.reserved",
    "/.reserved/.inodes/16386",
    "/.reserved/raw/a",
    "/a/.snapshot/s",
    "/..",
    "a",
    "//a",
    "/" + "x" * 256,
    "/y" * 1001,
    "user:ada:rwx",
    "\x00",
    "é\u2028",
    "DFSClient_1",
    "CID-1",
)

_SIGNED = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def fill(message: Message, random: Random, depth: int = 0) -> Message:
    """Give each field something, nothing, or too much of it."""
    for field in message.DESCRIPTOR.fields:
        is_repeated = field.is_repeated
        if not is_repeated and random.random() < (0.02 if field.is_required else 0.4):
            continue
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            _fill_message(message, field, random, depth, is_repeated=is_repeated)
        elif is_repeated:
            values = [_value(field, random) for _ in range(random.choice((0, 1, 2, 5)))]
            getattr(message, field.name).extend(values)
        else:
            setattr(message, field.name, _value(field, random))
    return message


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


def _fill_message(
    message: Message, field: FieldDescriptor, random: Random, depth: int, *, is_repeated: bool
) -> None:
    if depth >= DEPTH_MAX:
        return
    if is_repeated:
        for _ in range(random.choice((0, 1, 2))):
            fill(getattr(message, field.name).add(), random, depth + 1)
    else:
        part = getattr(message, field.name)
        part.SetInParent()
        fill(part, random, depth + 1)


def _value(field: FieldDescriptor, random: Random) -> Any:
    kind = field.cpp_type
    if kind in _SIGNED:
        low, high = _SIGNED[kind]
        number = random.choice((*NUMBERS, *LARGE_NUMBERS, low, high, random.randrange(low, high)))
        return min(max(number, low), high)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return random.randbytes(random.choice((0, 1, 16, 300)))
        return random.choice(TEXTS)
    return random.random()  # float, double
