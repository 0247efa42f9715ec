"""The endpoints and bodies by which operators protect tables, views and namespaces from drops, beside the REST protocol."""

import msgspec

from icefloe.rest.paths_codec import Endpoint

_ROOT = "/management/v1/{prefix}"
_NAMESPACE = f"{_ROOT}/namespaces/{{namespace}}"
_PROTECTED = {
    "table": f"{_NAMESPACE}/tables/{{table}}/protection",
    "view": f"{_NAMESPACE}/views/{{view}}/protection",
    None: f"{_NAMESPACE}/protection",
}


def protection_endpoints(noun: str | None) -> tuple[Endpoint, Endpoint, Endpoint]:
    """How protection of a table, a view or a namespace is asked for, put on and taken off."""
    return Endpoint("GET", _PROTECTED[noun]), Endpoint("POST", _PROTECTED[noun]), Endpoint("DELETE", _PROTECTED[noun])


def encode_protection(is_protected: bool) -> bytes:
    """Whether something is protected."""
    return msgspec.json.encode({"protected": is_protected})
