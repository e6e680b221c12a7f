"""Paths: what is one, what is refused, and which names are reserved."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.build import is_compiled
from cairnfs.errors import (
    FileNotFoundException,
    HadoopIllegalArgumentException,
    InvalidPathException,
    IOException,
    PathComponentTooLongException,
)
from cairnfs.namesystem import paths
from cairnfs.namesystem.paths import ROOT, FsPath, check_component_length

parse = FsPath.parse

names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda name: name not in (".", ".."))


@pytest.mark.parametrize(
    ("text", "canonical", "components"),
    [
        ("/", "/", ()),
        ("//", "/", ()),
        ("/a", "/a", (b"a",)),
        ("/a/", "/a", (b"a",)),
        ("//a///b//", "/a/b", (b"a", b"b")),
        ("/a b/ü", "/a b/ü", (b"a b", b"\xc3\xbc")),
        ("/\U0001f600", "/\U0001f600", (b"\xf0\x9f\x98\x80",)),
        ("/a:b", "/a:b", (b"a:b",)),
        ("/.../..a/a.", "/.../..a/a.", (b"...", b"..a", b"a.")),
        ("/.hidden//x", "/.hidden/x", (b".hidden", b"x")),
        (b"/a//\xc3\xbc", "/a/ü", (b"a", b"\xc3\xbc")),
    ],
)
def test_parse(text: str | bytes, canonical: str, components: tuple[bytes, ...]) -> None:
    path = parse(text)
    assert path.text == str(path) == canonical
    assert path.components == components
    assert path.is_root is (components == ())
    assert path.name == (components[-1] if components else b"")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a/b",
        "./a",
        "/.",
        "/a/.",
        "/a/./b",
        "/..",
        "/a/../b",
        "/a/b/c/..",
        "/a\0b",
        "/\ud800",
        b"/\xff",
    ],
)
def test_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidPathException, match=r"^Invalid path name ") as caught:
        parse(text)
    str(caught.value).encode()  # the message can be sent


odd_names = st.sampled_from(
    [
        "",
        "a",
        "b c",
        ".",
        "..",
        ".snapshot",
        ".reserved",
        ".x",
        "\0",
        "\ud800",
        "\u202e",
        "é",
        "a:b",
    ]
)


@given(st.lists(st.one_of(odd_names, names), max_size=4), st.lists(odd_names, max_size=2))
def test_a_path_is_the_same_whatever_was_met_before_it(above: list[str], below: list[str]) -> None:
    def outcome(text: str) -> object:
        try:
            path = parse(text)
        except InvalidPathException as error:
            return str(error)
        return path.text, path.components, path.snapshot_index, path.is_reserved

    for start in ("/", ""):
        text = start + "/".join([*above, *below])
        paths._directories.clear()
        alone = outcome(text)
        for before in ("/".join(["", *above, "sibling"]), "/sibling", "sibling", "/"):
            outcome(before)
        assert outcome(text) == alone


@given(st.lists(names, max_size=8))
def test_parse_is_the_inverse_of_text(parts: list[str]) -> None:
    path = parse("/" + "/".join(parts))
    assert path.components == tuple(part.encode() for part in parts)
    assert parse(path.text) == path
    assert parse(path.text.encode()) == path
    built = ROOT
    for name in path.components:
        assert built.is_ancestor_of(path)
        assert built.child(name).parent == built
        built = built.child(name)
    assert built == path
    assert not built.is_ancestor_of(path)
    for depth in range(len(parts) + 1):
        assert path.text_to(depth) == path.ancestor(depth).text


def test_long_paths_are_parsed_without_the_cache() -> None:
    text = "/" + "a" * 600 + "//b"
    assert parse(text) == parse(text)
    assert parse(text).components == (b"a" * 600, b"b")


def test_value() -> None:
    path = parse("/a/b")
    assert hash(path) == hash(parse("/a//b/"))
    assert {path: 1}[parse("//a/b")] == 1
    assert path != parse("/a/c")
    if is_compiled():  # or it is mypy that sees to it
        with pytest.raises(AttributeError):
            path.text = "/c"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(path)) == copy.copy(path) == path


def test_family() -> None:
    assert parse("/a/b/c").parent == parse("/a/b")
    assert parse("/a").parent == ROOT
    assert ROOT.parent == ROOT
    assert ROOT.child("ü".encode()) == parse("/ü")
    assert ROOT.is_ancestor_of(parse("/a"))
    assert not ROOT.is_ancestor_of(ROOT)
    assert parse("/a").is_ancestor_of(parse("/a/b/c"))
    assert not parse("/a").is_ancestor_of(parse("/ab"))
    assert not parse("/a/b").is_ancestor_of(parse("/a"))


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("/a/b", -1),
        ("/.snapshot", 0),
        ("/a/.snapshot", 1),
        ("/a/.snapshot/s1/b", 1),
        ("/a/.snapshot/.snapshot", 1),
        ("/a/.snapshots/x", -1),
        ("/a/x.snapshot", -1),
    ],
)
def test_snapshot_index(text: str, index: int) -> None:
    path = parse(text)
    assert path.snapshot_index == index
    assert path.parent == parse(path.text.rpartition("/")[0] or "/")
    assert path.parent.child(path.name) == path


@pytest.mark.parametrize(
    ("text", "reserved", "exactly", "raw", "inode_id", "below"),
    [
        ("/a", False, False, False, None, ()),
        ("/.reserved", True, True, False, None, ()),
        ("/.reserved/", True, True, False, None, ()),
        ("/.reservedx", False, False, False, None, ()),
        ("/a/.reserved/raw", False, False, False, None, ()),
        ("/.reserved/raw", True, False, True, None, ()),
        ("/.reserved/raw/a/b", True, False, True, None, ()),
        ("/.reserved/.inodes", True, False, False, None, ()),
        ("/.reserved/.inodes/16385", True, False, False, 16385, ()),
        ("/.reserved/.inodes/16386/a/b", True, False, False, 16386, (b"a", b"b")),
        ("/.reserved/.inodes/16386/..", True, False, False, 16386, (b"..",)),
        ("/.reserved/.inodes/-1", True, False, False, -1, ()),
    ],
)
def test_reserved(
    text: str, reserved: bool, exactly: bool, raw: bool, inode_id: int | None, below: object
) -> None:
    path = parse(text)
    assert (path.is_reserved, path.is_exactly_reserved, path.is_raw) == (reserved, exactly, raw)
    assert path.inode_id == inode_id
    assert path.below_inode == below
    assert path.parent == path.ancestor(len(path.components) - 1)
    assert path.parent.child(path.name) == path


@pytest.mark.parametrize(
    "number", ["x", "1.5", "1x", "9223372036854775808", "1" * 5000, " 1", "_1"]
)
def test_invalid_inode_path(number: str) -> None:
    path = parse(f"/.reserved/.inodes/{number}/a")
    with pytest.raises(FileNotFoundException, match=r"^Invalid inode path: /\.reserved/"):
        _ = path.inode_id


@pytest.mark.parametrize(
    "text", ["/.reserved/.inodes/..", "/.reserved/.inodes/1/a/..", "/.reserved/.inodes/1/../.."]
)
def test_dots_elsewhere_below_an_inode_are_refused(text: str) -> None:
    with pytest.raises(InvalidPathException):
        parse(text)


@pytest.mark.parametrize(
    ("text", "stands_for"),
    [
        ("/.reserved/raw", "/"),
        ("/.reserved/raw/a/b", "/a/b"),
        ("/.reserved/raw/a/.snapshot", "/a/.snapshot"),
        ("/.reserved/raw/.reserved", "/.reserved/raw/.reserved"),
        ("/.reserved/.inodes/1", "/.reserved/.inodes/1"),
        ("/a", "/a"),
    ],
)
def test_without_raw(text: str, stands_for: str) -> None:
    assert parse(text).without_raw() == parse(stands_for)


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("/" + "a" * 7999, True),
        ("/" + "a" * 8000, False),
        ("/" + "\U0001f600" * 3999, True),  # two UTF-16 units each
        ("/" + "\U0001f600" * 4000, False),
        ("/a" * 1000, True),
        ("/a" * 1001, False),
    ],
)
def test_length(text: str, is_allowed: bool) -> None:
    path = parse(text)
    if is_allowed:
        path.check_length("mkdirs")
    else:
        with pytest.raises(IOException) as caught:
            path.check_length("mkdirs")
        assert str(caught.value) == (
            "mkdirs: Pathname too long.  Limit 8000 characters, 1000 levels."
        )


def test_colon_is_refused_in_creation_only() -> None:
    path = parse("/a/b:c")
    with pytest.raises(InvalidPathException) as caught:
        path.check_valid_for_creation()
    assert str(caught.value) == "Invalid path name Invalid file name: /a/b:c"
    with pytest.raises(InvalidPathException) as caught:
        path.check_valid_for_file()
    assert str(caught.value) == "Invalid path name /a/b:c"
    parse("/a/b").check_valid_for_creation()


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("/a", True),
        ("/.reserved/raw/a", True),
        ("/.reserved/.inodes/16386", True),
        ("/.reserved", False),
        ("/.reserved/other", False),
    ],
)
def test_reserved_names_for_files(text: str, is_allowed: bool) -> None:
    if is_allowed:
        parse(text).check_valid_for_file()
    else:
        with pytest.raises(InvalidPathException, match=f"^Invalid path name {text}$"):
            parse(text).check_valid_for_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/.reserved", 'File name ".reserved" is reserved and cannot be created. If this is'),
        ("/.reserved/a", 'File name ".reserved" is reserved and cannot be created.'),
        ("/a/.snapshot", '".snapshot" is a reserved name.'),
        ("/.snapshot/a", '".snapshot" is a reserved name.'),
    ],
)
def test_reserved_names_are_not_created(text: str, message: str) -> None:
    with pytest.raises(HadoopIllegalArgumentException) as caught:
        parse(text).check_not_reserved_for_creation()
    assert str(caught.value).startswith(message)
    assert not isinstance(caught.value, InvalidPathException)


def test_other_names_are_created() -> None:
    for text in ("/", "/a", "/a/.reserved", "/.snapshots"):
        parse(text).check_not_reserved_for_creation()


def test_component_length_is_in_bytes() -> None:
    check_component_length("é".encode() * 127 + b"x", "/d")
    name = "é" * 128
    with pytest.raises(PathComponentTooLongException) as caught:
        check_component_length(name.encode(), parse("/d"))
    assert str(caught.value) == (
        f"The maximum path component name limit of {name} in directory /d"
        " is exceeded: limit=255 length=256"
    )
