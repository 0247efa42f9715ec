"""The headers of the REST protocol, and entity tags as they are written in them."""

AUTHORIZATION = "Authorization"
ACCESS_DELEGATION = "X-Iceberg-Access-Delegation"
IDEMPOTENCY_KEY = "Idempotency-Key"
IF_NONE_MATCH = "If-None-Match"
ETAG = "ETag"
RETRY_AFTER = "Retry-After"
CACHE_CONTROL = "Cache-Control"
NOT_STORED = "no-store"


def quoted_tag(tag: str) -> str:
    """An entity tag as a header has it (RFC 9110)."""
    return f'"{tag}"'


def matches_tag(header: str, tag: str) -> bool:
    """Whether a list of entity tags, as in `If-None-Match`, has this one; Java up to 1.11 leaves the quotes out."""
    return any(each.strip().removeprefix("W/").strip('"') in (tag, "*") for each in header.split(","))
