"""The paths of the REST protocol: endpoints as servers announce them, and names as parts of a path or query, both ways.

The levels of a namespace are percent-encoded one by one and joined with a separator in its encoded form. 0x1F is the
separator unless a server announces another one, and is understood besides that one, as in the Java library.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from icefloe.errors import InvalidInputError

Levels = tuple[str, ...]
"""The levels of a namespace, outermost first."""

SEPARATOR = "%1F"
"""What joins the levels of a namespace in a path, in its encoded form, unless a server announces another one."""

PARENT, PAGE_TOKEN, PAGE_SIZE = "parent", "pageToken", "pageSize"
SNAPSHOTS, PURGE_REQUESTED, REFERENCED_BY, PLAN_ID = "snapshots", "purgeRequested", "referenced-by", "planId"
"""The parameters of queries."""

_UNIT = "\x1f"
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
_PLACEHOLDER = re.compile(r"\{([a-z-]+)\}")
_PREFIX, _NAMESPACE = "prefix", "namespace"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path with placeholders, such as `GET /v1/{prefix}/namespaces`."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def address(self, prefix: str = "", namespace: Levels = (), separator: str = SEPARATOR, **names: str) -> str:
        """The path of a request, relative to the URI of the catalog; the prefix is taken as it is, and may be empty.

        Names are given by their placeholders, with underscores for dashes: `table=`, `view=`, `plan_id=`.
        """
        path = self.path.removeprefix("/")
        if not prefix:
            path = path.replace(f"{{{_PREFIX}}}/", "")
        texts = {key.replace("_", "-"): encode_name(name) for key, name in names.items()}
        texts |= {_PREFIX: prefix.strip("/"), _NAMESPACE: encode_namespace(namespace, separator)}
        return _PLACEHOLDER.sub(lambda match: texts[match[1]], path)


def parse_endpoint(text: str) -> Endpoint:
    """The endpoint of a text like `GET /v1/{prefix}/namespaces`; anything else is an error."""
    method, space, path = text.partition(" ")
    if not space or method.upper() not in _METHODS or not path.startswith("/") or " " in path:
        raise InvalidInputError(
            f"{text!r:.200} is not an endpoint; a method and a path with one space are, like 'GET /v1/{{prefix}}/namespaces'"
        )
    return Endpoint(method.upper(), path)


def encode_name(name: str) -> str:
    """A name as one segment of a path (RFC 3986: a space is `%20`, a plus stands for itself)."""
    encoded = quote(name, safe="+")
    # Clients and proxies would take such a segment for this folder, or for the one above it.
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


def decode_name(segment: str) -> str:
    """The name that a segment of a path stands for; a plus is a plus."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInputError(f"the path has the part {segment!r:.200}, which is not percent-encoded UTF-8") from None


def encode_namespace(levels: Levels, separator: str = SEPARATOR) -> str:
    """A namespace as one segment of a path."""
    return separator.join(encode_name(level) for level in levels)


def decode_namespace(segment: str, separator: str = SEPARATOR) -> Levels:
    """The levels that a segment of a path stands for."""
    for known in (SEPARATOR, separator):
        if known.lower() in segment.lower():
            return tuple(decode_name(level) for level in re.split(re.escape(known), segment, flags=re.IGNORECASE))
    return (decode_name(segment),)


def join_levels(levels: Levels, separator: str = SEPARATOR) -> str:
    """A namespace as the value of a query parameter, which is encoded as a whole later on."""
    return unquote(separator).join(levels)


def split_levels(text: str, separator: str = SEPARATOR) -> Levels:
    """The levels of a query parameter that was decoded; none of an empty text."""
    if not text:
        return ()
    return tuple(text.split(_UNIT if _UNIT in text else unquote(separator)))


def encode_views(views: Iterable[Levels], separator: str = SEPARATOR) -> str:
    """A chain of views, outermost first, as the parameter `referenced-by`; it is sent as it is."""
    return ",".join(encode_namespace(view, separator) for view in views)


def decode_views(text: str, separator: str = SEPARATOR) -> list[Levels]:
    """The chain of views of the parameter `referenced-by`, as it came: not decoded."""
    return [decode_namespace(view, separator) for view in text.split(",")] if text else []


def _endpoint(method: str, rest: str) -> Endpoint:
    return Endpoint(method, f"/v1/{{{_PREFIX}}}/{rest}")


_ONE_NAMESPACE = "namespaces/{namespace}"
_TABLES, _VIEWS = f"{_ONE_NAMESPACE}/tables", f"{_ONE_NAMESPACE}/views"
_TABLE, _VIEW = f"{_TABLES}/{{table}}", f"{_VIEWS}/{{view}}"

CONFIG = Endpoint("GET", "/v1/config")
OAUTH_TOKENS = Endpoint("POST", "/v1/oauth/tokens")
LIST_NAMESPACES = _endpoint("GET", "namespaces")
CREATE_NAMESPACE = _endpoint("POST", "namespaces")
LOAD_NAMESPACE = _endpoint("GET", _ONE_NAMESPACE)
NAMESPACE_EXISTS = _endpoint("HEAD", _ONE_NAMESPACE)
DROP_NAMESPACE = _endpoint("DELETE", _ONE_NAMESPACE)
UPDATE_NAMESPACE = _endpoint("POST", f"{_ONE_NAMESPACE}/properties")
LIST_TABLES = _endpoint("GET", _TABLES)
CREATE_TABLE = _endpoint("POST", _TABLES)
LOAD_TABLE = _endpoint("GET", _TABLE)
TABLE_EXISTS = _endpoint("HEAD", _TABLE)
UPDATE_TABLE = _endpoint("POST", _TABLE)
DROP_TABLE = _endpoint("DELETE", _TABLE)
REGISTER_TABLE = _endpoint("POST", f"{_ONE_NAMESPACE}/register")
UNREGISTER_TABLE = _endpoint("POST", f"{_TABLE}/unregister")
TABLE_CREDENTIALS = _endpoint("GET", f"{_TABLE}/credentials")
SIGN_REQUEST = _endpoint("POST", f"{_TABLE}/sign")
REPORT_METRICS = _endpoint("POST", f"{_TABLE}/metrics")
RENAME_TABLE = _endpoint("POST", "tables/rename")
COMMIT_TRANSACTION = _endpoint("POST", "transactions/commit")
PLAN_SCAN = _endpoint("POST", f"{_TABLE}/plan")
FETCH_PLAN = _endpoint("GET", f"{_TABLE}/plan/{{plan-id}}")
CANCEL_PLAN = _endpoint("DELETE", f"{_TABLE}/plan/{{plan-id}}")
FETCH_TASKS = _endpoint("POST", f"{_TABLE}/tasks")
LIST_VIEWS = _endpoint("GET", _VIEWS)
CREATE_VIEW = _endpoint("POST", _VIEWS)
LOAD_VIEW = _endpoint("GET", _VIEW)
VIEW_EXISTS = _endpoint("HEAD", _VIEW)
UPDATE_VIEW = _endpoint("POST", _VIEW)
DROP_VIEW = _endpoint("DELETE", _VIEW)
RENAME_VIEW = _endpoint("POST", "views/rename")
REGISTER_VIEW = _endpoint("POST", f"{_ONE_NAMESPACE}/register-view")

DEFAULT_ENDPOINTS = frozenset(
    {
        LIST_NAMESPACES,
        CREATE_NAMESPACE,
        LOAD_NAMESPACE,
        DROP_NAMESPACE,
        UPDATE_NAMESPACE,
        LIST_TABLES,
        CREATE_TABLE,
        LOAD_TABLE,
        UPDATE_TABLE,
        DROP_TABLE,
        REGISTER_TABLE,
        REPORT_METRICS,
        RENAME_TABLE,
        COMMIT_TRANSACTION,
    }
)
"""What a server has that announces nothing."""
DEFAULT_VIEW_ENDPOINTS = frozenset({LIST_VIEWS, CREATE_VIEW, LOAD_VIEW, UPDATE_VIEW, DROP_VIEW, RENAME_VIEW})
"""What it has besides when the client says `view-endpoints-supported=true`."""
VIEW_ENDPOINTS = DEFAULT_VIEW_ENDPOINTS | {VIEW_EXISTS, REGISTER_VIEW}
"""All that is about views."""


def placeholders(path: str, template: str) -> Mapping[str, str] | None:
    """What the placeholders of a template stand for in a path, still encoded; None if the path is another one."""
    given, expected = path.strip("/").split("/"), template.strip("/").split("/")
    if len(given) != len(expected):
        return None
    names: dict[str, str] = {}
    for segment, part in zip(given, expected, strict=True):
        if match := _PLACEHOLDER.fullmatch(part):
            names[match[1]] = segment
        elif segment != part:
            return None
    return names
