"""How the rows of a table are grouped into partitions: fields, specs, their types, and the rules for them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icefloe.errors import InvalidPartitionSpecError
from icefloe.partitioning import transforms as tr
from icefloe.partitioning.terms import column_name, find_source, parse_term, rebind_sources, source_problem, written
from icefloe.schema import Schema, types

FIRST_PARTITION_FIELD_ID = 1000
"""What the ids of partition fields start from."""
NO_PARTITION_FIELD_ID = FIRST_PARTITION_FIELD_ID - 1
"""The last partition id of a table that never had a partition field."""


@dataclass(frozen=True, slots=True, init=False)
class PartitionField:
    """One value of the partition tuple: a transform of a source column; of several columns if the transform is unknown."""

    source_ids: tuple[int, ...]
    field_id: int
    transform: tr.Transform
    name: str

    def __init__(self, source_id: int | Iterable[int], field_id: int, transform: tr.Transform, name: str) -> None:
        source_ids = (source_id,) if isinstance(source_id, int) else tuple(source_id)
        if not source_ids:
            raise InvalidPartitionSpecError(f"partition field {name!r} has no source column")
        object.__setattr__(self, "source_ids", source_ids)
        object.__setattr__(self, "field_id", field_id)
        object.__setattr__(self, "transform", transform)
        object.__setattr__(self, "name", name)

    @property
    def source_id(self) -> int:
        """The source column, the first one if there are several."""
        return self.source_ids[0]

    def same_but_id(self, other: "PartitionField") -> bool:
        """Whether source, transform and name are the same."""
        return self.same_values(other) and self.name == other.name

    def same_values(self, other: "PartitionField") -> bool:
        """Whether source and transform are the same."""
        return self.source_ids == other.source_ids and self.transform == other.transform

    def __str__(self) -> str:
        return f"{self.field_id}: {self.name}: {self.transform}({', '.join(map(str, self.source_ids))})"


@dataclass(frozen=True, slots=True, init=False)
class PartitionSpec:
    """The fields of the partition tuple, in order."""

    fields: tuple[PartitionField, ...]
    spec_id: int = 0

    def __init__(self, *fields: PartitionField, spec_id: int = 0) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "spec_id", spec_id)

    def __iter__(self) -> Iterator[PartitionField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return "\n".join(["[", *(f"  {field}" for field in self.fields), "]"]) if self.fields else "[]"

    @property
    def is_unpartitioned(self) -> bool:
        """Whether there is nothing to group by: no field, or void ones only."""
        return all(isinstance(field.transform, tr.VoidTransform) for field in self.fields)

    @property
    def has_unknown_transform(self) -> bool:
        """Whether some transform is unknown; nothing may be written with such a spec."""
        return any(isinstance(field.transform, tr.UnknownTransform) for field in self.fields)

    @property
    def last_field_id(self) -> int:
        """The highest field id, or the one before the first when there is none."""
        return max((field.field_id for field in self.fields), default=NO_PARTITION_FIELD_ID)

    def equivalent(self, other: "PartitionSpec") -> bool:
        """Whether the specs are the same except for spec id and field ids (spec: Partition Evolution)."""
        return len(self) == len(other) and all(
            mine.same_but_id(theirs) for mine, theirs in zip(self.fields, other.fields, strict=True)
        )

    def with_id(self, spec_id: int) -> "PartitionSpec":
        """The same fields under another spec id."""
        return PartitionSpec(*self.fields, spec_id=spec_id)


UNPARTITIONED = PartitionSpec()
"""The spec of a table without partitions."""


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Fail unless the spec may be used for new data of the schema (spec: Partitioning)."""
    for position, field in enumerate(spec.fields):
        if not field.name:
            raise InvalidPartitionSpecError(f"partition field {field.field_id} has an empty name")
        if any(field.name == other.name for other in spec.fields[:position]):
            raise InvalidPartitionSpecError(f"two partition fields are named {field.name!r}")
        if any(field.field_id == other.field_id for other in spec.fields[:position]):
            raise InvalidPartitionSpecError(f"two partition fields have the id {field.field_id}; ids must be unique")
        # A void field may outlive its source column.
        is_void = isinstance(field.transform, tr.VoidTransform)
        if not is_void and (problem := source_problem(field.transform, field.source_ids, schema)):
            raise InvalidPartitionSpecError(f"partition field {field.name!r}: {problem}")
        _check_name(field, schema)
    _check_redundancy(spec)


def check_writable(spec: PartitionSpec) -> None:
    """Fail if rows cannot be written under the spec, as the transform of a field is not known (spec: Partition Transforms)."""
    for field in spec.fields:
        if isinstance(field.transform, tr.UnknownTransform):
            several = " of several columns" if len(field.source_ids) > 1 else ""
            raise InvalidPartitionSpecError(
                f"partition field {field.name!r} of spec {spec.spec_id} has the transform {field.transform.text!r}{several},"
                " which is unknown, so nothing can be written with it; remove the field with update_spec() first"
            )


def partition_type(spec: PartitionSpec, schema: Schema, *older: Schema) -> types.StructType:
    """The type of the partition tuple.

    A source column that the schema no longer has is looked up in the older schemas; if none has it, fields with the type of
    the column are of type `unknown`.
    """
    return types.StructType(
        *(types.NestedField(field.field_id, field.name, _field_type(field, (schema, *older))) for field in spec.fields)
    )


def unified_partition_type(specs: Iterable[PartitionSpec], schema: Schema, *older: Schema) -> types.StructType:
    """All fields of all specs, ordered by id, with their newest names (spec: Partition Evolution).

    If two fields have the same name, the newer one keeps it, and the id of the other is appended to its name.
    """
    newest_fields: dict[int, tuple[PartitionField, str]] = {}
    for spec in sorted(specs, key=lambda spec: spec.spec_id, reverse=True):
        for field in spec.fields:
            newer, name = newest_fields.setdefault(field.field_id, (field, field.name))
            void = isinstance(newer.transform, tr.VoidTransform)
            if newer.source_ids != field.source_ids or not (
                void or isinstance(field.transform, tr.VoidTransform) or newer.transform == field.transform
            ):
                # Only in v1 tables, where ids were not stored, can two fields come to share one.
                raise InvalidPartitionSpecError(f"partition fields {newer} and {field} have one id but differ")
            if void:
                newest_fields[field.field_id] = (field, name)
    newest = {name: field_id for field_id, (_, name) in sorted(newest_fields.items())}
    return types.StructType(
        *(
            types.NestedField(
                field_id,
                name if newest[name] == field_id else f"{name}_{field_id}",
                _field_type(field, (schema, *older)),
            )
            for field_id, (field, name) in sorted(newest_fields.items())
        )
    )


def id_for_spec(spec: PartitionSpec, specs: Iterable[PartitionSpec]) -> int:
    """The id of the equivalent spec among a table's specs, or the next free one."""
    next_id = 0
    for other in specs:
        if spec.equivalent(other):
            return other.spec_id
        next_id = max(next_id, other.spec_id + 1)
    return next_id


def has_sequential_ids(spec: PartitionSpec) -> bool:
    """Whether fields are numbered from 1000 in order, as readers of v1 tables assume."""
    return all(field.field_id == FIRST_PARTITION_FIELD_ID + position for position, field in enumerate(spec.fields))


def default_field_name(transform: tr.Transform, column: str) -> str:
    """The default name of a partition field of a new table."""
    match transform:
        case tr.IdentityTransform():
            return column
        case tr.BucketTransform():
            return f"{column}_bucket"
        case tr.TruncateTransform():
            return f"{column}_trunc"
        case tr.TimeTransform():
            return f"{column}_{transform.unit}"
        case tr.VoidTransform():
            return f"{column}_null"
        case _:
            raise InvalidPartitionSpecError(f"a partition field with transform {transform} needs a name")


_ALIAS = re.compile(r"(.*\S)\s+as\s+(\S+|`.+`)", re.IGNORECASE | re.DOTALL)


def parse_partition_spec(
    terms: str | Iterable[str], schema: Schema, *, spec_id: int = 0, case_sensitive: bool = True
) -> PartitionSpec:
    """The spec of a new table from texts: `["days(ts)", "bucket(16, id) as shard", "region"]`."""
    fields = []
    for position, text in enumerate([terms] if isinstance(terms, str) else terms):
        alias = _ALIAS.fullmatch(written(text))
        term = parse_term(alias[1] if alias else text)
        source = find_source(term, schema, case_sensitive)
        name = (
            column_name(alias[2]) if alias else default_field_name(term.transform, schema.names_by_id[source.field_id])
        )
        fields.append(PartitionField(source.field_id, FIRST_PARTITION_FIELD_ID + position, term.transform, name))
    return build_spec(*fields, schema=schema, spec_id=spec_id)


def build_spec(*fields: PartitionField, schema: Schema, spec_id: int = 0) -> PartitionSpec:
    """A spec for a new table: checked, and with at most one unit of time per column."""
    spec = PartitionSpec(*fields, spec_id=spec_id)
    check_spec(spec, schema)
    units: dict[tuple[int, ...], PartitionField] = {}
    for field in fields:
        if isinstance(field.transform, tr.TimeTransform):
            other = units.setdefault(field.source_ids, field)
            if other is not field:
                raise InvalidPartitionSpecError(
                    f"partition fields {other.name!r} and {field.name!r} are both units of time of one column; keep one"
                )
    return spec


def rebind_spec(spec: PartitionSpec, old: Schema, new: Schema) -> PartitionSpec:
    """The spec for a schema with the same column names but other ids; partition fields are renumbered."""
    fields = []
    for position, field in enumerate(spec.fields):
        source_ids = rebind_sources(field.source_ids, old, new)
        fields.append(PartitionField(source_ids, FIRST_PARTITION_FIELD_ID + position, field.transform, field.name))
    rebound = PartitionSpec(*fields, spec_id=spec.spec_id)
    check_spec(rebound, new)
    return rebound


def _field_type(field: PartitionField, schemas: tuple[Schema, ...]) -> types.IcebergType:
    if len(field.source_ids) > 1:
        return types.StringType()
    for schema in schemas:
        if source := schema.fields_by_id.get(field.source_id):
            return field.transform.result_type(source.field_type)
    return field.transform.result_type(types.UnknownType())


def _check_name(field: PartitionField, schema: Schema) -> None:
    column_id = schema.find_id(field.name)
    if column_id is None:
        return
    if not isinstance(field.transform, tr.IdentityTransform | tr.VoidTransform):
        raise InvalidPartitionSpecError(
            f"partition field {field.name!r} has the name of a column; only an identity partition may"
        )
    if field.source_id != column_id and field.source_id in schema.fields_by_id:
        raise InvalidPartitionSpecError(
            f"partition field {field.name!r} has the name of a column that is not its source"
        )


def _check_redundancy(spec: PartitionSpec) -> None:
    seen: dict[tuple[tuple[int, ...], tr.Transform], PartitionField] = {}
    for field in spec.fields:
        if isinstance(field.transform, tr.VoidTransform):
            continue
        other = seen.setdefault((field.source_ids, field.transform), field)
        if other is not field:
            raise InvalidPartitionSpecError(
                f"partition fields {other.name!r} and {field.name!r} have the same source and transform; keep one"
            )
