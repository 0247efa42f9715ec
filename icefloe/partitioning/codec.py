"""Partition specs and sort orders as JSON (spec: Appendix C, Partition Specs and Sort Orders)."""

from collections.abc import Sequence
from typing import TypeVar

from icefloe.errors import InvalidInputError, InvalidMetadataError
from icefloe.partitioning import transforms as tr
from icefloe.partitioning.sorting import NullOrder, SortDirection, SortField, SortOrder
from icefloe.partitioning.spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icefloe.schema import JSON
from icefloe.versions import Feature, require

MAX_INT = 2**31 - 1
Choice = TypeVar("Choice")

_NULL_ORDERS = {"nulls-first": NullOrder.NULLS_FIRST, "nulls-last": NullOrder.NULLS_LAST}
_NULL_ORDER_NAMES = {order: name for name, order in _NULL_ORDERS.items()}
_DIRECTIONS = {"asc": SortDirection.ASC, "desc": SortDirection.DESC}
_DIRECTION_NAMES = {direction: name for name, direction in _DIRECTIONS.items()}


def spec_to_json(spec: PartitionSpec, version: int) -> JSON:
    """The spec as table metadata stores it."""
    return {"spec-id": spec.spec_id, "fields": fields_to_json(spec, version)}


def fields_to_json(spec: PartitionSpec, version: int) -> list[JSON]:
    """The fields alone, as the old `partition-spec` entry and manifest headers hold them.

    Field ids are written for v1 too, as the other writers do: without them, readers would number the fields of each
    spec from 1000, which differs once specs evolve.
    """
    return [
        {
            "name": field.name,
            "transform": str(field.transform),
            **_sources_to_json(field.source_ids, version, f"partition field {field.name!r}"),
            "field-id": field.field_id,
        }
        for field in spec.fields
    ]


def spec_from_json(json: object, default_id: int | None = None) -> PartitionSpec:
    """Reads a spec; `default_id` is its id when the JSON has none, as in REST requests."""
    what = "partition spec"
    entries = _object(json, what)
    spec_id = default_id if default_id is not None and "spec-id" not in entries else _int(entries, "spec-id", what)
    return fields_from_json(_get(entries, "fields", what), spec_id)


def fields_from_json(json: object, spec_id: int = 0) -> PartitionSpec:
    """Reads a list of fields; if none has an id they are numbered from 1000 in order (spec: Partition Evolution)."""
    fields: list[PartitionField] = []
    entries = _list(json, "partition spec", "fields")
    numbered = [isinstance(entry, dict) and "field-id" in entry for entry in entries]
    if any(numbered) and not all(numbered):
        raise InvalidMetadataError(
            f"partition spec {spec_id}: {numbered.count(False)} of {len(entries)} fields have no `field-id`; "
            "all or none must have one"
        )
    for position, element in enumerate(entries):
        what = f"partition spec {spec_id}, field {position}"
        entry = _object(element, what)
        source_ids, transform = _source_and_transform(entry, what)
        field_id = _int(entry, "field-id", what) if any(numbered) else FIRST_PARTITION_FIELD_ID + position
        fields.append(PartitionField(source_ids, field_id, transform, _text(entry, "name", what)))
    return PartitionSpec(*fields, spec_id=spec_id)


def order_to_json(order: SortOrder, version: int) -> JSON:
    """The order as table metadata stores it."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": str(field.transform),
                **_sources_to_json(field.source_ids, version, f"sort field {field}"),
                "direction": _DIRECTION_NAMES[field.direction],
                "null-order": _NULL_ORDER_NAMES[field.null_order],
            }
            for field in order.fields
        ],
    }


def order_from_json(json: object, default_id: int | None = None) -> SortOrder:
    """Reads a sort order; `default_id` is its id when the JSON has none, as in REST requests."""
    what = "sort order"
    entries = _object(json, what)
    order_id = default_id if default_id is not None and "order-id" not in entries else _int(entries, "order-id", what)
    fields: list[SortField] = []
    for position, element in enumerate(_list(_get(entries, "fields", what), what, "fields")):
        where = f"sort order {order_id}, field {position}"
        entry = _object(element, where)
        source_ids, transform = _source_and_transform(entry, where)
        direction = _choice(entry, "direction", _DIRECTIONS, where)
        null_order = _choice(entry, "null-order", _NULL_ORDERS, where)
        fields.append(SortField(source_ids, transform, direction, null_order))
    try:
        return SortOrder(*fields, order_id=order_id)
    except InvalidInputError as error:
        raise InvalidMetadataError(f"sort order {order_id}: {error}") from None


def _sources_to_json(source_ids: Sequence[int], version: int, what: str) -> JSON:
    if len(source_ids) == 1:
        return {"source-id": source_ids[0]}
    require(version, Feature.MULTI_ARGUMENT_TRANSFORMS, what)
    return {"source-ids": list(source_ids)}


def _source_and_transform(entry: JSON, what: str) -> tuple[tuple[int, ...], tr.Transform]:
    text = _text(entry, "transform", what)
    try:
        transform = tr.parse_transform(text)
    except InvalidInputError as error:
        raise InvalidMetadataError(f"{what}: `transform`: {error}") from None
    source_ids = _source_ids(entry, what)
    # No transform of several columns is defined, so what it does is not known, whatever its name.
    return source_ids, transform if len(source_ids) == 1 else tr.UnknownTransform(text)


def _source_ids(entry: JSON, what: str) -> tuple[int, ...]:
    if "source-ids" not in entry:
        return (_int(entry, "source-id", what),)
    source_ids = tuple(_check_int(item, "source-ids", what) for item in _list(entry["source-ids"], what, "source-ids"))
    if not source_ids:
        raise InvalidMetadataError(f"{what}: `source-ids` is empty; it must hold at least one column id")
    if "source-id" in entry and _int(entry, "source-id", what) != source_ids[0]:
        raise InvalidMetadataError(
            f"{what}: `source-id` {entry['source-id']} is not the first of `source-ids` {list(source_ids)}"
        )
    return source_ids


def _object(json: object, what: str) -> JSON:
    if not isinstance(json, dict):
        raise InvalidMetadataError(f"{what} is {json!r}; it must be a JSON object")
    return json


def _list(json: object, what: str, key: str) -> list[object]:
    if not isinstance(json, list | tuple):
        raise InvalidMetadataError(f"{what}: `{key}` is {json!r}; it must be a JSON array")
    return list(json)


def _get(entries: JSON, key: str, what: str) -> object:
    if key not in entries:
        raise InvalidMetadataError(f"{what} has no `{key}`")
    return entries[key]


def _int(entries: JSON, key: str, what: str) -> int:
    return _check_int(_get(entries, key, what), key, what)


def _check_int(value: object, key: str, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -MAX_INT - 1 <= value <= MAX_INT:
        raise InvalidMetadataError(f"{what}: `{key}` is {value!r}; it must be a 32-bit whole number")
    return value


def _text(entries: JSON, key: str, what: str) -> str:
    value = _get(entries, key, what)
    if not isinstance(value, str):
        raise InvalidMetadataError(f"{what}: `{key}` is {value!r}; it must be a string")
    return value


def _choice(entries: JSON, key: str, choices: dict[str, Choice], what: str) -> Choice:
    value = _text(entries, key, what)
    if value.lower() not in choices:
        raise InvalidMetadataError(f"{what}: `{key}` is {value!r}; it must be one of {', '.join(choices)}")
    return choices[value.lower()]
