"""Checks signatures of SigV4 as a server does, by the steps that Amazon documents and from what arrived, without botocore."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

_FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})"
)


class SignatureError(Exception):
    """The signature is not that of the request."""


def check_signature(
    method: str, raw_path: bytes, query: bytes, headers: Mapping[str, str], body: bytes, secrets: Mapping[str, str]
) -> tuple[str, str]:
    """The region and service that a request is signed for; headers by names in lower case."""
    match = _FORM.fullmatch(headers["authorization"])
    if match is None:
        raise SignatureError(f"no signature: {headers['authorization']}")
    key, day, region, service, names, signature = match.groups()
    if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        raise SignatureError("the hash of the body is not its hash")
    signed = names.split(";")
    for needed in ("host", "x-amz-date", "x-amz-content-sha256"):
        if needed not in signed:
            raise SignatureError(f"{needed} is not signed")
    canonical = "\n".join(
        (
            method,
            quote(raw_path.decode("ascii"), safe="/-_.~"),
            _canonical_query(query),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            names,
            headers["x-amz-content-sha256"],
        )
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()))
    derived = f"AWS4{secrets[key]}".encode()
    for part in (day, region, service, "aws4_request", text):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    if derived.hex() != signature:
        raise SignatureError(f"another signature is expected for\n{canonical}")
    return region, service


def _canonical_query(query: bytes) -> str:
    pairs = [pair.partition(b"=") for pair in query.split(b"&") if pair]
    return "&".join(
        "=".join(pair)
        for pair in sorted(
            (_encoded(unquote_to_bytes(name)), _encoded(unquote_to_bytes(value))) for name, _, value in pairs
        )
    )


def _encoded(text: bytes) -> str:
    return quote(text, safe="-_.~")
