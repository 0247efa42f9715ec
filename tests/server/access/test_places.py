"""A place is a table's own folder: no sibling of a similar name, nothing that names could lead to, nothing of another table."""

import json
import re
from uuid import uuid4

import pytest
from hypothesis import assume, given, strategies as st

from icefloe.catalog import Identifier
from icefloe.metadata import TableMetadata, new_table_metadata
from icefloe.schema import NestedField, Schema, types
from icefloe.server.access.places import Place, Territory
from icefloe.server.access.policies_codec import LONGEST, literal, session_policy

SCHEMA = Schema(NestedField(1, "a", types.StringType()))


def table_at(location: str, properties: dict[str, str] | None = None) -> TableMetadata:
    return new_table_metadata(SCHEMA, location=location, properties=properties, uuid=uuid4(), timestamp_ms=1)


def territory(
    pointers: dict[Identifier, str] | None = None,
    allowed: tuple[str, ...] = (),
    namespaces: tuple[Identifier, ...] = (("db",),),
) -> Territory:
    known = pointers or {}
    return Territory(
        lambda namespace: f"s3://b/wh/{'/'.join(namespace)}",
        lambda name: known.get(name),
        lambda name: name in namespaces,
        allowed,
    )


def places_of(
    location: str,
    properties: dict[str, str] | None = None,
    pointers: dict[Identifier, str] | None = None,
    allowed: tuple[str, ...] = (),
) -> list[str]:
    places = territory(pointers, allowed).places(("db", "t1"), table_at(location, properties))
    return [str(place) for place in places]


def test_the_folder_of_a_table_ends_with_a_slash() -> None:
    assert places_of("s3://b/wh/db/t1") == ["s3://b/wh/db/t1/"]
    assert places_of("s3a://b/wh/db/t1") == ["s3a://b/wh/db/t1/"]
    place = Place("b", "wh/db/t1/")
    assert place.has("wh/db/t1/data/x")
    assert not any(place.has(key) for key in ("wh/db/t10/x", "wh/db/t1", "wh/db/t1x", "wh/db"))


def test_places_within_places_are_one() -> None:
    inside = {"write.data.path": "s3://b/wh/db/t1/files", "write.metadata.path": "s3://b/wh/db/meta-of-t1"}
    assert places_of("s3://b/wh/db/t1", inside) == ["s3://b/wh/db/t1/", "s3://b/wh/db/meta-of-t1/"]


@pytest.mark.parametrize(
    "location",
    [
        "s3://b/wh/other/t1",
        "s3://b/wh/db",
        "s3://b/wh/db10/t1",
        "s3://b/wh",
        "s3://b/",
        "s3://other/wh/db/t1",
        "s3://b/wh/db/../other/t1",
        "s3://b/wh/db/./t1",
        "s3://b/wh/db//t1",
        "file:///wh/db/t1",
    ],
)
def test_a_table_cannot_claim_what_is_not_beneath_its_namespace(location: str) -> None:
    assert places_of(location) == []
    assert places_of("s3://b/wh/db/t1", {"write.data.path": location}) == ["s3://b/wh/db/t1/"]


def test_a_table_cannot_claim_the_folder_of_another() -> None:
    others: dict[Identifier, str] = {
        ("db", "secret"): "s3://b/wh/db/secret/metadata/0.json",
        ("db", "a/b"): "s3://b/wh/db/a%2Fb/metadata/0.json",
        ("db", "moved"): "s3://b/wh/db/moved-1234/metadata/0.json",
        ("db", "t1"): "s3://b/wh/db/t1/metadata/0.json",
    }
    for folder in ("secret", "secret/metadata", "a%2Fb"):
        assert places_of(f"s3://b/wh/db/{folder}", pointers=others) == []
    # What a table is called that is at home elsewhere says nothing of a folder.
    assert places_of("s3://b/wh/db/moved", pointers=others) == ["s3://b/wh/db/moved/"]
    assert places_of("s3://b/wh/db/t1", pointers=others) == ["s3://b/wh/db/t1/"]


def test_a_table_cannot_claim_the_folder_of_a_namespace() -> None:
    nested = territory(namespaces=(("db",), ("db", "t1"), ("db", "inner")))
    # It would cover all tables of the namespace that has its name.
    assert nested.places(("db", "t1"), table_at("s3://b/wh/db/t1")) == ()
    assert nested.places(("db", "t2"), table_at("s3://b/wh/db/inner/x")) == ()
    assert [str(place) for place in nested.places(("db", "t1"), table_at("s3://b/wh/db/t1-0a"))] == [
        "s3://b/wh/db/t1-0a/"
    ]


def test_operators_allow_other_locations() -> None:
    assert places_of("s3://other/legacy/t", allowed=("s3://other/legacy/",)) == ["s3://other/legacy/t/"]
    assert places_of("s3://other/legacy10/t", allowed=("s3://other/legacy",)) == []
    assert places_of("s3://other/legacy", allowed=("s3://other/legacy",)) == []


def matches(pattern: str, text: str) -> bool:
    """As Amazon matches a pattern: `*` and `?` are wildcards, `${*}`, `${?}` and `${$}` are those characters."""
    parts = re.split(r"(\$\{[*?$]\}|\*|\?)", pattern)
    regex = {"*": ".*", "?": "."}
    whole = "".join(regex.get(part) or re.escape(part[2] if re.fullmatch(r"\$\{.\}", part) else part) for part in parts)
    return re.fullmatch(whole, text, re.DOTALL) is not None


NAMES = st.text(st.sampled_from("t10*?${}/.-ä "), min_size=1, max_size=6)


@given(prefix=NAMES, key=NAMES, may_write=st.booleans())
def test_a_policy_covers_exactly_the_place(prefix: str, key: str, may_write: bool) -> None:
    place = Place("b", f"{prefix.rstrip('/') or 't'}/")
    policy = json.loads(session_policy([place], may_write=may_write))
    objects, listing = policy["Statement"]
    assert matches(objects["Resource"][0], f"arn:aws:s3:::b/{key}") == place.has(key)
    assert matches(objects["Resource"][0], f"arn:aws:s3:::b/{place.prefix}{key}")
    assert matches(listing["Condition"]["StringLike"]["s3:prefix"][0], key) == place.has(key)
    assert ("s3:PutObject" in objects["Action"]) == ("s3:DeleteObject" in objects["Action"]) == may_write
    assert listing["Resource"] == ["arn:aws:s3:::b"]
    assert len(policy["Statement"]) == 2


@given(NAMES, NAMES)
def test_a_literal_matches_itself_alone(one: str, other: str) -> None:
    assume(one != other)
    assert matches(literal(one), one)
    assert not matches(literal(one), other)


def test_policies_of_several_places_and_keys() -> None:
    places = [Place("b", "t/"), Place("b", "u/"), Place("c", "t/")]
    policy = json.loads(session_policy(places, may_write=False, kms_keys=["arn:aws:kms:r:1:key/k"], partition="aws-cn"))
    objects, of_b, of_c, keys = policy["Statement"]
    assert objects["Resource"] == ["arn:aws-cn:s3:::b/t/*", "arn:aws-cn:s3:::b/u/*", "arn:aws-cn:s3:::c/t/*"]
    assert of_b["Condition"] == {"StringLike": {"s3:prefix": ["t/*", "u/*"]}}
    assert of_c["Resource"] == ["arn:aws-cn:s3:::c"]
    assert keys["Action"] == ["kms:Decrypt"]
    assert len(session_policy(places, may_write=True)) < LONGEST
