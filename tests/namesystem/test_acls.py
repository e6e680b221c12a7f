"""ACL arithmetic, with the cases of Hadoop's TestAclTransformation.

An ACL is written in full, as `getfacl` shows it: "u::rwx,g::r--,o::---", with
"d:" for default entries.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.errors import AclException, HadoopIllegalArgumentException
from cairnfs.namesystem import acls
from cairnfs.namesystem.acls import (
    ACCESS,
    DEFAULT,
    GROUP,
    MASK,
    OTHER,
    USER,
    format_spec,
    inherit_default,
    logical_entries,
    minimal_entries,
    modify_entries,
    parse_spec,
    remove_all,
    remove_default,
    remove_entries,
    replace_entries,
)
from cairnfs.namesystem.inodes import AclEntry

Stored = tuple[int, tuple[AclEntry, ...] | None]

_LONG = {"d": "default", "u": "user", "g": "group", "m": "mask", "o": "other"}


def spec(short: str, *, with_permissions: bool = True) -> list[AclEntry]:
    long = re.sub(r"\b[dugmo](?=:)", lambda letter: _LONG[letter[0]], short)
    return parse_spec(long, with_permissions=with_permissions)


def stored(full: str) -> Stored:
    """A full ACL as mode and stored entries, without the code under test."""
    entries = spec(full)
    access = [e for e in entries if e.scope == ACCESS]
    default = [e for e in entries if e.scope == DEFAULT]
    mode = access[0].permission << 6 | access[-2].permission << 3 | access[-1].permission
    return mode, (*(access[1:-2] if len(access) > 3 else ()), *default) or None


def full(result: Stored) -> str:
    return format_spec(logical_entries(*result))


def users(count: int, scope: str = "") -> str:
    return ",".join(f"{scope}u:user{number}:r--" for number in range(count))


BASE = "u::rwx,g::r--,o::---"


@pytest.mark.parametrize(
    ("existing", "change", "expected"),
    [
        (
            "u::rwx,u:bruce:rw-,u:diana:r-x,g::r--,g:execs:rw-,g:sales:r-x,m::rwx,o::r--",
            "u:diana,g:sales",
            "u::rwx,u:bruce:rw-,g::r--,g:execs:rw-,m::rw-,o::r--",
        ),
        # Nothing matches, so the mask stays though it is wider than needed.
        (
            "u::rwx,u:bruce:r--,g::r-x,g:sales:r--,m::rwx,o::---",
            "u:clark,g:execs",
            "u::rwx,u:bruce:r--,g::r-x,g:sales:r--,m::rwx,o::---",
        ),
        # The last named entry goes, and the mask stays as a mask.
        ("u::rwx,u:bruce:rw-,g::r--,m::rw-,o::---", "u:bruce", "u::rwx,g::r--,m::r--,o::---"),
        # Both go: a minimal ACL is left.
        ("u::rwx,u:bruce:rw-,g::r-x,m::rw-,o::---", "u:bruce,m:", "u::rwx,g::r-x,o::---"),
        (
            "u::rwx,g::r--,o::r--,d:u::rwx,d:u:bruce:r--,d:u:diana:rw-,d:g::r--,d:m::rw-,d:o::---",
            "d:u:diana",
            "u::rwx,g::r--,o::r--,d:u::rwx,d:u:bruce:r--,d:g::r--,d:m::r--,d:o::---",
        ),
        # The mask of the other scope is preserved.
        (
            "u::rwx,u:bruce:r--,u:diana:rw-,g::r--,m::rw-,o::r--,"
            "d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
            "u:diana",
            "u::rwx,u:bruce:r--,g::r--,m::r--,o::r--,"
            "d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
        ),
        # A default entry that is required returns as a copy.
        (
            "u::rwx,g::r--,o::r--,d:u::rw-,d:u:bruce:r--,d:g::r--,d:m::r--,d:o::---",
            "d:u:",
            "u::rwx,g::r--,o::r--,d:u::rwx,d:u:bruce:r--,d:g::r--,d:m::r--,d:o::---",
        ),
        (
            "u::rwx,g::r--,o::r--,d:u::rw-,d:g::rw-,d:o::---",
            "d:g:",
            "u::rwx,g::r--,o::r--,d:u::rw-,d:g::r--,d:o::---",
        ),
        (
            "u::rwx,g::r--,o::r--,d:u::rw-,d:g::rw-,d:o::---",
            "d:u:,d:g:,d:o:",
            "u::rwx,g::r--,o::r--",
        ),
        ("u::rwx,u:bruce:rw-,g::r--,m::rwx,o::r--", "", "u::rwx,u:bruce:rw-,g::r--,m::rwx,o::r--"),
    ],
)
def test_remove_entries(existing: str, change: str, expected: str) -> None:
    result = remove_entries(
        *stored(existing), spec(change, with_permissions=False), is_directory=True, path="/d"
    )
    assert full(result) == format_spec(spec(expected))
    assert result == stored(expected)


@pytest.mark.parametrize(
    ("existing", "change", "expected"),
    [
        ("u::rwx,g::r-x,o::---", "u:bruce:rwx", "u::rwx,u:bruce:rwx,g::r-x,m::rwx,o::---"),
        (
            "u::rwx,u:diana:r--,g::r-x,m::r-x,o::---",
            "u:diana:r-x,u:clark:r-x,u:bruce:r-x",
            "u::rwx,u:bruce:r-x,u:clark:r-x,u:diana:r-x,g::r-x,m::r-x,o::---",
        ),
        (
            "u::rwx,u:bruce:r--,g::r--,m::r--,o::r--",
            "u:bruce:r-x,u:diana:r--",
            "u::rwx,u:bruce:r-x,u:diana:r--,g::r--,m::r-x,o::r--",
        ),
        (
            "u::rwx,g::r--,o::r--,d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
            "u:diana:r-x",
            "u::rwx,u:diana:r-x,g::r--,m::r-x,o::r--,"
            "d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
        ),
        (
            "u::rwx,u:bruce:rwx,g::r--,m::r--,o::r--",
            "d:u:diana:r-x",
            "u::rwx,u:bruce:rwx,g::r--,m::r--,o::r--,"
            "d:u::rwx,d:u:diana:r-x,d:g::r--,d:m::r-x,d:o::r--",
        ),
        (
            "u::rwx,g::r--,o::---",
            "d:g::r-x,d:o::r--",
            "u::rwx,g::r--,o::---,d:u::rwx,d:g::r-x,d:o::r--",
        ),
        ("u::rwx,g::r--,o::---", "u:bruce:r-x,m::rwx", "u::rwx,u:bruce:r-x,g::r--,m::rwx,o::---"),
        # Only a mask makes an ACL extended; the group's own entry is kept beside it.
        ("u::rwx,g::rwx,o::---", "m::r--", "u::rwx,g::rwx,m::r--,o::---"),
        # With no other default entry, a default mask is dropped.
        (BASE, "d:m::rwx", BASE),
        (BASE, "u::r--", "u::r--,g::r--,o::---"),
        # The group's own entry changes, not the mask it shows as in the mode.
        (
            "u::rwx,u:bruce:r--,g::r--,m::r--,o::---",
            "g::rwx,m::r--",
            "u::rwx,u:bruce:r--,g::rwx,m::r--,o::---",
        ),
        ("u::rwx,u:bruce:rw-,g::r--,m::rwx,o::r--", "", "u::rwx,u:bruce:rw-,g::r--,m::rwx,o::r--"),
    ],
)
def test_modify_entries(existing: str, change: str, expected: str) -> None:
    result = modify_entries(*stored(existing), spec(change), is_directory=True, path="/d")
    assert full(result) == format_spec(spec(expected))
    assert result == stored(expected)


@pytest.mark.parametrize(
    ("existing", "change", "expected"),
    [
        (
            "u::rwx,u:bruce:rwx,g::r-x,m::rwx,o::---",
            "u::rwx,u:bruce:rw-,g::r-x,g:sales:rwx,m::rwx,o::---,"
            "d:u::rwx,d:u:bruce:rw-,d:g::r-x,d:g:sales:rwx,d:m::rwx,d:o::---",
            "u::rwx,u:bruce:rw-,g::r-x,g:sales:rwx,m::rwx,o::---,"
            "d:u::rwx,d:u:bruce:rw-,d:g::r-x,d:g:sales:rwx,d:m::rwx,d:o::---",
        ),
        (
            BASE,
            "u::rwx,u:bruce:r--,u:diana:rw-,g::r--,o::r--",
            "u::rwx,u:bruce:r--,u:diana:rw-,g::r--,m::rw-,o::r--",
        ),
        # Only one scope is replaced; the other keeps its mask.
        (
            "u::rwx,u:bruce:r--,g::r--,m::rw-,o::r--,"
            "d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
            "u::rwx,g::rwx,o::r--",
            "u::rwx,g::rwx,o::r--,d:u::rwx,d:u:diana:rwx,d:g::r--,d:m::r--,d:o::---",
        ),
        (
            "u::rwx,u:bruce:rwx,g::r--,m::r--,o::r--,d:u::rwx,d:g::r--,d:o::---",
            "d:u::rwx,d:u:bruce:r--,d:g::r--,d:o::---",
            "u::rwx,u:bruce:rwx,g::r--,m::r--,o::r--,"
            "d:u::rwx,d:u:bruce:r--,d:g::r--,d:m::r--,d:o::---",
        ),
        (
            BASE,
            "d:u:bruce:r--",
            "u::rwx,g::r--,o::---,d:u::rwx,d:u:bruce:r--,d:g::r--,d:m::r--,d:o::---",
        ),
        (
            "u::rwx,u:bruce:rwx,g::r-x,m::rwx,o::---,d:u::rwx,d:g::r--,d:o::---",
            "",
            "u::rwx,g::r-x,o::---",
        ),
    ],
)
def test_replace_entries(existing: str, change: str, expected: str) -> None:
    result = replace_entries(*stored(existing), spec(change), is_directory=True, path="/d")
    assert full(result) == format_spec(spec(expected))
    assert result == stored(expected)


DUPLICATE = "Invalid ACL: multiple entries with same scope, type and name."
NAMED = "Invalid ACL: this entry type must not have a name: "
REQUIRED = "Invalid ACL: the user, group and other entries are required."
MASK_REQUIRED = "Invalid ACL: mask is required and cannot be deleted."
TOO_MANY = "Invalid ACL: ACL has 33 {} entries, which exceeds maximum of 32."
EXTENDED = "u::rwx,u:bruce:r--,g::r--,m::rwx,o::---"
CROWDED = f"u::rwx,{users(28)},g::r--,m::r--,o::---"


@pytest.mark.parametrize(
    ("change", "existing", "entries", "message"),
    [
        (remove_entries, EXTENDED, "m:", MASK_REQUIRED),
        (
            remove_entries,
            "u::rwx,g::r--,o::---,d:u::rwx,d:u:bruce:r--,d:g::r--,d:m::rwx,d:o::---",
            "d:m:",
            MASK_REQUIRED,
        ),
        (remove_entries, EXTENDED, "o:", REQUIRED),
        (remove_entries, BASE, users(33).replace(":r--", ""), TOO_MANY.format("access")),
        (modify_entries, BASE, users(33), TOO_MANY.format("access")),
        (modify_entries, BASE, users(33, "d:"), TOO_MANY.format("default")),
        (modify_entries, CROWDED, "u:bruce:r--", TOO_MANY.format("access")),
        (modify_entries, BASE, users(29, "d:"), TOO_MANY.format("default")),
        (modify_entries, BASE, "u:bruce:rwx,u:diana:rw-,u:bruce:r-x", DUPLICATE),
        (modify_entries, EXTENDED, "u:bruce:rwx,u:bruce:r-x", DUPLICATE),
        (modify_entries, BASE, "m:bruce:r-x", NAMED + "mask:bruce:r-x."),
        (modify_entries, BASE, "o:bruce:r-x", NAMED + "other:bruce:r-x."),
        (modify_entries, BASE, "d:u::rwx,d:m:bruce:r-x", NAMED + "default:mask:bruce:r-x."),
        (replace_entries, BASE, f"u::rwx,{users(29)},g::r--,o::---", TOO_MANY.format("access")),
        (replace_entries, BASE, "u::rwx,u:ann:r--,u:ann:rw-,g::r--,o::---", DUPLICATE),
        (replace_entries, BASE, BASE + ",m:bruce:r-x", NAMED + "mask:bruce:r-x."),
        (replace_entries, BASE, "u:bruce:rw-,g::r-x,m::rwx,o::---", REQUIRED),
        (replace_entries, BASE, "u::rwx,g:sales:rwx,m::rwx,o::---", REQUIRED),
        (replace_entries, BASE, "u::rwx,g::r-x,m::rwx", REQUIRED),
    ],
)
def test_refused(change: object, existing: str, entries: str, message: str) -> None:
    given_spec = spec(entries, with_permissions=change is not remove_entries)
    with pytest.raises(AclException) as caught:
        change(*stored(existing), given_spec, is_directory=True, path="/d")  # type: ignore[operator]
    assert str(caught.value) == message + " Path: /d"


def test_thirty_two_entries_are_allowed() -> None:
    full_house = f"u::rwx,{users(28)},g::r--,o::---"
    result = replace_entries(*stored(BASE), spec(full_house), is_directory=True, path="/d")
    assert len(logical_entries(*result)) == 32


def test_only_directories_have_a_default_acl() -> None:
    with pytest.raises(AclException) as caught:
        modify_entries(0o640, None, spec("d:u:bruce:r--"), is_directory=False, path="/f")
    assert str(caught.value) == (
        "Invalid ACL: only directories may have a default ACL. Path: /f Path: /f"
    )
    modify_entries(0o640, None, spec("u:bruce:r--"), is_directory=False, path="/f")


def test_sticky_bit_stays() -> None:
    entries = tuple(spec("u:bruce:rwx,g::r-x"))
    result = modify_entries(0o1750, None, entries[:1], is_directory=True, path="/d")
    assert result == (0o1770, entries)
    assert remove_all(*result) == (0o1750, None)


def test_an_empty_name_is_no_name() -> None:
    entry = AclEntry(ACCESS, USER, "", 4)
    assert modify_entries(0o777, None, [entry], is_directory=False, path="/f") == (0o477, None)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        (BASE, BASE),
        (EXTENDED, EXTENDED),
        (EXTENDED + ",d:u::rwx,d:g::r--,d:o::---", EXTENDED),
        (BASE + ",d:u::rwx,d:g::rwx,d:o::---", BASE),
    ],
)
def test_remove_default(existing: str, expected: str) -> None:
    assert remove_default(*stored(existing)) == stored(expected)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        (BASE, BASE),
        ("u::rwx,u:bruce:r--,g::r-x,m::rwx,o::--x", "u::rwx,g::r-x,o::--x"),
        ("u::rwx,g::r--,o::---,d:u::rwx,d:g::rwx,d:o::---", "u::rwx,g::r--,o::---"),
    ],
)
def test_remove_all(existing: str, expected: str) -> None:
    assert remove_all(*stored(existing)) == stored(expected)


DEFAULTS = "d:u::rwx,d:u:bruce:rwx,d:g::r-x,d:m::rwx,d:o::r-x"


@pytest.mark.parametrize(
    ("parent", "mode", "unmasked", "is_directory", "expected"),
    [
        # No default ACL: the client's umask counts.
        (BASE, 0o750, 0o777, True, "u::rwx,g::r-x,o::---"),
        (EXTENDED, 0o750, 0o777, True, "u::rwx,g::r-x,o::---"),
        # A default ACL: the umask does not, if the client sent the mode without it.
        (f"{BASE},{DEFAULTS}", 0o640, 0o666, False, "u::rw-,u:bruce:rwx,g::r-x,m::rw-,o::r--"),
        (f"{BASE},{DEFAULTS}", 0o640, None, False, "u::rw-,u:bruce:rwx,g::r-x,m::r--,o::---"),
        (
            f"{BASE},{DEFAULTS}",
            0o750,
            0o777,
            True,
            f"u::rwx,u:bruce:rwx,g::r-x,m::rwx,o::r-x,{DEFAULTS}",
        ),
        # A minimal default ACL filters the group, and files keep no entries.
        (f"{BASE},d:u::rwx,d:g::rwx,d:o::---", 0o640, 0o646, False, "u::rw-,g::r--,o::---"),
        (
            f"{BASE},d:u::rwx,d:g::rwx,d:o::---",
            0o750,
            0o757,
            True,
            "u::rwx,g::r-x,o::---,d:u::rwx,d:g::rwx,d:o::---",
        ),
    ],
)
def test_inherit_default(
    parent: str, mode: int, unmasked: int | None, is_directory: bool, expected: str
) -> None:
    _, parent_acl = stored(parent)
    result = inherit_default(parent_acl, mode, unmasked, is_directory=is_directory)
    assert full(result) == format_spec(spec(expected))
    assert result == stored(expected)


def test_inherit_default_keeps_the_sticky_bit() -> None:
    _, parent_acl = stored(f"{BASE},{DEFAULTS}")
    mode, _ = inherit_default(parent_acl, 0o1755, 0o1777, is_directory=True)
    assert mode == 0o1775


def test_logical_entries() -> None:
    assert logical_entries(0o1754, None) == minimal_entries(0o754) == spec("u::rwx,g::r-x,o::r--")
    for text in (EXTENDED, f"{BASE},{DEFAULTS}", f"{EXTENDED},{DEFAULTS}"):
        assert logical_entries(*stored(text)) == spec(text)


def test_numbers_are_those_of_the_protocol() -> None:
    assert (ACCESS, DEFAULT, USER, GROUP, MASK, OTHER) == (0, 1, 0, 1, 2, 3)
    assert parse_spec("user:bruce:rw-,default:group::r-x") == [
        AclEntry(0, 0, "bruce", 6),
        AclEntry(1, 1, None, 5),
    ]


@pytest.mark.parametrize(
    ("text", "with_permissions", "expected"),
    [
        ("user::rwx", True, "user::rwx"),
        (" USER:bruce:r-- , ,other::---", True, "user:bruce:r--,other::---"),
        ("user:bruce,default:mask:,group", False, "user:bruce:---,default:mask::---,group::---"),
        ("", True, ""),
    ],
)
def test_parse(text: str, with_permissions: bool, expected: str) -> None:
    assert format_spec(parse_spec(text, with_permissions=with_permissions)) == expected


@pytest.mark.parametrize(
    ("text", "with_permissions", "message"),
    [
        (":", True, "Invalid <aclSpec> : :"),
        ("default", True, "Invalid <aclSpec> : default"),
        ("users:bruce:r--", True, "Invalid type of acl in <aclSpec> :users:bruce:r--"),
        ("user:bruce", True, "Invalid <aclSpec> : user:bruce"),
        ("user::", True, "Invalid <aclSpec> : user::"),
        ("user:bruce:rws", True, "Invalid permission in <aclSpec> : user:bruce:rws"),
        ("user:bruce:r--:x", True, "Invalid <aclSpec> : user:bruce:r--:x"),
        ("user:bruce:r--", False, "Invalid <aclSpec> : user:bruce:r--"),
    ],
)
def test_parse_refuses(text: str, with_permissions: bool, message: str) -> None:
    with pytest.raises(HadoopIllegalArgumentException) as caught:
        parse_spec(text, with_permissions=with_permissions)
    assert str(caught.value) == message


entry_names = st.none() | st.sampled_from(["bruce", "diana", "sales"])
any_entry = st.builds(
    AclEntry, st.sampled_from([0, 1]), st.integers(0, 3), entry_names, st.integers(0, 7)
)


@given(st.lists(any_entry, max_size=6))
def test_format_and_parse_are_inverses(entries: list[AclEntry]) -> None:
    assert parse_spec(format_spec(entries)) == entries


@given(st.integers(0, 0o1777), st.lists(st.lists(any_entry, max_size=4), max_size=5), st.data())
def test_what_is_stored_stays_sound(
    mode: int, changes: list[list[AclEntry]], data: st.DataObject
) -> None:
    acl: tuple[AclEntry, ...] | None = None
    sticky = mode & 0o1000
    for entries in changes:
        change = data.draw(st.sampled_from([modify_entries, remove_entries, replace_entries]))
        try:
            mode, acl = change(mode, acl, entries, is_directory=True, path="/d")
        except AclException:
            continue
        logical = logical_entries(mode, acl)
        keys = [acls._key(entry) for entry in logical]
        assert keys == sorted(set(keys))
        assert mode & 0o1000 == sticky
        assert mode < 0o2000
        for scope in {entry.scope for entry in logical}:
            types = [e.type for e in logical if e.scope == scope and e.name is None]
            has_names = any(e.name for e in logical if e.scope == scope)
            assert [t for t in types if t != MASK] == [USER, GROUP, OTHER]
            assert MASK in types or not has_names
        assert (acl is None) == (len(logical) == 3)
