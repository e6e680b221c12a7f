"""Random calls of extended attributes: few names, so that they meet."""

from __future__ import annotations

from typing import Any

from tests.model.steps import Choose, Step

XATTR_OPERATIONS: dict[str, int] = {
    "set_xattr": 5,
    "get_xattrs": 2,
    "list_xattrs": 1,
    "remove_xattr": 2,
}
"""How often each is called."""

NAMES = ("user.a", "user.a", "user.b", "trusted.a")
ODD_NAMES = ("system.a", "security.a", "raw.a", "User.a", "a", "user.", "wrong.a", "user.ü€𐍈")
VALUES = (b"1", b"2", b"", None, b"x" * 16383)
ODD_VALUES = (b"x" * 16384, bytes(range(256)))


def make_xattr_call(choose: Choose, operation: str, path: Any) -> Step:
    """One call of one operation on a path."""
    arguments: dict[str, tuple[Any, ...]] = {
        "set_xattr": (_name(choose), _value(choose), choose.among((3, 3, 3, 1, 2, 0))),
        "get_xattrs": (tuple(_name(choose) for _ in range(choose.among((0, 0, 1, 2)))),),
        "list_xattrs": (),
        "remove_xattr": (_name(choose),),
    }
    return Step(operation, (path, *arguments[operation]))


def _name(choose: Choose) -> str:
    return choose.among(NAMES if choose.number(0, 9) else ODD_NAMES)


def _value(choose: Choose) -> bytes | None:
    return choose.among(VALUES if choose.number(0, 9) else ODD_VALUES)
