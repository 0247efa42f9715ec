"""The endpoints and bodies of what operators do with a server, beside the REST protocol: dropped and protected tables."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from icefloe.errors import InvalidInputError
from icefloe.metadata.wire_codec import WireStruct, read_wire
from icefloe.rest.namespaces_codec import IdentifierWire, identifier_from_wire, identifier_to_json
from icefloe.rest.paths_codec import Endpoint, Levels
from icefloe.server.holds import DroppedTable

_ROOT = "/management/v1/{prefix}"
_NAMESPACE = f"{_ROOT}/namespaces/{{namespace}}"
_PROTECTED = {
    "table": f"{_NAMESPACE}/tables/{{table}}/protection",
    "view": f"{_NAMESPACE}/views/{{view}}/protection",
    None: f"{_NAMESPACE}/protection",
}

LIST_DROPPED = Endpoint("GET", f"{_ROOT}/dropped")
UNDROP = Endpoint("POST", f"{_ROOT}/undrop")


def protection_endpoints(noun: str | None) -> tuple[Endpoint, Endpoint, Endpoint]:
    """How protection of a table, a view or a namespace is asked for, put on and taken off."""
    return Endpoint("GET", _PROTECTED[noun]), Endpoint("POST", _PROTECTED[noun]), Endpoint("DELETE", _PROTECTED[noun])


class _UndropWire(WireStruct):
    id: str
    name: IdentifierWire | None = None


def decode_undrop(body: bytes) -> tuple[str, Levels | None]:
    """Which dropped table gets a name again, and which one; None for the one that it had."""
    wire = read_wire(body, _UndropWire, "the undrop")
    name = None if wire.name is None else identifier_from_wire(wire.name)
    if name is not None and len(name) < 2:
        raise InvalidInputError("the new name has no namespace")
    return wire.id, name


def encode_dropped(tables: Sequence[DroppedTable], hold_ms: int) -> bytes:
    """Dropped tables, with the time until which they can be had back."""
    return msgspec.json.encode(
        {
            "dropped": [
                {
                    "id": table.number,
                    "identifier": identifier_to_json(table.identifier),
                    "metadata-location": table.location,
                    "dropped-by": table.principal,
                    "dropped-at": _time(table.dropped_at_ms),
                    "until": _time(table.dropped_at_ms + hold_ms),
                    "purge": table.is_purged,
                }
                for table in tables
            ]
        }
    )


def encode_protection(is_protected: bool) -> bytes:
    """Whether something is protected."""
    return msgspec.json.encode({"protected": is_protected})


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
