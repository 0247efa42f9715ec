"""Names in paths come back as they were, and endpoints are written as the document of the protocol has them."""

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidInputError
from icefloe.rest import paths
from icefloe.rest.headers_codec import matches_tag, quoted_tag

LEVEL = st.text(st.characters(exclude_characters="\x1f", exclude_categories=["Cs"]), min_size=1)
LEVELS = st.lists(LEVEL, min_size=1, max_size=4).map(tuple)


@given(LEVELS)
def test_a_namespace_comes_back_from_a_path(levels: paths.Levels) -> None:
    segment = paths.encode_namespace(levels)
    assert "/" not in segment
    assert segment not in (".", "..")
    assert paths.decode_namespace(segment) == levels


@given(LEVELS)
def test_a_namespace_comes_back_from_a_query(levels: paths.Levels) -> None:
    assert paths.split_levels(paths.join_levels(levels)) == levels


@given(st.lists(LEVEL.filter(lambda level: "." not in level), min_size=1, max_size=4).map(tuple))
def test_a_namespace_comes_back_with_another_separator(levels: paths.Levels) -> None:
    assert paths.decode_namespace(paths.encode_namespace(levels, "."), ".") == levels
    assert paths.split_levels(paths.join_levels(levels, "%2E"), "%2E") == levels
    # A client that does not know of it sends the one that everybody understands.
    if len(levels) > 1:
        assert paths.decode_namespace(paths.encode_namespace(levels), ".") == levels


@given(st.lists(st.lists(LEVEL, min_size=2, max_size=3).map(tuple), max_size=3))
def test_a_chain_of_views_comes_back(views: list[paths.Levels]) -> None:
    assert paths.decode_views(paths.encode_views(views)) == views


def test_nothing_is_no_namespace() -> None:
    assert paths.split_levels("") == ()


@given(LEVELS, LEVEL)
def test_an_address_is_read_back_by_its_template(levels: paths.Levels, table: str) -> None:
    address = paths.LOAD_TABLE.address("lake", levels, table=table)
    segments = paths.placeholders(address, paths.LOAD_TABLE.path)
    assert segments is not None
    assert segments["prefix"] == "lake"
    assert paths.decode_namespace(segments["namespace"]) == levels
    assert paths.decode_name(segments["table"]) == table


def test_addresses() -> None:
    assert paths.LIST_NAMESPACES.address() == "v1/namespaces"
    assert paths.LIST_NAMESPACES.address("a/b") == "v1/a/b/namespaces"
    assert paths.LOAD_TABLE.address("w", ("a", "b c"), table="t/1") == "v1/w/namespaces/a%1Fb%20c/tables/t%2F1"
    assert paths.FETCH_PLAN.address("w", ("a",), table="t", plan_id="p1") == "v1/w/namespaces/a/tables/t/plan/p1"
    assert paths.encode_name("..") == "%2E%2E"
    assert paths.placeholders("/v1/config", paths.LIST_NAMESPACES.path) is None


def test_every_endpoint_comes_back_from_its_text() -> None:
    for endpoint in vars(paths).values():
        if isinstance(endpoint, paths.Endpoint):
            assert paths.parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize("text", ["", "GET", "GET v1", "GO /v1/x", "GET  /v1/x", "GET /v1/x y"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an endpoint"):
        paths.parse_endpoint(text)


def test_a_segment_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="percent-encoded"):
        paths.decode_name("%FF")


def test_tags_match_with_and_without_quotes() -> None:
    assert matches_tag(quoted_tag("ab"), "ab")
    assert matches_tag("ab", "ab")
    assert matches_tag('"x", W/"ab"', "ab")
    assert matches_tag("*", "ab")
    assert not matches_tag('"abc"', "ab")
