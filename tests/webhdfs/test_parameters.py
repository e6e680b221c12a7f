"""Targets of requests, right and wrong: what comes of them is a path and values, or a refusal."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.errors import IllegalArgumentException
from cairnfs.webhdfs.parameters import (
    ACL_PATTERN,
    LONG_MAX,
    PREFIX,
    SHORT_MAX,
    Parameters,
    Target,
    encode_path,
)


@given(st.text())
def test_any_target_is_read_or_refused(text: str) -> None:
    with suppress(IllegalArgumentException):
        assert Target.parse(PREFIX + text).path.encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_path_comes_as_it_was_sent(text: str) -> None:
    path = f"/{text}"
    assert Target.parse(f"{PREFIX}{encode_path(path)}?op=OPEN").path == path


def test_paths_are_not_tidied_up() -> None:
    assert Target.parse(f"{PREFIX}/a/../b//c/./d/").path == "/a/../b//c/./d/"
    assert Target.parse(PREFIX).path == "/"
    assert Target.parse(f"{PREFIX}/a+b%2B%20?x=a+b%2B%20").path == "/a+b+ "


@given(st.text(), st.text())
def test_any_value_is_read_or_refused(name: str, value: str) -> None:
    parameters = Parameters("")
    parameters._values = {name.lower(): [value]}
    readings = (
        lambda: parameters.number(name.lower(), type_max=SHORT_MAX),
        lambda: parameters.number(name.lower(), least=-1),
        lambda: parameters.mode(name.lower()),
        lambda: parameters.boolean(name.lower()),
        lambda: parameters.text(name.lower(), ACL_PATTERN),
        lambda: parameters.absolute_path(name.lower()),
        lambda: parameters.options(name.lower(), "java.Class", ("ONE", "TWO")),
    )
    for read in readings:
        with suppress(IllegalArgumentException):
            read()


@pytest.mark.parametrize(
    ("text", "number"),
    [("", None), ("null", None), ("0", 0), ("+7", 7), (str(LONG_MAX), LONG_MAX)],
)
def test_numbers(text: str, number: int | None) -> None:
    assert Parameters(f"n={text.replace('+', '%2B')}").number("n") == number


@pytest.mark.parametrize("text", ["1_000", "0x10", "٣", " 1", "1.0", "1e3", "-", str(LONG_MAX + 1)])
def test_what_java_would_not_take_for_a_number(text: str) -> None:
    with pytest.raises(IllegalArgumentException, match="as a radix-10 long integer"):
        Parameters(f"n={text}").number("n")


def test_names_are_in_any_case_and_the_first_value_wins() -> None:
    parameters = Parameters("Offset=1&offset=2&&=3&length")
    assert parameters.number("offset") == 1
    assert parameters.number("length") is None
    assert parameters.texts("offset") == ["1", "2"]
