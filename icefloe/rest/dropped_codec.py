"""The endpoints and bodies by which dropped tables are listed and had back: icefloe's own, beside the REST protocol."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from icefloe.errors import InvalidInputError
from icefloe.metadata.wire_codec import WireStruct, read_wire
from icefloe.rest.namespaces_codec import IdentifierWire, identifier_from_wire, identifier_to_json
from icefloe.rest.paths_codec import Endpoint, Levels

LIST_DROPPED = Endpoint("GET", "/management/v1/{prefix}/dropped")
UNDROP = Endpoint("POST", "/management/v1/{prefix}/undrop")


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that was dropped, and can be had back."""

    id: str
    identifier: Levels
    metadata_location: str
    dropped_by: str
    dropped_at: datetime
    until: datetime
    """When it goes for good."""
    purge: bool
    """Whether its files go with it."""


class _DroppedWire(WireStruct):
    id: str
    identifier: IdentifierWire
    metadata_location: str
    dropped_at: datetime
    until: datetime
    dropped_by: str = ""
    purge: bool = False


class _ListWire(WireStruct):
    dropped: list[_DroppedWire]


class _UndropWire(WireStruct):
    id: str
    name: IdentifierWire | None = None


def encode_dropped(tables: Sequence[DroppedTable]) -> bytes:
    """The answer that lists dropped tables."""
    return msgspec.json.encode(
        {
            "dropped": [
                {
                    "id": table.id,
                    "identifier": identifier_to_json(table.identifier),
                    "metadata-location": table.metadata_location,
                    "dropped-by": table.dropped_by,
                    "dropped-at": _time(table.dropped_at),
                    "until": _time(table.until),
                    "purge": table.purge,
                }
                for table in tables
            ]
        }
    )


def decode_dropped(body: bytes) -> list[DroppedTable]:
    """What such an answer says."""
    return [
        DroppedTable(
            wire.id,
            identifier_from_wire(wire.identifier),
            wire.metadata_location,
            wire.dropped_by,
            wire.dropped_at,
            wire.until,
            wire.purge,
        )
        for wire in read_wire(body, _ListWire, "the list of dropped tables").dropped
    ]


def encode_undrop(number: str, name: Levels | None) -> bytes:
    """The body of a request to have a dropped table back, under another name if one is given."""
    named = {} if name is None else {"name": identifier_to_json(name)}
    return msgspec.json.encode({"id": number, **named})


def decode_undrop(body: bytes) -> tuple[str, Levels | None]:
    """Which dropped table gets a name again, and which one; None for the one that it had."""
    wire = read_wire(body, _UndropWire, "the undrop")
    name = None if wire.name is None else identifier_from_wire(wire.name)
    if name is not None and len(name) < 2:
        raise InvalidInputError("the new name has no namespace")
    return wire.id, name


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
