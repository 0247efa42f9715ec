"""Requests to sign and their answers mean the same on both ends."""

import json

import pytest
from hypothesis import given, strategies as st

from icefloe import rest
from icefloe.errors import InvalidInputError
from icefloe.rest.credentials_codec import METHODS
from icefloe.storage import SignedRequest, SignRequest

HEADERS = st.dictionaries(st.text(max_size=8), st.lists(st.text(max_size=8), max_size=3), max_size=3)
REQUESTS = st.builds(
    SignRequest, st.sampled_from(sorted(METHODS)), st.text(), st.text(), HEADERS, st.none() | st.text()
)


@given(REQUESTS, st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2))
def test_requests(request: SignRequest, properties: dict[str, str]) -> None:
    body = rest.encode_sign_request(request, properties)
    assert rest.decode_sign_request(body) == (request, properties)


@given(st.builds(SignedRequest, st.text(), HEADERS, st.booleans()))
def test_answers(signed: SignedRequest) -> None:
    body = rest.encode_signed_request(signed)
    assert rest.decode_signed_request(body, rest.cache_control(signed)) == signed
    assert not rest.decode_signed_request(body, None).is_reusable
    assert not rest.decode_signed_request(body, "private, no-store").is_reusable


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"provider": "gcs"}, "'gcs' cannot be signed"),
        ({"method": "TRACE"}, "'TRACE' is not a method"),
        ({"uri": None}, "uri"),
    ],
)
def test_what_cannot_be_signed(changes: dict[str, str | None], problem: str) -> None:
    body = {"region": "r", "uri": "http://h/", "method": "GET", "headers": {}}
    assert rest.decode_sign_request(json.dumps(body).encode())[0].body is None
    with pytest.raises(InvalidInputError, match=problem):
        rest.decode_sign_request(json.dumps({**body, **changes}).encode())
