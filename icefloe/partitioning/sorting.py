"""How rows are ordered within files: sort fields, orders, and the rules for them (spec: Sorting)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from icefloe.errors import InvalidSortOrderError
from icefloe.partitioning import transforms as tr
from icefloe.partitioning.terms import find_source, parse_term, rebind_sources, source_problem, written
from icefloe.schema import Schema

UNSORTED_ORDER_ID = 0
FIRST_ORDER_ID = 1


class SortDirection(Enum):
    """Smallest or largest first."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.value


class NullOrder(Enum):
    """Where nulls go, whatever the direction."""

    NULLS_FIRST = "nulls first"
    NULLS_LAST = "nulls last"

    def __str__(self) -> str:
        return self.value


def default_null_order(direction: SortDirection) -> NullOrder:
    """Nulls sort as the smallest values by default."""
    return NullOrder.NULLS_FIRST if direction is SortDirection.ASC else NullOrder.NULLS_LAST


@dataclass(frozen=True, slots=True, init=False)
class SortField:
    """One key of a sort order: a transform of a source column; of several columns if the transform is unknown."""

    source_ids: tuple[int, ...]
    transform: tr.Transform
    direction: SortDirection
    null_order: NullOrder

    def __init__(
        self,
        source_id: int | Iterable[int],
        transform: tr.Transform | None = None,
        direction: SortDirection = SortDirection.ASC,
        null_order: NullOrder | None = None,
    ) -> None:
        source_ids = (source_id,) if isinstance(source_id, int) else tuple(source_id)
        if not source_ids:
            raise InvalidSortOrderError("a sort field has no source column")
        object.__setattr__(self, "source_ids", source_ids)
        object.__setattr__(self, "transform", transform if transform is not None else tr.IdentityTransform())
        object.__setattr__(self, "direction", direction)
        object.__setattr__(self, "null_order", null_order or default_null_order(direction))

    @property
    def source_id(self) -> int:
        """The source column, the first one if there are several."""
        return self.source_ids[0]

    def __str__(self) -> str:
        return f"{self.transform}({', '.join(map(str, self.source_ids))}) {self.direction} {self.null_order}"


@dataclass(frozen=True, slots=True, init=False)
class SortOrder:
    """The keys of an order, the most significant first; id 0 is the order without keys, and only that."""

    fields: tuple[SortField, ...]
    order_id: int

    def __init__(self, *fields: SortField, order_id: int | None = None) -> None:
        if order_id is None:
            order_id = FIRST_ORDER_ID if fields else UNSORTED_ORDER_ID
        if fields and order_id == UNSORTED_ORDER_ID:
            raise InvalidSortOrderError(f"order id {UNSORTED_ORDER_ID} is reserved for unsorted; this one has fields")
        if not fields and order_id != UNSORTED_ORDER_ID:
            raise InvalidSortOrderError(f"order {order_id} has no fields; only order {UNSORTED_ORDER_ID} is unsorted")
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "order_id", order_id)

    def __iter__(self) -> Iterator[SortField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return "\n".join(["[", *(f"  {field}" for field in self.fields), "]"]) if self.fields else "[]"

    @property
    def is_unsorted(self) -> bool:
        """Whether there are no keys."""
        return not self.fields

    def same_order(self, other: "SortOrder") -> bool:
        """Whether the orders are equal except for their ids."""
        return self.fields == other.fields

    def with_id(self, order_id: int) -> "SortOrder":
        """The same keys under another id; unsorted keeps id 0."""
        return SortOrder(*self.fields, order_id=order_id) if self.fields else self


UNSORTED = SortOrder()
"""The order of a table that is not sorted."""


def check_order(order: SortOrder, schema: Schema) -> None:
    """Fail unless rows of the schema can be sorted by the order."""
    for field in order.fields:
        if problem := source_problem(field.transform, field.source_ids, schema):
            raise InvalidSortOrderError(f"sort field {field}: {problem}")


def id_for_order(order: SortOrder, orders: Iterable[SortOrder]) -> int:
    """The id of the same order among a table's orders, or the next free one; 0 if it is unsorted."""
    if order.is_unsorted:
        return UNSORTED_ORDER_ID
    next_id = FIRST_ORDER_ID
    for other in orders:
        if order.same_order(other):
            return other.order_id
        next_id = max(next_id, other.order_id + 1)
    return next_id


_SORT_TEXT = re.compile(r"(.*?\S)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE | re.DOTALL)


def parse_sort_order(
    terms: str | Iterable[str], schema: Schema, *, order_id: int | None = None, case_sensitive: bool = True
) -> SortOrder:
    """An order from texts: `["ts desc nulls last", "bucket(16, id)"]`; ascending with nulls first by default."""
    texts = [terms] if isinstance(terms, str) else list(terms)
    order = SortOrder(*(_parse_sort_field(text, schema, case_sensitive) for text in texts), order_id=order_id)
    check_order(order, schema)
    return order


def rebind_order(order: SortOrder, old: Schema, new: Schema) -> SortOrder:
    """The order for a schema with the same column names but other ids."""
    fields = []
    for field in order.fields:
        source_ids = rebind_sources(field.source_ids, old, new)
        fields.append(SortField(source_ids, field.transform, field.direction, field.null_order))
    rebound = SortOrder(*fields, order_id=order.order_id)
    check_order(rebound, new)
    return rebound


def _parse_sort_field(text: str, schema: Schema, case_sensitive: bool) -> SortField:
    match = _SORT_TEXT.fullmatch(written(text))
    if match is None:
        raise InvalidSortOrderError(f"{text!r} is not a sort key such as 'ts desc nulls last'")
    term = parse_term(match[1])
    direction = SortDirection[match[2].upper()] if match[2] else SortDirection.ASC
    null_order = NullOrder[f"NULLS_{match[3].upper()}"] if match[3] else None
    return SortField(find_source(term, schema, case_sensitive).field_id, term.transform, direction, null_order)
