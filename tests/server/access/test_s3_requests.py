"""What may be signed: only what the table's own readers and writers send, however an address is written."""

import hashlib
import posixpath
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import ForbiddenError, IcefloeError, InvalidInputError
from icefloe.server.access.places import Place
from icefloe.server.access.s3_requests_codec import Effect, parse_request
from icefloe.storage import SignRequest

ENDPOINT = "http://store:9000"
OWN = Place("b", "wh/db/t1/")


def request(
    method: str, target: str, headers: dict[str, list[str]] | None = None, body: str | None = None
) -> SignRequest:
    return SignRequest(method, "us-east-1", target if "://" in target else f"{ENDPOINT}{target}", headers or {}, body)


def is_signed(asked: SignRequest, endpoint: str | None = ENDPOINT) -> bool:
    """Whether a request would be signed for the table, whatever else it is."""
    try:
        parsed = parse_request(asked, endpoint)
    except IcefloeError:
        return False
    return parsed.bucket == OWN.bucket and all(OWN.has(key) for key in parsed.keys)


@pytest.mark.parametrize(
    ("method", "target", "effect"),
    [
        ("GET", "/b/wh/db/t1/data/a%20b%2Bc.parquet", Effect.READ),
        ("HEAD", "/b/wh/db/t1/metadata/x", Effect.READ),
        ("GET", "/b/wh/db/t1/x?x-id=GetObject", Effect.READ),
        ("PUT", "/b/wh/db/t1/x", Effect.WRITE),
        ("PUT", "/b/wh/db/t1/x?partNumber=1&uploadId=u", Effect.WRITE),
        ("POST", "/b/wh/db/t1/x?uploads", Effect.WRITE),
        ("POST", "/b/wh/db/t1/x?uploadId=u", Effect.WRITE),
        ("DELETE", "/b/wh/db/t1/x", Effect.DELETE),
        ("DELETE", "/b/wh/db/t1/x?uploadId=u", Effect.DELETE),
        ("GET", "/b/?list-type=2&prefix=wh%2Fdb%2Ft1%2F&delimiter=%2F&max-keys=5", Effect.LIST),
        ("GET", "/b?list-type=2&prefix=wh/db/t1/data", Effect.LIST),
        ("GET", "http://b.store:9000/wh/db/t1/x", Effect.READ),
    ],
)
def test_what_readers_and_writers_send_is_signed(method: str, target: str, effect: Effect) -> None:
    parsed = parse_request(request(method, target), ENDPOINT)
    assert parsed.effect is effect
    assert is_signed(request(method, target))


@pytest.mark.parametrize(
    ("method", "target"),
    [
        # Siblings, and what is around the table.
        ("GET", "/b/wh/db/t10/x"),
        ("GET", "/b/wh/db/t1"),
        ("GET", "/b/wh/db/t1%2500/../../secret"),
        ("GET", "/b/wh/db/x"),
        ("GET", "/other/wh/db/t1/x"),
        ("GET", "//b/wh/db/t1/x"),
        ("GET", "/b//wh/db/t1/x"),
        # Ways out of the folder.
        ("GET", "/b/wh/db/t1/../t2/x"),
        ("GET", "/b/wh/db/t1/%2e%2e/t2/x"),
        ("GET", "/b/wh/db/t1/%2E%2e%2Ft2/x"),
        ("GET", "/b/wh/db/t1/%252e%252e/t2/x"),
        ("GET", "/b/wh/db/t1/..%5Ct2"),
        ("GET", "/b/wh/db/t1/./x"),
        ("GET", "/b/wh/db/t1/%00"),
        ("GET", "/b/wh/db/t1/%ff"),
        ("GET", "/b/wh/db/t1/a b"),
        ("GET", "/b/wh/db/t1\\x"),
        # Other requests than those of tables.
        ("GET", "/b/wh/db/t1/x?acl"),
        ("PUT", "/b/wh/db/t1/x?acl"),
        ("PUT", "/b/wh/db/t1/x?tagging"),
        ("PUT", "/b/wh/db/t1/x?uploadId=u"),
        ("PUT", "/b"),
        ("PUT", "/b/?policy"),
        ("DELETE", "/b"),
        ("DELETE", "/b/?lifecycle"),
        ("DELETE", "/b/wh/db/t1/x?versionId=1"),
        ("POST", "/b/wh/db/t1/x"),
        ("POST", "/b/wh/db/t1/x?select&select-type=2"),
        ("POST", "/b/wh/db/t1/x?restore"),
        ("POST", "/b"),
        ("HEAD", "/b"),
        ("GET", "/"),
        ("PATCH", "/b/wh/db/t1/x"),
        # Listings of more than the folder.
        ("GET", "/b"),
        ("GET", "/b?list-type=2"),
        ("GET", "/b?list-type=2&prefix="),
        ("GET", "/b?list-type=2&prefix=wh/db/t1"),
        ("GET", "/b?list-type=2&prefix=wh/db/t10/"),
        ("GET", "/b?list-type=2&prefix=wh/db/t1/../t2/"),
        ("GET", "/b?list-type=2&prefix=wh/db/t1/&prefix=wh/"),
        ("GET", "/b?list-type=3&prefix=wh/db/t1/"),
        ("GET", "/b?versions&prefix=wh/db/t1/"),
        ("GET", "/b?uploads&prefix=wh/db/t1/"),
        ("GET", "/b/wh/db/t1/x?prefix=a&list-type=2"),
        # Other stores.
        ("GET", "http://evil:9000/b/wh/db/t1/x"),
        ("GET", "https://store:9000/b/wh/db/t1/x"),
        ("GET", "http://store:9001/b/wh/db/t1/x"),
        ("GET", "http://store:9000@evil/b/wh/db/t1/x"),
        ("GET", "http://b@store:9000/b/wh/db/t1/x"),
        ("GET", "http://b.store:9000.evil/wh/db/t1/x"),
        ("GET", "http://store:9000/b/wh/db/t1/x#y"),
        ("GET", "https://b.s3.amazonaws.com/wh/db/t1/x"),
    ],
)
def test_everything_else_is_refused(method: str, target: str) -> None:
    assert not is_signed(request(method, target))


@pytest.mark.parametrize(
    ("uri", "signed"),
    [
        ("https://b.s3.eu-west-1.amazonaws.com/wh/db/t1/x", True),
        ("https://b.s3.amazonaws.com/wh/db/t1/x", True),
        ("https://s3.eu-west-1.amazonaws.com/b/wh/db/t1/x", True),
        ("https://b.s3.cn-north-1.amazonaws.com.cn/wh/db/t1/x", True),
        ("http://b.s3.eu-west-1.amazonaws.com/wh/db/t1/x", False),
        ("https://b.s3.eu-west-1.amazonaws.com.evil.example/wh/db/t1/x", False),
        ("https://evil.example/b.s3.amazonaws.com/wh/db/t1/x", False),
        ("https://c.s3.eu-west-1.amazonaws.com/b/wh/db/t1/x", False),
        ("https://b.s3-accesspoint.eu-west-1.amazonaws.com/wh/db/t1/x", False),
    ],
)
def test_addresses_of_amazon(uri: str, signed: bool) -> None:
    assert is_signed(request("GET", uri), None) == signed


@pytest.mark.parametrize(
    ("header", "signed"),
    [
        ("x-amz-copy-source", False),
        ("X-Amz-Copy-Source", False),
        ("x-amz-acl", False),
        ("x-amz-grant-read", False),
        ("x-amz-website-redirect-location", False),
        ("x-amz-object-lock-mode", False),
        ("x-http-method-override", False),
        ("x-amz-server-side-encryption", True),
        ("x-amz-checksum-crc32", True),
        ("Content-MD5", True),
        ("amz-sdk-invocation-id", True),
        ("Range", True),
    ],
)
def test_headers(header: str, signed: bool) -> None:
    assert is_signed(request("PUT", "/b/wh/db/t1/x", {header: ["v"]})) == signed
    assert not is_signed(request("PUT", "/b/wh/db/t1/x", {header: ["v\r\nx-amz-acl: public-read"]})) or header in (
        "amz-sdk-invocation-id",
        "Range",
    )


def test_only_what_must_be_signed_is() -> None:
    headers = {
        "Range": ["bytes=0-1"],
        "x-amz-checksum-crc32": ["c"],
        "x-amz-date": ["d"],
        "Host": ["h"],
        "If-Match": ["t"],
    }
    assert parse_request(request("PUT", "/b/wh/db/t1/x", headers), ENDPOINT).headers == {"x-amz-checksum-crc32": "c"}
    plain = parse_request(request("PUT", "/b/wh/db/t1/x", {"x-amz-content-sha256": ["required"]}), ENDPOINT)
    assert plain.payload == "UNSIGNED-PAYLOAD"
    stated = {"X-Amz-Content-Sha256": ["STREAMING-UNSIGNED-PAYLOAD-TRAILER"]}
    assert parse_request(request("PUT", "/b/wh/db/t1/x", stated), ENDPOINT).payload == stated["X-Amz-Content-Sha256"][0]


def deletion(*objects: str) -> str:
    return f"<Delete>{''.join(f'<Object>{one}</Object>' for one in objects)}</Delete>"


@pytest.mark.parametrize(
    ("body", "signed"),
    [
        (deletion("<Key>wh/db/t1/a</Key>", "<Key>wh/db/t1/b&amp;c</Key>"), True),
        (f'<?xml version="1.0" encoding="UTF-8"?>{deletion("<Key>wh/db/t1/a</Key>")}', True),
        (deletion("<Key>wh/db/t1/a</Key>", "<Key>wh/db/t10/b</Key>"), False),
        (deletion("<Key>wh/db/t1/../t2/b</Key>"), False),
        (deletion("<Key>wh/db/t1/a</Key><Key>wh/db/t2/a</Key>"), False),
        (deletion("<Key>wh/db/t1/a</Key><VersionId>1</VersionId>"), False),
        (deletion("<Key>wh/db/t1/<b/>x</Key>"), False),
        (deletion("<Key><![CDATA[wh/db/t1/a]]></Key>"), False),
        (deletion("<Key>wh/db/t1/<!-- -->a</Key>"), False),
        (f'<!DOCTYPE d [<!ENTITY k "wh/db/t2">]>{deletion("<Key>&k;</Key>")}', False),
        (f'<?xml version="1.0" encoding="UTF-16"?>{deletion("<Key>wh/db/t1/a</Key>")}', False),
        (f"<?xml version='1.0' encoding='cp1252'?>{deletion('<Key>wh/db/t1/a</Key>')}", False),
        (f"<Delete><Other>{deletion('<Key>wh/db/t2/a</Key>')}</Other></Delete>", False),
        ("<Delete/>", False),
        ("", False),
        (None, False),
        ("not XML", False),
    ],
)
def test_a_deletion_is_signed_with_its_body_if_every_key_is_the_tables_own(body: str | None, signed: bool) -> None:
    asked = request("POST", "/b/?delete", body=body)
    assert is_signed(asked) == signed
    if signed and body is not None:
        # No other body can be sent with this signature.
        assert parse_request(asked, ENDPOINT).payload == hashlib.sha256(body.encode()).hexdigest()
        claimed = replace(asked, headers={"x-amz-content-sha256": ["UNSIGNED-PAYLOAD"]})
        assert parse_request(claimed, ENDPOINT).payload == parse_request(asked, ENDPOINT).payload


PIECES = st.sampled_from(
    [
        "wh",
        "db",
        "t1",
        "t10",
        "t2",
        "..",
        ".",
        "",
        "%2e%2e",
        "%2E.",
        "%252e%252e",
        "%2f",
        "%2F..",
        "\\..",
        "%5c..",
        "a%20b",
        "%00",
        "?x",
        "..;",
        "b",
        "%c0%ae",
        "%e2%80%ae",
        "x-id",
        "&",
        "#",
    ]
)


@settings(max_examples=max(300, settings().max_examples), deadline=None)
@given(
    start=st.sampled_from(
        ["/b/wh/db/t1/", "/b/wh/db/t1", "/b/", "//b/", "/b/wh/db/t1/%2e%2e/", "http://b.store:9000/wh/db/t1/"]
    ),
    pieces=st.lists(PIECES, max_size=6),
    method=st.sampled_from(["GET", "PUT", "DELETE", "HEAD"]),
)
def test_no_way_of_writing_an_address_leads_out_of_the_folder(start: str, pieces: list[str], method: str) -> None:
    asked = request(method, start + "/".join(pieces))
    if not is_signed(asked):
        return
    path = urlsplit(parse_request(asked, ENDPOINT).uri).path
    home = "/b/wh/db/t1/" if not start.startswith("http") else "/wh/db/t1/"
    # As the store reads it, and as stores and proxies might that decode once more, resolve dots, or turn slashes.
    for text in (path, unquote(path), unquote(unquote(path)), unquote(unquote(path)).replace("\\", "/")):
        assert text.startswith(home)
        assert f"{posixpath.normpath(text)}/".startswith(home)


def test_what_is_signed_is_what_was_checked() -> None:
    parsed = parse_request(request("GET", "/b/wh/db/t1/%61%20b%2bc/%E4%B8%AD?x-id=GetObject&partNumber=1"), ENDPOINT)
    assert parsed.uri == f"{ENDPOINT}/b/wh/db/t1/a%20b%2Bc/%E4%B8%AD?partNumber=1&x-id=GetObject"
    with pytest.raises(InvalidInputError, match="twice"):
        parse_request(request("GET", "/b/wh/db/t1/x?partNumber=1&partNumber=2"), ENDPOINT)
    with pytest.raises(ForbiddenError, match="not among the requests"):
        parse_request(request("PUT", "/b/wh/db/t1/x?acl"), ENDPOINT)
