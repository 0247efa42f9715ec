"""How Spark's own Parquet reader reads a table: relations over Python file indexes, with deletes as part of the query.

Files that no delete concerns, files with rows deleted by position, and files with rows deleted by key are a relation each,
so that clean files cost nothing. Where our reader leaves out rows deleted by position (icefloe/spark/jvm/live_rows.java), it
reads both of the first; elsewhere each row is tested for its bit in a bitmap. Columns
are matched by field id, under names that `inner_names` chooses.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe import manifests as mf, metadata as md, planning
from icefloe.data import partition_by_field
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.schema import NestedField, Schema, reserved, select_ids, types
from icefloe.spark import file_index, metadata_answers, optimizer
from icefloe.spark.asked_files import AskedFiles
from icefloe.spark.column_statistics import TableCounts, catalog_entry, counts_of, with_counts
from icefloe.spark.file_index import Constant, FileLister, IndexLabel, ScanFileIndex, ScanFiles
from icefloe.spark.gateway import Gateway, analyzed, col, lit
from icefloe.spark.hadoop_access import HadoopAccess, hadoop_access
from icefloe.spark.inner_names import PREFIX, inner_columns
from icefloe.spark.jvm import door
from icefloe.spark.partition_groups import groups_of
from icefloe.spark.scan_plan import FileKind, KeyDeletes, ScanPlans, SnapshotShape
from icefloe.spark.scan_statistics import may_choose_files, statistics_of
from icefloe.spark.sent_keys import sender_of_keys
from icefloe.spark.spark_sessions import ReadSettings, read_settings, reading_session
from icefloe.spark.types import CURRENT_DEFAULT, EXISTS_DEFAULT, TypeMapping, file_schema, user_schema
from icefloe.spark.user_side import filter_column, quoted_name, to_user

_OPTIONS = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    optimizer.MARK: "true",
}
"""Options of a relation reach its reader, so the session's own settings stay as they are, and do not matter."""

ROW_INDEX = "_tmp_metadata_row_index"
"""A column that no file has, and that Spark's Parquet reader fills with the position of each row. `_metadata.row_index` is
the same in a struct for each row, which takes longer than all the rest of applying deletes."""
_UNKNOWN_SIZE = 1 << 40
_BITS = f"{PREFIX}deleted"
_SCOPE = f"{PREFIX}scope"
_EVERYWHERE = ""
"""The scope of equality deletes of an unpartitioned spec."""


def takes_keys(spark: SparkSession) -> bool:
    """Whether Spark's own reader can be given keys of encrypted files."""
    return door.entry(spark, "scan_index") is not None and _our_reader(spark) is not None


def _our_reader(spark: SparkSession) -> JavaObject | None:
    return door.entry(spark, "live_rows", in_tasks=True)


@dataclass(frozen=True)
class NativeScan:
    """A scan that becomes a DataFrame; `hidden` are rows to skip, by file."""

    gateway: Gateway
    scan: planning.TableScan
    shape: SnapshotShape
    name: str
    mapping: TypeMapping
    hidden: Mapping[str, DeletionVector] | None = None
    is_streaming: bool = False
    """Whether the rows are those of a micro-batch of a stream."""

    def frame(self) -> DataFrame:
        """The rows, lazily: files are chosen when Spark plans a query."""
        optimizer.install(self.gateway.spark)
        # Our reader gives clean files as they are, and one relation is planned faster than two.
        is_one = self.hidden is not None or (self.shape.has_position_deletes and self._reader is not None)
        kinds = self.shape.kinds_with_deletes if is_one else self.shape.kinds
        planner = ScanPlans(self.scan, kinds, self.hidden)
        parts = [self._part(planner, kind) for kind in kinds]
        rows = reduce(DataFrame.union, parts)
        return rows if self.scan.limit is None else rows.limit(self.scan.limit)

    @cached_property
    def _projection(self) -> Schema:
        return self.scan.projection()

    @cached_property
    def _access(self) -> HadoopAccess:
        return hadoop_access(self.scan.storage, self.scan.metadata)

    @cached_property
    def _index(self) -> JavaObject | None:
        """Our file index in Java; None if Spark asks Python for everything."""
        return door.entry(self.gateway.spark, "scan_index")

    @cached_property
    def _reader(self) -> JavaObject | None:
        """Our reader, which leaves deleted rows out; None if a test of each row does."""
        if self._index is None or self._selects(reserved.DELETED):
            return None
        return _our_reader(self.gateway.spark)

    @cached_property
    def _key(self) -> Callable[[planning.FileScanTask], bytes] | None:
        """What gives the key of a file to the JVM; None if the table is not encrypted."""
        if not mf.is_encrypted(self.scan.metadata):
            return None
        if self._index is None:
            raise AssertionError("an encrypted table is read by Spark without the classes that take its keys")
        return sender_of_keys(self._index)

    def _is_tested(self, kind: FileKind) -> bool:
        """Whether each row of files of a kind is tested for being deleted."""
        return kind is not FileKind.CLEAN and self._reader is None

    def _selects(self, column: types.NestedField) -> bool:
        return column.field_id in self._projection.fields_by_id

    def _part(self, planner: ScanPlans, kind: FileKind) -> DataFrame:
        columns = _Columns(self.gateway, self.scan.schema, self.scan.metadata, self._extra(kind))
        source = self._source(planner, kind, columns)
        is_deleted: Column | None = None
        conditions: list[Column] = []
        if self._is_tested(kind):
            is_deleted = self.gateway.cached("is deleted", lambda: self._bit_test(columns.position()))
            if not self._selects(reserved.DELETED):
                conditions.append(~is_deleted)
        if kind is FileKind.KEYS:
            rows = self._rows(source, conditions)
            for group_index, group in enumerate(self.shape.key_deletes):
                rows = self._without_keys(rows, columns, group, group_index)
            source, conditions = analyzed(rows), []
        bound = self.scan.bound_filter
        if not isinstance(bound, AlwaysTrue):
            shown = partial(columns.shown, mapping=self.mapping)
            conditions.append(filter_column(self.gateway, bound, shown, self.mapping))
        return self._rows(source, conditions, self._output(columns, is_deleted))

    def _rows(
        self, source: JavaObject, conditions: Sequence[Column] = (), output: JavaObject | None = None
    ) -> DataFrame:
        """The rows of a relation, or of a plan, for which all conditions are true, as these columns, or as all.

        Java makes them by one call, and Spark analyses them once, where each step would be a frame of its own.
        """
        if self._index is not None:
            where = self.gateway.seq(condition._jc for condition in conditions) if conditions else None
            return self.gateway.frame(self._index.rows(self.gateway.spark._jsparkSession, source, where, output))
        rows = self.gateway.frame_of(source)
        for condition in conditions:
            rows = rows.filter(condition)
        return rows if output is None else self.gateway.frame(rows._jdf.select(output))

    def _output(self, columns: "_Columns", is_deleted: Column | None) -> JavaObject:
        """The columns that users see, from a cache: each of them would take four calls."""
        fields = self._projection.fields
        inner = [
            (columns.inner_field(field.field_id), columns.is_whole(field.field_id))
            for field in fields
            if columns.has(field)
        ]
        return self.gateway.cached(
            f"output {self.mapping} {is_deleted is None} {inner} {fields}",
            lambda: self.gateway.seq(
                self.gateway.alias(self._shown(field, columns, is_deleted), field.name, shown.metadata)._jc
                for field, shown in zip(fields, user_schema(self._projection, self.mapping).fields, strict=True)
            ),
        )

    def _extra(self, kind: FileKind) -> list[types.NestedField]:
        """Columns to read beyond the table's schema: lineage, positions, and dropped columns that deletes compare."""
        extra = [*filter(self._selects, (reserved.ROW_ID, reserved.LAST_UPDATED_SEQUENCE_NUMBER))]
        if self._is_tested(kind) or self._selects(reserved.POS) or self._selects(reserved.ROW_ID):
            extra.append(_optional(reserved.POS))
        if kind is FileKind.KEYS:
            ids = {field_id for group in self.shape.key_deletes for field_id in group.field_ids}
            missing = sorted(ids - set(self.scan.schema.fields_by_id))
            extra += [_dropped_column(self.scan.metadata, field_id) for field_id in missing]
        return extra

    # -- the relation

    def _constants(self, planner: ScanPlans, kind: FileKind) -> Iterator[Constant]:
        if self._selects(reserved.FILE):
            yield file_index.FILE
        if self._selects(reserved.SPEC_ID):
            yield file_index.SPEC_ID
        if self._selects(reserved.ROW_ID) or self._selects(reserved.LAST_UPDATED_SEQUENCE_NUMBER):
            yield file_index.FIRST_ROW_ID
        if self._selects(reserved.LAST_UPDATED_SEQUENCE_NUMBER) or kind is FileKind.KEYS:
            yield file_index.SEQUENCE_NUMBER
        partition = self._projection.fields_by_id.get(reserved.PARTITION_ID)
        if partition is not None and isinstance(partition.field_type, types.StructType):
            specs, fields = self.scan.metadata.specs_by_id, partition.field_type.fields
            yield from file_index.partition_constants(
                fields, lambda task: partition_by_field(task.file, specs, fields), self.mapping
            )
        if self._is_tested(kind):
            yield Constant(_BITS, spark_types.StringType(), planner.bitmap, True)
        if kind is FileKind.KEYS:
            yield Constant(_SCOPE, spark_types.StringType(), self._scope, True)

    def _scope(self, task: planning.FileScanTask) -> str:
        return f"{task.spec_id}: {task.partition!r}"

    def _source(self, planner: ScanPlans, kind: FileKind, columns: "_Columns") -> JavaObject:
        """The files of a kind, as `_rows` takes them."""
        constants = list(self._constants(planner, kind))
        snapshot = self.scan.snapshot()
        identity = "; ".join(
            (
                str(self.scan.metadata.table_uuid),
                f"schema {self.scan.schema.schema_id}",
                str(self.scan.bound_filter),
                ", ".join(constant.name for constant in constants),
            )
        )
        has_size = kind is (FileKind.CLEAN if FileKind.CLEAN in planner.kinds else FileKind.POSITIONS)
        files = ScanFiles(
            self._label(_PARTS[kind], identity),
            lambda pushed: planner.tasks(pushed, kind),
            constants,
            total_size(snapshot) if snapshot is not None and has_size else 0,
            columns.by_name,
            lambda: planner.report,
            None if kind is FileKind.CLEAN or self._reader is None else planner.roaring,
            self._key,
            planner.first(kind),
            None if planner.kinds[1:] or self.hidden else partial(metadata_answers.answers, self.scan),
            partial(groups_of, metadata=self.scan.metadata, columns=columns.by_name),
            None if planner.kinds[1:] or self.hidden else partial(self._statistics, columns.by_name),
            partial(may_choose_files, self.scan),
        )
        # With deletes there are several relations, of whose union Spark knows no distinct values.
        is_whole = self.shape.kinds == (FileKind.CLEAN,) and self.hidden is None
        counts = None
        if is_whole and snapshot is not None:
            counts = counts_of(self.scan.metadata, snapshot.snapshot_id, self.gateway.spark)
        return self._source_of(files, columns, counts)

    def _statistics(self, columns: Mapping[str, NestedField], where: Expression) -> JavaObject | None:
        """What Spark learns of the files for a filter."""
        snapshot, found = self.scan.snapshot(), statistics_of(self.scan, columns, where)
        if snapshot is None or found is None:
            return None
        counts = counts_of(self.scan.metadata, snapshot.snapshot_id, self.gateway.spark)
        return catalog_entry(self.gateway, self.name, found, columns, {} if counts is None else counts.distinct)

    def _label(self, part: str, identity: str) -> IndexLabel:
        snapshot = self.scan.snapshot()
        return IndexLabel(self.name, None if snapshot is None else snapshot.snapshot_id, part, identity)

    def _source_of(self, files: ScanFiles, columns: "_Columns", counts: TableCounts | None = None) -> JavaObject:
        """A Parquet relation, whose files are read with the settings of a suitable session; as a plan where there is more to it."""
        gateway = self.gateway.callbacks()
        relation = self._relation_of(gateway, files, columns)
        if counts is not None and not self.is_streaming:
            return with_counts(gateway, relation, self.name, counts, columns.by_name)
        if self._index is not None and not self.is_streaming:
            return relation
        nodes = gateway.load_class("org.apache.spark.sql.execution.datasources.LogicalRelation$")
        return nodes.getField("MODULE$").get(None).apply(relation, self.is_streaming)

    def _relation_of(self, gateway: Gateway, files: ScanFiles, columns: "_Columns") -> JavaObject:
        schema, access, lister = columns.schema(self.mapping), self._access, FileLister(gateway, files)
        java_schema, constants = gateway.type(schema), gateway.type(file_index.schema_of(files.constants))
        options = {**_OPTIONS, **access.settings}

        def check(settings: ReadSettings) -> None:
            access.check()
            settings.check(needs_ids=columns.needs_ids)

        if self._index is None:
            current = read_settings(gateway, gateway.spark._jsparkSession, schema)
            session = reading_session(gateway.spark, current, needs_ids=columns.needs_ids)
            sources = gateway.jvm.org.apache.spark.sql.execution.datasources
            index = ScanFileIndex(lister, lambda: check(read_settings(gateway, session, schema)))
            parts = (index, constants, java_schema, gateway.none(), self._format(gateway, files), gateway.map(options))
            return sources.HadoopFsRelation(*parts, session)
        current = ReadSettings(*json.loads(self._index.settings(gateway.spark._jsparkSession, java_schema)))
        session = reading_session(gateway.spark, current, needs_ids=columns.needs_ids)
        asked = AskedFiles(lister, check, is_lasting=not access.settings)
        named = (str(files.label), lister.shown(), str(files.size))
        return self._index.relation(
            session, asked, *named, constants, java_schema, self._format(gateway, files), gateway.map(options)
        )

    def _format(self, gateway: Gateway, files: ScanFiles) -> JavaObject:
        if files.key is not None:
            # Without it there were no keys.
            reader = _our_reader(gateway.spark)
            return gateway.cached("encrypted rows", lambda: reader and reader.format(True))
        if files.deleted is None or self._reader is None:
            sources = gateway.jvm.org.apache.spark.sql.execution.datasources
            return self._shared(gateway, "parquet", sources.parquet.ParquetFileFormat)
        return self._shared(gateway, "live rows", partial(self._reader.format, False))

    def _shared(self, gateway: Gateway, name: str, made: Callable[[], JavaObject]) -> JavaObject:
        """A format whose readers queries share, unless they hold what a catalog vends."""
        readers = None if self._access.settings else door.entry(gateway.spark, "shared_readers")
        if readers is None:
            return gateway.cached(name, made)
        return gateway.cached(f"{name}, shared", lambda: readers.shared(made()))

    # -- deletes

    def _bit_test(self, position: Column) -> Column:
        """Whether the bit of a row is set. Spark sees the bits as a string, whose bytes generated code can read directly."""
        index = position.cast("int")
        byte = self.gateway.invoke(col(_BITS), "getByte", spark_types.ByteType(), F.shiftright(index, 3))
        return F.call_function("shiftright", byte.cast("int"), index.bitwiseAND(lit(7))).bitwiseAND(lit(1)) != lit(0)

    def _without_keys(self, rows: DataFrame, columns: "_Columns", group: KeyDeletes, group_index: int) -> DataFrame:
        """The rows that no delete of the group equals, in all its columns, null to null."""
        keys = self._keys(columns, group, group_index)
        own = [columns.raw(field_id) for field_id in group.field_ids]
        theirs = [col(f"key_{group_index}_{field_id}") for field_id in group.field_ids]
        equal = [
            _comparable(one, columns.field(field_id)).eqNullSafe(_comparable(other, columns.field(field_id)))
            for one, other, field_id in zip(own, theirs, group.field_ids, strict=True)
        ]
        later = col(f"number_{group_index}") > col(file_index.SEQUENCE_NUMBER.name)
        here = (col(f"scope_{group_index}") == lit(_EVERYWHERE)) | (col(f"scope_{group_index}") == col(_SCOPE))
        return rows.join(keys, reduce(Column.__and__, [*equal, later, here]), "left_anti")

    def _keys(self, columns: "_Columns", group: KeyDeletes, group_index: int) -> DataFrame:
        """The keys of a group of equality deletes, with their scope and sequence number."""
        tops = {columns.top(field_id).field_id: columns.top(field_id) for field_id in group.field_ids}
        schema = select_ids(Schema(*map(_optional, tops.values())), group.field_ids)
        fields = [replace(field, name=f"{PREFIX}key_{field.field_id}") for field in schema.fields]
        read = _Columns(self.gateway, Schema(*fields), self.scan.metadata, [])
        tasks = [planning.FileScanTask(file, (), AlwaysTrue(), number) for file, number in group.files]
        specs = self.scan.metadata.specs_by_id
        scope = Constant(
            _SCOPE,
            spark_types.StringType(),
            lambda task: self._scope(task) if specs[task.spec_id].fields else _EVERYWHERE,
            True,
        )
        files = ScanFiles(
            self._label(f"keys {', '.join(map(str, group.field_ids))}", str(self.scan.metadata.table_uuid)),
            lambda _: tasks,
            (file_index.SEQUENCE_NUMBER, scope),
            sum(file.file_size_in_bytes for file, _ in group.files),
            key=self._key,
        )
        rows = self._rows(self._source_of(files, read))
        return rows.select(
            *(read.raw(field_id).alias(f"key_{group_index}_{field_id}") for field_id in group.field_ids),
            col(file_index.SEQUENCE_NUMBER.name).alias(f"number_{group_index}"),
            col(_SCOPE).alias(f"scope_{group_index}"),
        )

    # -- what users see

    def _shown(self, field: types.NestedField, columns: "_Columns", is_deleted: Column | None) -> Column:
        if not reserved.is_reserved_id(field.field_id):
            if isinstance(field.field_type, types.UnknownType):
                return lit(None)
            return columns.shown(field.field_id, field.field_type, mapping=self.mapping)
        first = col(file_index.FIRST_ROW_ID.name)
        match field.field_id:
            case reserved.FILE.field_id:
                return col(file_index.FILE.name)
            case reserved.POS.field_id:
                return columns.position()
            case reserved.DELETED.field_id:
                return lit(False) if is_deleted is None else is_deleted
            case reserved.SPEC_ID.field_id:
                return col(file_index.SPEC_ID.name)
            case reserved.ROW_ID.field_id:
                return F.when(
                    first.isNotNull(), F.coalesce(columns.raw(reserved.ROW_ID.field_id), first + columns.position())
                )
            case reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                stored = columns.raw(reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id)
                return F.when(first.isNotNull(), F.coalesce(stored, col(file_index.SEQUENCE_NUMBER.name)))
            case _ if field.field_id == reserved.PARTITION_ID and isinstance(field.field_type, types.StructType):
                constants = ((inner, col(f"{PREFIX}partition_{index}")) for index, inner in enumerate(field.field_type))
                return F.struct(
                    *(
                        to_user(constant, inner.field_type, inner.field_type, self.mapping).alias(inner.name)
                        for inner, constant in constants
                    )
                )
            case _:
                raise AssertionError(f"no scan of files has the column {field.name}")


_PARTS = {
    FileKind.CLEAN: "clean",
    FileKind.POSITIONS: "position deletes",
    FileKind.KEYS: "equality deletes",
}


def total_size(snapshot: md.Snapshot) -> int:
    """Bytes of all files of a snapshot, from its summary; a large number if unknown, so that Spark does not broadcast it."""
    text = None if snapshot.summary is None else snapshot.summary.get("total-files-size")
    return int(text) if text is not None and text.isdigit() else _UNKNOWN_SIZE


class _Columns:
    """The columns of a relation: those of a schema and some more, each under a safe inner name."""

    def __init__(
        self, gateway: Gateway, schema: Schema, metadata: md.TableMetadata, extra: Sequence[types.NestedField]
    ) -> None:
        self._gateway = gateway
        own = [field for field in schema.fields if not isinstance(field.field_type, types.UnknownType)]
        self._schema = Schema(*own, *(replace(field, name=f"{PREFIX}{field.field_id}") for field in extra))
        stored = [field for field in self._schema.fields if field.field_id != reserved.POS.field_id]
        inner = inner_columns(stored, metadata)
        self._whole = inner.whole
        self.needs_ids = inner.needs_ids
        position = [replace(field, name=ROW_INDEX) for field in extra if field.field_id == reserved.POS.field_id]
        self._inner = Schema(*inner.fields, *position)
        self.by_name = {field.name: field for field in inner.fields}

    def schema(self, mapping: TypeMapping) -> spark_types.StructType:
        """The relation's schema for Spark, with only what the reader needs in its metadata."""
        schema = file_schema(self._inner, mapping)
        for field in schema.fields:
            field.metadata.pop(CURRENT_DEFAULT, None)
            if EXISTS_DEFAULT in field.metadata:
                # What fills a column that a file lacks.
                field.metadata[CURRENT_DEFAULT] = field.metadata[EXISTS_DEFAULT]
            if field.name == ROW_INDEX:
                # Spark's reader knows it by name, unless it has an id to look for.
                field.metadata = {}
        return schema

    def has(self, field: types.NestedField) -> bool:
        """Whether files may hold it."""
        return field.field_id in self._schema.fields_by_id

    def field(self, field_id: int) -> types.NestedField:
        """A field by its id."""
        return self._schema.find_field(field_id)

    def inner_field(self, field_id: int) -> types.NestedField:
        """A field as the relation has it, with the names that it has inside."""
        return self._inner.find_field(field_id)

    def is_whole(self, field_id: int) -> bool:
        """Whether Spark must read all of the column that a field is, or is in."""
        return self.top(field_id).field_id in self._whole

    def top(self, field_id: int) -> types.NestedField:
        """The column that a field is, or is in."""
        around = self._schema.ancestors(field_id)
        return around[-1] if around else self.field(field_id)

    def raw(self, field_id: int) -> Column:
        """The field as the relation has it."""
        column, *inner = (*reversed(self._inner.ancestors(field_id)), self._inner.find_field(field_id))
        value = col(quoted_name(column.name))
        if column.field_id in self._whole:
            value = self._gateway.nullable(value)
        return reduce(Column.getField, (field.name for field in inner), value)

    def position(self) -> Column:
        """The position of the row in its file."""
        return self._gateway.never_null(self.raw(reserved.POS.field_id))

    def shown(self, field_id: int, field_type: types.IcebergType | None = None, *, mapping: TypeMapping) -> Column:
        """The field as users see it, as a whole or with only the fields of a type."""
        stored = self.inner_field(field_id).field_type
        return to_user(
            self.raw(field_id), stored, field_type or self.field(field_id).field_type, mapping, self._gateway
        )


def _dropped_column(metadata: md.TableMetadata, field_id: int) -> types.NestedField:
    for schema in metadata.schemas_newest_first:
        if field_id in schema.fields_by_id:
            return _optional(select_ids(schema, [field_id]).fields[0])
    raise AssertionError(f"no schema has the field {field_id}")


def _optional(field: types.NestedField) -> types.NestedField:
    field_type = field.field_type
    if isinstance(field_type, types.StructType):
        field_type = types.StructType(*map(_optional, field_type.fields))
    return replace(field, field_type=field_type, required=False)


def _comparable(column: Column, field: types.NestedField) -> Column:
    """Spark's joins take -0.0 for 0.0, which are different keys."""
    return column.cast("string") if isinstance(field.field_type, types.FloatType | types.DoubleType) else column
