"""What happened in a warehouse, as events of CloudEvents 1.0, and how their deliveries are signed."""

import hashlib
import hmac
import uuid
from datetime import UTC, datetime

import msgspec

from icefloe.metadata.wire_codec import present
from icefloe.rest import paths_codec as paths
from icefloe.rest.namespaces_codec import identifier_to_json
from icefloe.rest.tables_codec import decode_rename, decode_transaction
from icefloe.schema import JSON
from icefloe.server.calls import Call

MEDIA_TYPE = "application/cloudevents+json"
SIGNATURE, TIMESTAMP = "X-Icefloe-Signature", "X-Icefloe-Timestamp"

_TYPES = {
    paths.CREATE_NAMESPACE: "namespace.created",
    paths.UPDATE_NAMESPACE: "namespace.updated",
    paths.DROP_NAMESPACE: "namespace.dropped",
    paths.CREATE_TABLE: "table.created",
    paths.UPDATE_TABLE: "table.committed",
    paths.DROP_TABLE: "table.dropped",
    paths.REGISTER_TABLE: "table.registered",
    paths.UNREGISTER_TABLE: "table.unregistered",
    paths.RENAME_TABLE: "table.renamed",
    paths.COMMIT_TRANSACTION: "transaction.committed",
    paths.CREATE_VIEW: "view.created",
    paths.UPDATE_VIEW: "view.committed",
    paths.DROP_VIEW: "view.dropped",
    paths.REGISTER_VIEW: "view.registered",
    paths.RENAME_VIEW: "view.renamed",
}


def event_of(call: Call, location: str | None) -> tuple[str, bytes] | None:
    """The id and body of the event of a change that is being made; None of changes that are no events."""
    event_type = _TYPES.get(call.operation.endpoint)
    if event_type is None:
        return None
    number = str(uuid.uuid4())
    event = {
        "specversion": "1.0",
        "id": number,
        "source": f"/icefloe/warehouses/{call.warehouse.prefix}",
        "type": f"icefloe.{event_type}",
        **present("subject", ".".join((*call.namespace, *filter(None, (call.name,)))) or None),
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": {
            "warehouse": call.warehouse.name,
            "principal": call.principal.name,
            **_names(call),
            **present("metadata-location", location or call.replay_location),
        },
    }
    return number, msgspec.json.encode(event)


def _names(call: Call) -> JSON:
    match call.operation.endpoint:
        case paths.RENAME_TABLE | paths.RENAME_VIEW:
            rename = decode_rename(call.body)
            return {"source": identifier_to_json(rename.source), "destination": identifier_to_json(rename.destination)}
        case paths.COMMIT_TRANSACTION:
            commits = decode_transaction(call.body)
            return {"tables": [identifier_to_json(each.identifier) for each in commits if each.identifier]}
        case _:
            return {"namespace": list(call.namespace), **present("name", call.name or None)}


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What proves that a delivery is from this server, and from that time."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"
