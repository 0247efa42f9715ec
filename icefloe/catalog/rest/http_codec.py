"""The names and numbers of HTTP that a REST client goes by: headers, which statuses are tried again, and when."""

import datetime as dt
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from icefloe.rest.headers_codec import RETRY_AFTER

ACCEPT = "Accept"
CLIENT_VERSION = "X-Client-Version"
CONTENT_TYPE = "Content-Type"
LOCATION = "Location"
USER_AGENT = "User-Agent"
JSON = "application/json"

PAGE_TOKEN, PAGE_SIZE = "pageToken", "pageSize"
PARENT = "parent"
PLAN_ID = "planId"
PURGE = "purgeRequested"
SNAPSHOTS = "snapshots"
TRUE = "true"

_SUCCESSES = frozenset((200, 202, 204, 304))
_FINAL = frozenset((400, 404, 409, 422))
_TOO_MANY_REQUESTS = 429
_UNAVAILABLE = 503

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing."""
IDEMPOTENT_METHODS = SAFE_METHODS | {"DELETE", "PUT"}
"""Methods whose requests may be sent twice."""

_TRANSIENT = frozenset((408, 500, 502, 503, 504))
_REDIRECTS_OF_ALL = frozenset((307, 308))
_REDIRECTS = frozenset((301, 302, 303)) | _REDIRECTS_OF_ALL


def is_success(status: int) -> bool:
    """Whether the server did what was asked."""
    return status in _SUCCESSES


def is_not_modified(status: int) -> bool:
    """Whether what the client has is what it asks for."""
    return status == 304


def asks_for_credentials(status: int) -> bool:
    """Whether nothing was done, for want of valid credentials."""
    return status in (401, 419)


def is_conflict(status: int) -> bool:
    """Whether another state stands in the way."""
    return status == 409


def is_final(status: int) -> bool:
    """Whether a server that remembers idempotency keys gives this answer again: it then is the one to the first sending."""
    return status in _FINAL


def is_tried_again(status: int, headers: Mapping[str, str], idempotent: bool) -> bool:
    """Whether a request is sent again after this answer."""
    if status == _TOO_MANY_REQUESTS:
        return True
    return status in _TRANSIENT and (idempotent or (status == _UNAVAILABLE and RETRY_AFTER.lower() in headers))


def leaves_outcome_open(status: int) -> bool:
    """Whether a request may have taken effect although this was the answer."""
    return status in _TRANSIENT or status >= 500


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the answer is to be asked for elsewhere."""
    return status in _REDIRECTS and LOCATION.lower() in headers


def redirect_keeps_method(status: int) -> bool:
    """Whether the request that is sent elsewhere is the same one, body included."""
    return status in _REDIRECTS_OF_ALL


def seconds_to_wait(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """How long the server asks to wait; None if it does not, or in no way that has a meaning."""
    text = headers.get(RETRY_AFTER.lower(), "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max((parsedate_to_datetime(text) - now).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
