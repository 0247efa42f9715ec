"""Decides how one table replaces another of the same name: its UUID, history and ids continue, its rows do not.

The rules are those of the Java library's replace transactions: columns of the same name keep their ids, all others get new
ones; properties are added to the existing ones; `main` starts afresh, other branches and tags stay.
"""

from collections.abc import Iterator
from itertools import count

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog.definitions import TableDefinition
from icefloe.metadata import requirements as req, updates as up
from icefloe.partitioning import PartitionField, PartitionSpec, rebind_order, rebind_spec, transforms as tr
from icefloe.schema import assign_fresh_ids
from icefloe.versions import Feature, allows

_Key = tuple[tuple[int, ...], str]


class ReplaceTable:
    """The change by which a table gets another definition and no rows.

    Rows may come in the same commit, written with the ids that columns and partition fields got at first: if those would get
    others on newer metadata, it is refused.
    """

    def __init__(self, definition: TableDefinition, location: str | None) -> None:
        self._definition = definition
        self._location = location
        self._structure: tuple[up.TableUpdate, ...] | None = None

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: what the table held stays in its history."""
        return ()

    def prepare(self, metadata: md.TableMetadata, bench: cm.Workbench) -> cm.Prepared:
        """The updates for the table as it is then; rows that come meanwhile are to be replaced too."""
        if self._location is not None and self._location != metadata.location:
            cm.check_relative_files(metadata, self._location, bench.storage)
        main = metadata.refs.get(md.MAIN_BRANCH)
        same_rows = req.AssertRefSnapshotId(md.MAIN_BRANCH, None if main is None else main.snapshot_id)
        updates = tuple(_updates(metadata, self._definition, self._location))
        structure = tuple(
            update for update in updates if isinstance(update, up.AddSchemaUpdate | up.AddPartitionSpecUpdate)
        )
        if self._structure is None or not bench.first_parents:
            self._structure = structure
        if structure != self._structure:
            raise errors.ValidationError(
                "another commit changed columns or partition fields of the table since the replacement was planned, so"
                " those of the new table would get other ids; start again"
            )
        return cm.Prepared(updates, (same_rows,))


def _updates(base: md.TableMetadata, definition: TableDefinition, location: str | None) -> Iterator[up.TableUpdate]:
    version = base.format_version if definition.format_version is None else definition.format_version
    if version != base.format_version:
        yield up.UpgradeFormatVersionUpdate(version)
    if md.MAIN_BRANCH in base.refs:
        yield up.RemoveSnapshotRefUpdate(md.MAIN_BRANCH)
    schema = assign_fresh_ids(definition.schema, base.last_column_id + 1, base.schema())
    spec = rebind_spec(definition.spec, definition.schema, schema)
    yield up.AddSchemaUpdate(schema)
    yield up.SetCurrentSchemaUpdate()
    yield up.AddPartitionSpecUpdate(_with_known_ids(spec, base))
    yield up.SetDefaultSpecUpdate()
    yield up.AddSortOrderUpdate(rebind_order(definition.order, definition.schema, schema))
    yield up.SetDefaultSortOrderUpdate()
    if location is not None and location != base.location:
        yield up.SetLocationUpdate(location)
    if definition.properties:
        yield up.SetPropertiesUpdate(dict(definition.properties))


def _with_known_ids(spec: PartitionSpec, base: md.TableMetadata) -> PartitionSpec:
    """The spec with the ids of partition fields that the table had before, and new ones for the others."""
    numbers = count(base.last_partition_id + 1)
    if not allows(base.format_version, Feature.DROPPING_PARTITION_FIELDS):
        return _carried_forward(spec, base.spec(), numbers)
    known: dict[_Key, int] = {}
    for other in base.partition_specs:
        for field in other.fields:
            known[_key(field)] = max(field.field_id, known.get(_key(field), 0))
    fields = [
        PartitionField(
            field.source_ids,
            known[key] if (key := _key(field)) in known else next(numbers),
            field.transform,
            field.name,
        )
        for field in spec.fields
    ]
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def _carried_forward(spec: PartitionSpec, current: PartitionSpec, numbers: Iterator[int]) -> PartitionSpec:
    """The same where fields cannot be dropped: those of the current spec stay in order, void if the new one lacks them."""
    added = {_key(field): field for field in spec.fields}
    names = {field.name for field in spec.fields}
    fields = []
    for old in current.fields:
        new = added.pop(_key(old), None)
        if new is not None:
            fields.append(PartitionField(new.source_ids, old.field_id, new.transform, new.name))
        else:
            name = f"{old.name}_{old.field_id}" if old.name in names else old.name
            fields.append(PartitionField(old.source_ids, old.field_id, tr.VoidTransform(), name))
    fields.extend(
        PartitionField(field.source_ids, next(numbers), field.transform, field.name) for field in added.values()
    )
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def _key(field: PartitionField) -> _Key:
    return field.source_ids, str(field.transform)
