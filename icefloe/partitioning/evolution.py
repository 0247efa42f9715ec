"""Evolution of a table's partitioning and sort order: new specs and orders, and their ids.

Both builders record changes, each checked against those before it; `apply` is pure and may be called at any time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.errors import IncompatibleChangeError, InvalidTransformError, NoSuchObjectError
from icefloe.partitioning import spec as specs, transforms as tr
from icefloe.partitioning.sorting import NullOrder, SortDirection, SortField, SortOrder, check_order, id_for_order
from icefloe.partitioning.spec import PartitionField, PartitionSpec
from icefloe.partitioning.terms import Term, column_name, find_source, parse_term
from icefloe.schema import Schema
from icefloe.versions import Feature, allows


@dataclass(frozen=True, slots=True)
class EvolvedSpec:
    """The result of an evolution: the spec to use, and the table's last partition id with it."""

    spec: PartitionSpec
    last_partition_id: int


def evolved_field_name(transform: tr.Transform, column: str) -> str:
    """The default name of a partition field that is added to a table."""
    match transform:
        case tr.BucketTransform():
            return f"{column}_bucket_{transform.num_buckets}"
        case tr.TruncateTransform():
            return f"{column}_trunc_{transform.width}"
        case _:
            return specs.default_field_name(transform, column)


class PartitionSpecUpdate:
    """Changes to the current spec of a table: add, remove and rename fields, then `apply`.

    A field with the source and transform of one in any spec of the table gets that one's id, so that its values stay
    under one id. In v1 tables, which do not store ids, fields are only added at the end, and a removed field stays as
    a void one (spec: Partition Evolution).
    """

    def __init__(
        self,
        current: PartitionSpec,
        specs: Iterable[PartitionSpec],
        schema: Schema,
        version: int,
        last_partition_id: int,
        *,
        case_sensitive: bool = True,
    ) -> None:
        self._current = current
        self._specs = tuple(specs)
        self._schema = schema
        self._keeps_removed = not allows(version, Feature.DROPPING_PARTITION_FIELDS)
        self._last_id = max([last_partition_id, current.last_field_id, *(spec.last_field_id for spec in self._specs)])
        self._case_sensitive = case_sensitive
        self._added: list[PartitionField] = []
        self._removed: set[int] = set()
        self._renamed: dict[int, str] = {}

    def add_field(
        self, source: str | Term, transform: tr.Transform | str | None = None, name: str | None = None
    ) -> "PartitionSpecUpdate":
        """Add a field: `add_field("ts", DayTransform())`, `add_field("id", "bucket[16]", "shard")`, `add_field("days(ts)")`."""
        term = _term(source, transform)
        source_id = find_source(term, self._schema, self._case_sensitive).field_id
        if existing := self._find((source_id,), term.transform):
            if existing.field_id not in self._removed:
                raise IncompatibleChangeError(f"{term} is already a partition field, {existing.name!r}")
            # Removing and adding the same field is keeping it.
            self._removed.discard(existing.field_id)
            return self if name in (None, existing.name) else self.rename_field(existing.name, str(name))
        field = self._new_field(source_id, term, name)
        self._check_added(field)
        self._free_name(field.name)
        self._added.append(field)
        return self

    def add_identity(self, source: str) -> "PartitionSpecUpdate":
        """Add the column itself as a partition field."""
        return self.add_field(source, tr.IdentityTransform())

    def remove_field(self, name: str | Term) -> "PartitionSpecUpdate":
        """Remove the field of that name, or of that term, such as `bucket(16, id)`."""
        field = self._find_to_remove(name)
        if field.field_id in self._renamed:
            raise IncompatibleChangeError(f"partition field {field.name!r} cannot be renamed and removed in one change")
        self._removed.add(field.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> "PartitionSpecUpdate":
        """Rename the field of that name."""
        if any(field.name == name for field in self._added):
            raise IncompatibleChangeError(f"partition field {name!r} is added in this change; add it as {new_name!r}")
        field = self._find_named(name)
        if field.field_id in self._removed:
            raise IncompatibleChangeError(f"partition field {name!r} cannot be removed and renamed in one change")
        if field.field_id in self._renamed:
            raise IncompatibleChangeError(f"partition field {name!r} is renamed twice in one change")
        if new_name != name:
            self._free_name(new_name)
            self._renamed[field.field_id] = new_name
        return self

    def apply(self) -> EvolvedSpec:
        """The spec with the changes: one that the table has if it is equivalent, else a new one under the next free id."""
        spec = PartitionSpec(*self._kept_fields(), *self._added)
        specs.check_spec(spec, self._schema)
        spec_id = specs.id_for_spec(spec, self._specs)
        for existing in self._specs:
            if existing.spec_id == spec_id:
                return EvolvedSpec(existing, self._last_id)
        if self._keeps_removed and not specs.has_sequential_ids(spec):
            raise IncompatibleChangeError(
                "partition fields of a v1 table must be numbered from 1000 in order, which another spec of the table "
                "has made impossible here; upgrade the table to v2 first"
            )
        return EvolvedSpec(spec.with_id(spec_id), max(self._last_id, spec.last_field_id))

    def _kept_fields(self) -> Iterable[PartitionField]:
        for field in self._current.fields:
            name = self._renamed.get(field.field_id, field.name)
            if field.field_id not in self._removed:
                yield PartitionField(field.source_ids, field.field_id, field.transform, name)
            elif self._keeps_removed:
                yield PartitionField(field.source_ids, field.field_id, tr.VoidTransform(), name)

    def _new_field(self, source_id: int, term: Term, name: str | None) -> PartitionField:
        if recycled := self._recycled((source_id,), term.transform, name):
            return PartitionField(source_id, recycled.field_id, term.transform, name or recycled.name)
        field_id = max([self._last_id, *(field.field_id for field in self._added)]) + 1
        column = self._schema.names_by_id[source_id]
        return PartitionField(source_id, field_id, term.transform, name or evolved_field_name(term.transform, column))

    def _recycled(
        self, source_ids: tuple[int, ...], transform: tr.Transform, name: str | None
    ) -> PartitionField | None:
        """The field of another spec with these values: of that name if there is one, else of the newest spec."""
        if self._keeps_removed:
            return None
        meanings: dict[int, set[tuple[tuple[int, ...], tr.Transform]]] = {}
        for field in self._historical_fields():
            meanings.setdefault(field.field_id, set()).add((field.source_ids, field.transform))
        # Specs of an old v1 table may use one id for different things; such an id is not given out again.
        matches = [
            field
            for field in self._historical_fields()
            if meanings[field.field_id] == {(source_ids, transform)}
            and all(field.field_id != other.field_id for other in (*self._current.fields, *self._added))
        ]
        return next((field for field in matches if field.name == name), matches[0] if matches else None)

    def _historical_fields(self) -> Iterable[PartitionField]:
        for spec in sorted(self._specs, key=lambda spec: spec.spec_id, reverse=True):
            for field in spec.fields:
                if not isinstance(field.transform, tr.VoidTransform):
                    yield field

    def _check_added(self, field: PartitionField) -> None:
        for other in self._added:
            if other.same_values(field):
                raise IncompatibleChangeError(
                    f"partition fields {other.name!r} and {field.name!r} are the same; add one"
                )
            if other.name == field.name:
                raise IncompatibleChangeError(f"two added partition fields are named {field.name!r}")
            is_time = isinstance(other.transform, tr.TimeTransform) and isinstance(field.transform, tr.TimeTransform)
            if is_time and other.source_ids == field.source_ids:
                raise IncompatibleChangeError(
                    f"partition fields {other.name!r} and {field.name!r} are both units of time of one column; add one"
                )

    def _free_name(self, name: str) -> None:
        """Free the name of a void or removed field by appending the field's id to it; any other field keeps its name."""
        if any(field.name == name for field in self._added):
            raise IncompatibleChangeError(f"partition field name {name!r} is given to an added field in this change")
        for field in self._current.fields:
            if self._renamed.get(field.field_id, field.name) == name:
                if field.field_id not in self._removed and not isinstance(field.transform, tr.VoidTransform):
                    raise IncompatibleChangeError(f"there is already a partition field named {name!r}")
                self._renamed[field.field_id] = f"{name}_{field.field_id}"

    def _find(self, source_ids: tuple[int, ...], transform: tr.Transform) -> PartitionField | None:
        same = (
            field for field in self._current.fields if (field.source_ids, field.transform) == (source_ids, transform)
        )
        return next(same, None)

    def _find_named(self, name: str) -> PartitionField:
        for field in self._current.fields:
            if field.name == name:
                return field
        names = ", ".join(field.name for field in self._current.fields)
        raise NoSuchObjectError(f"no partition field named {name!r}; partition fields are {names or 'none'}")

    def _find_to_remove(self, name: str | Term) -> PartitionField:
        if isinstance(name, str) and any(name == field.name for field in (*self._current.fields, *self._added)):
            if any(name == field.name for field in self._added):
                raise IncompatibleChangeError(f"partition field {name!r} is added in this change; do not add it")
            return self._find_named(name)
        term = parse_term(name) if isinstance(name, str) else name
        source_id = self._schema.find_id(term.column, self._case_sensitive)
        if source_id is not None:
            if any(field.source_ids == (source_id,) and field.transform == term.transform for field in self._added):
                raise IncompatibleChangeError(f"partition field {term} is added in this change; do not add it")
            if field := self._find((source_id,), term.transform):
                return field
        return self._find_named(str(name))


class SortOrderUpdate:
    """A new sort order for a table, key by key; it replaces the old one entirely."""

    def __init__(self, orders: Iterable[SortOrder], schema: Schema, *, case_sensitive: bool = True) -> None:
        self._orders = tuple(orders)
        self._schema = schema
        self._case_sensitive = case_sensitive
        self._fields: list[SortField] = []

    def asc(
        self, source: str | Term, transform: tr.Transform | str | None = None, null_order: NullOrder | None = None
    ) -> "SortOrderUpdate":
        """Sort by this next, smallest first; nulls first by default."""
        return self._by(source, transform, SortDirection.ASC, null_order)

    def desc(
        self, source: str | Term, transform: tr.Transform | str | None = None, null_order: NullOrder | None = None
    ) -> "SortOrderUpdate":
        """Sort by this next, largest first; nulls last by default."""
        return self._by(source, transform, SortDirection.DESC, null_order)

    def apply(self) -> SortOrder:
        """The order: under the id of the same one if the table has it, else under the next free id; unsorted if empty."""
        order = SortOrder(*self._fields)
        check_order(order, self._schema)
        return order.with_id(id_for_order(order, self._orders))

    def _by(
        self,
        source: str | Term,
        transform: tr.Transform | str | None,
        direction: SortDirection,
        null_order: NullOrder | None,
    ) -> "SortOrderUpdate":
        term = _term(source, transform)
        source_id = find_source(term, self._schema, self._case_sensitive).field_id
        self._fields.append(SortField(source_id, term.transform, direction, null_order))
        return self


def _term(source: str | Term, transform: tr.Transform | str | None) -> Term:
    if isinstance(source, Term):
        term = source
    elif transform is None:
        term = parse_term(source)
    else:
        term = Term(tr.parse_transform(transform) if isinstance(transform, str) else transform, column_name(source))
    if isinstance(term.transform, tr.UnknownTransform):
        raise InvalidTransformError(f"transform {term.transform.text!r} is unknown; use one such as 'bucket[16]'")
    return term
