"""Changes of rows from plain Python: which files are read, written and named for the commit of each.

A change is planned on the snapshot that it reads, and says to the commit which rows it has read, so that conflicts are found as
narrowly as can be. Copy-on-write or merge-on-read is by the table's properties; v1 has no delete files, so it always copies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.history import Isolation, Planned
from icefloe.commit.update_snapshot import UpdateSnapshot
from icefloe.data.engines import WriteRequest, engine_for
from icefloe.data.incoming import incoming_tables
from icefloe.data.matching import MatchedRows, find_matching_rows, find_rows_with_keys
from icefloe.data.row_changes import read_matched, rewrite_without, write_deletes
from icefloe.data.shaping import shape_table
from icefloe.data.writing import write_data_files
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.expressions import AlwaysTrue, Column, Expression, IdReference, Literal, as_expression, bind
from icefloe.formats.array_metrics import internal_value
from icefloe.manifests import DataFile
from icefloe.metadata.properties import (
    DELETE_ISOLATION_LEVEL,
    DELETE_MODE,
    MANIFEST_MERGE_ENABLED,
    MERGE_ISOLATION_LEVEL,
    MERGE_MODE,
    Property,
)
from icefloe.metadata.refs import MAIN_BRANCH
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import TableMetadata
from icefloe.planning.scan import TableScan
from icefloe.schema.arrow import schema_to_arrow
from icefloe.schema.projection import select_ids
from icefloe.schema.reserved import ROW_ID
from icefloe.schema.schema import Schema
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

_COPY = "copy-on-write"
_LISTED_KEYS = 1000
"""Up to so many keys of one column are listed in the filter of an upsert; beyond, their range is enough."""


@dataclass(frozen=True, slots=True)
class RowOperations:
    """The changes of rows on one branch of a table. `written` gets every file as it is written, for whoever must clean up.

    `write_properties` stand in for the table's where the data that is given becomes files.
    """

    metadata: TableMetadata
    storage: Storage
    update: UpdateSnapshot
    branch: str = MAIN_BRANCH
    written: list[DataFile] = field(default_factory=list)
    write_properties: Mapping[str, str] = field(default_factory=dict)

    def append(self, data: Any) -> Snapshot | None:
        """Add rows."""
        return self._append(self._write(data))

    def dynamic_partition_overwrite(self, data: Any) -> Snapshot | None:
        """Add rows in place of all others of their partitions."""
        planned = self._planned(DELETE_ISOLATION_LEVEL)
        files = self._write(data)
        return self.update.replace_partitions(files, planned, check_duplicates=False) if files else None

    def delete(self, row_filter: str | Expression, case_sensitive: bool = True) -> Snapshot | None:
        """Delete the rows that match."""
        return self._replace(as_expression(row_filter), (), case_sensitive)

    def overwrite(self, data: Any, row_filter: str | Expression, case_sensitive: bool = True) -> Snapshot | None:
        """Delete the rows that match, and add others, in one step."""
        return self._replace(as_expression(row_filter), self._write(data), case_sensitive)

    def upsert(
        self,
        data: Any,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
    ) -> Snapshot | None:
        """Replace the rows that have the keys of the data by those of the data, and add the rest of it.

        The keys are the columns named, or the table's identifier fields. Rows that are replaced keep their row ids.
        """
        if not when_matched_update_all and not when_not_matched_insert_all:
            raise InvalidInputError("an upsert that neither updates nor inserts does nothing; allow one of them")
        schema = self.metadata.schema()
        keys = select_ids(schema, self._keys(join_cols, case_sensitive))
        parts = [shape_table(each, schema) for each in incoming_tables(data)]
        rows = _concat(parts)
        if rows is None or not rows.num_rows:
            return None
        _check_keys(rows, [each.name for each in keys.fields])
        planned = self._planned(MERGE_ISOLATION_LEVEL)
        touched = bind(_key_filter(rows, keys), schema)
        matches = list(self._rows_with_keys(rows, keys, touched))
        new = self._merged(rows, keys, matches, when_matched_update_all, when_not_matched_insert_all)
        replaced = matches if when_matched_update_all else []
        if not new.num_rows:
            return None
        lineage = allows(self.metadata.format_version, Feature.ROW_LINEAGE)
        files = write_data_files(new, self.metadata, self.storage, lineage=lineage, written=self.written)
        return self._commit(planned, MERGE_MODE, replaced, files, touched)

    # -- deletes and overwrites

    def _replace(
        self, row_filter: Expression, files: list[DataFile] | tuple[()], case_sensitive: bool
    ) -> Snapshot | None:
        planned = self._planned(DELETE_ISOLATION_LEVEL)
        scan = self._scan(row_filter, case_sensitive)
        matches = list(find_matching_rows(scan.plan_files(), self.metadata, self.storage))
        return self._commit(planned, DELETE_MODE, matches, files, scan.bound_filter)

    def _commit(
        self,
        planned: Planned,
        mode: Property[str],
        matches: Sequence[MatchedRows],
        files: Sequence[DataFile],
        read: Expression,
    ) -> Snapshot | None:
        if not matches and not files:
            return None
        if not matches:
            # Nothing to remove now, but others may have added rows that match meanwhile: the commit looks for them.
            return self.update.overwrite(planned, add=files, conflict_filter=read, check_duplicates=False)
        if mode.of(self.metadata.properties) == _COPY or not allows(self.metadata.format_version, Feature.DELETE_FILES):
            changes = rewrite_without(matches, self.metadata, self.storage, written=self.written)
            added = (*files, *changes.added_data)
            return self.update.overwrite(
                planned, add=added, remove=changes.removed_data, conflict_filter=read, check_duplicates=False
            )
        whole = [match.task.file for match in matches if match.is_whole_file]
        partly = [match for match in matches if not match.is_whole_file]
        if allows(self.metadata.format_version, Feature.DELETION_VECTORS):
            # Positions, not files: the commit writes the vectors, merged with those that others add meanwhile.
            vectors = {match.task.file.file_path: match.positions for match in partly}
            return self.update.row_delta(
                planned, add=files, vectors=vectors, remove=whole, conflict_filter=read, check_duplicates=False
            )
        deletes = write_deletes(partly, self.metadata, self.storage, written=self.written).added_deletes
        return self.update.row_delta(
            planned, add=files, deletes=deletes, remove=whole, conflict_filter=read, check_duplicates=False
        )

    # -- upserts

    def _keys(self, names: Sequence[str] | None, case_sensitive: bool) -> tuple[int, ...]:
        schema = self.metadata.schema()
        if names is None:
            if not schema.identifier_field_ids:
                raise InvalidInputError("the table has no identifier fields; name the columns to join by, as join_cols")
            return schema.identifier_field_ids
        found = tuple(schema.find_field(name, case_sensitive).field_id for name in names)
        nested = [name for name, field_id in zip(names, found, strict=True) if field_id in schema.parents]
        if not found or nested:
            raise InvalidInputError(
                f"rows are joined by top-level columns, at least one; given: {', '.join(names) or 'none'}"
            )
        return found

    def _rows_with_keys(self, rows: Any, keys: Schema, touched: Expression) -> Iterable[MatchedRows]:
        table = rows.select([each.name for each in keys.fields])
        ids = [each.field_id for each in keys.fields]
        return find_rows_with_keys(self._scan(touched, True).plan_files(), self.metadata, self.storage, table, ids)

    def _merged(self, rows: Any, keys: Schema, matches: list[MatchedRows], updates: bool, inserts: bool) -> Any:
        """The rows to write, with the ids of those that they replace."""
        lineage = allows(self.metadata.format_version, Feature.ROW_LINEAGE)
        wanted = Schema(*keys.fields, *((ROW_ID,) if lineage else ()))
        present = _concat(read_matched(matches, wanted, self.metadata, self.storage))
        if present is None:
            present = pa.Table.from_batches([], schema_to_arrow(wanted))
        marked = _with_ids(rows, present, [each.name for each in keys.fields], lineage)
        is_matched = marked.column(_MATCHED)
        chosen = pc.or_(pc.and_(is_matched, updates), pc.and_(pc.invert(is_matched), inserts))
        return marked.filter(chosen).drop_columns([_MATCHED])

    # -- parts of all of them

    def _planned(self, isolation: Property[str]) -> Planned:
        return Planned.on(self.metadata, self.branch, Isolation.of(self.metadata, isolation))

    def _scan(self, row_filter: Expression, case_sensitive: bool) -> TableScan:
        ref = self.branch if self.branch in self.metadata.refs else None
        return TableScan(self.metadata, self.storage, row_filter, ref=ref, case_sensitive=case_sensitive)

    def _write(self, data: Any) -> list[DataFile]:
        metadata = self.metadata
        if self.write_properties:
            metadata = replace(metadata, properties={**metadata.properties, **self.write_properties})
        engine = engine_for(data)
        if engine is not None:
            return engine.write(data, WriteRequest(metadata, self.storage, self.written))
        return write_data_files(data, metadata, self.storage, written=self.written)

    def _append(self, files: list[DataFile]) -> Snapshot | None:
        if not files:
            return None
        # Files that were just written have names of their own: no other commit can have them.
        if MANIFEST_MERGE_ENABLED.of(self.metadata.properties):
            return self.update.merge_append(files, check_duplicates=False)
        return self.update.fast_append(files, check_duplicates=False)


_MATCHED = "__icefloe_matched"
_PLACE = "__icefloe_place"


def _concat(parts: Iterable[Any]) -> Any:
    tables = [pa.Table.from_batches([each]) if isinstance(each, pa.RecordBatch) else each for each in parts]
    return pa.concat_tables(tables) if tables else None


def _plain_keys(rows: Any, names: list[str]) -> Any:
    """The key columns as types that Arrow can group and join by."""
    columns = [rows.column(name) for name in names]
    stored = [
        each.cast(each.type.storage_type) if isinstance(each.type, pa.BaseExtensionType) else each for each in columns
    ]
    return pa.table(stored, names=names)


def _check_keys(rows: Any, names: list[str]) -> None:
    """Each row of an upsert has a key of its own."""
    keys = _plain_keys(rows, names)
    for name in names:
        if keys.column(name).null_count:
            raise InvalidValueError(f"the data has null in {name!r}, by which rows are joined; keys must have values")
    counts = keys.append_column(_PLACE, pa.nulls(rows.num_rows)).group_by(names).aggregate([(_PLACE, "count", _ALL)])
    twice = counts.filter(pc.greater(counts.column(f"{_PLACE}_count"), 1))
    if twice.num_rows:
        example = {name: twice.column(name)[0].as_py() for name in names}
        raise InvalidValueError(
            f"the data has {twice.num_rows} keys more than once, such as {example}; keys must be unique"
        )


_ALL = pc.CountOptions(mode="all")


def _key_filter(rows: Any, schema: Schema) -> Expression:
    """What all rows with one of the keys match: the keys of one column if they are few, else the range of each column."""
    found: Expression = AlwaysTrue()
    keys = _plain_keys(rows, [each.name for each in schema.fields])
    for each in schema.fields:
        values, kind = keys.column(each.name), each.field_type
        if len(schema) == 1 and rows.num_rows <= _LISTED_KEYS:
            return Column(IdReference(each.field_id)).is_in(
                Literal(internal_value(value, kind), kind) for value in values
            )
        ends = pc.min_max(values)
        low, high = (Literal(internal_value(ends[end], kind), kind) for end in ("min", "max"))
        found = found & Column(IdReference(each.field_id)).between(low, high)
    return found


def _with_ids(rows: Any, present: Any, names: list[str], lineage: bool) -> Any:
    """The rows, marked where a row that is present has their key, with its row id where there are row ids."""
    there = _plain_keys(present, names)
    there = there.append_column(
        ROW_ID.name, present.column(ROW_ID.name) if lineage else pa.nulls(len(there), pa.int64())
    )
    there = there.group_by(names).aggregate([(ROW_ID.name, "min")]).rename_columns([*names, ROW_ID.name])
    there = there.append_column(_MATCHED, pa.array([True] * there.num_rows, pa.bool_()))
    here = _plain_keys(rows, names).append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    joined = here.join(there, names, join_type="left outer").sort_by(_PLACE)
    marked = rows.append_column(_MATCHED, pc.fill_null(joined.column(_MATCHED), False))
    return marked.append_column(ROW_ID.name, joined.column(ROW_ID.name)) if lineage else marked
