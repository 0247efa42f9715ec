"""How names are read and written."""

import pytest
from hypothesis import given, strategies as st

from icefloe.catalog import parse_identifier, parse_namespace, show
from icefloe.catalog.identifiers import check_length
from icefloe.errors import InvalidInputError

parts = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)


@given(st.lists(parts, min_size=2, max_size=5))
def test_a_name_comes_back_from_its_text(names: list[str]) -> None:
    assert parse_identifier(show(names)) == tuple(names)
    assert parse_identifier(names) == tuple(names)


@given(st.text(max_size=20))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        found = parse_namespace(text)
    except InvalidInputError:
        return
    assert parse_namespace(show(found)) == found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.b", ("a", "b")),
        ("a.b.c", ("a", "b", "c")),
        ('"a.b".c', ("a.b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ('a."say ""hi"""', ("a", 'say "hi"')),
        ("a.`back``tick`", ("a", "back`tick")),
        ("käse.漢字", ("käse", "漢字")),
        ("two words.t", ("two words", "t")),
        ("a-b.c$d", ("a-b", "c$d")),
    ],
)
def test_texts_mean_names(text: str, names: tuple[str, ...]) -> None:
    assert parse_identifier(text) == names
    assert parse_identifier(show(names)) == names


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ((), "is empty"),
        ("a", "has no namespace; write it as namespace.a"),
        (("a b",), "write it as namespace.a b"),
        ("a..b", "has an empty part at character 3"),
        (".a", "has an empty part at character 1"),
        ("a.", "has an empty part at character 3"),
        (("a", ""), "has an empty part"),
        ("a.   ", "has an empty part"),
        ("a. b", "starts or ends with a space"),
        ('a."b', "has an open quote at character 3"),
        ('a.b"c"', "has a quote inside a part"),
        ("a.b\nc", "contains a control character"),
        (("a", "b\0"), "contains a control character"),
        (("a", "\ud800"), "not valid Unicode"),
        (7, "neither a string nor a tuple"),
        (("a", 7), "neither a string nor a tuple"),
        (None, "neither a string nor a tuple"),
        (b"a.b", "neither a string nor a tuple"),
    ],
)
def test_bad_names_are_refused(name: object, problem: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_identifier(name)  # type: ignore[arg-type]  # wrong types are among the cases
    assert problem in str(caught.value)


def test_lengths_are_checked() -> None:
    check_length("x" * 255, 255, "name")
    with pytest.raises(InvalidInputError, match="has 256 characters; this catalog allows at most 255"):
        check_length("x" * 256, 255, "name")
