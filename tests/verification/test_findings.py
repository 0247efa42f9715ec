"""Each kind of finding: a real table is damaged in just that way, and just that is found."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit import Planned
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.manifests import FileContent, ManifestContent, ManifestFile
from icefloe.metadata import PartitionStatisticsFile, SnapshotLogEntry, StatisticsFile
from icefloe.metadata.refs import tag
from icefloe.partitioning import PartitionField, PartitionSpec, SortField, SortOrder, transforms as tr
from icefloe.schema import Schema, reserved
from icefloe.schema.binary import encode
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.verification import Code
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import data_file
from tests.verification.tables import Damaged, filled, rows

DATA, DELETES = ManifestContent.DATA, ManifestContent.DELETES


@dataclass(frozen=True)
class Damage:
    """What is done to a table, in which versions, and what must be found then."""

    code: Code
    do: Callable[[Damaged], None]
    feature: Feature | None = None
    level: str = "data"
    prepare: Callable[[Table], object] = lambda table: None


DAMAGES: dict[str, Damage] = {}


def damage(
    code: Code,
    feature: Feature | None = None,
    level: str = "data",
    prepare: Callable[[Table], object] = lambda table: None,
) -> Callable[[Callable[[Damaged], None]], Callable[[Damaged], None]]:
    def register(do: Callable[[Damaged], None]) -> Callable[[Damaged], None]:
        DAMAGES[do.__name__] = Damage(code, do, feature, level, prepare)
        return do

    return register


# -- the metadata itself


@damage(Code.CURRENT_SNAPSHOT)
def main_is_elsewhere(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(current_snapshot_id=found.metadata.snapshots[0].snapshot_id)


@damage(Code.CURRENT_SNAPSHOT)
def the_current_snapshot_is_not_there(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(current_snapshot_id=17)


@damage(Code.REF_UNRESOLVED)
def a_tag_without_a_snapshot(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(refs={**found.metadata.refs, "lost": tag(17)})


@damage(Code.LOG_UNRESOLVED)
def a_log_of_a_lost_snapshot(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(snapshot_log=(SnapshotLogEntry(17, 1), *found.metadata.snapshot_log))


@damage(Code.LOG_UNRESOLVED, level="files")
def a_log_of_a_lost_metadata_file(found: Damaged) -> None:
    found.storage.delete([found._resolved(found.metadata.metadata_log[0].metadata_file)])


@damage(Code.NEWER_TEXT, Feature.RELATIVE_PATHS)
def a_text_of_the_future(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(properties={**found.metadata.properties, "icefloe.v4.pin": "2999-01-01"})


@damage(Code.SCHEMA_UNRESOLVED)
def a_snapshot_of_no_schema(found: Damaged) -> None:
    found.change_snapshot(found.snapshot().snapshot_id, schema_id=17)


@damage(Code.SCHEMA_UNRESOLVED)
def no_current_schema(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(current_schema_id=17)


@damage(Code.SPEC_UNRESOLVED)
def no_default_spec(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(default_spec_id=17)


@damage(Code.SPEC_UNRESOLVED)
def a_manifest_of_no_spec(found: Damaged) -> None:
    first = found.manifests()[0]
    found.change_list(lambda each: replace(each, partition_spec_id=17) if each == first else each)


@damage(Code.SORT_ORDER_UNRESOLVED)
def no_default_sort_order(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(default_sort_order_id=17)


@damage(Code.SORT_ORDER_UNRESOLVED)
def a_file_of_no_sort_order(found: Damaged) -> None:
    found.change_file(DATA, lambda file: replace(file, sort_order_id=17))


@damage(Code.COLUMN_UNRESOLVED)
def a_spec_of_a_lost_column(found: Damaged) -> None:
    spec = PartitionSpec(PartitionField(17, 1000, tr.IdentityTransform(), "lost"), spec_id=17)
    found.metadata = found.metadata.evolve(partition_specs=(*found.metadata.partition_specs, spec))


@damage(Code.COLUMN_UNRESOLVED)
def an_order_of_a_lost_column(found: Damaged) -> None:
    order = SortOrder(SortField(17, tr.IdentityTransform()), order_id=17)
    found.metadata = found.metadata.evolve(sort_orders=(*found.metadata.sort_orders, order))


@damage(Code.STATISTICS_UNRESOLVED)
def statistics_of_a_lost_snapshot(found: Damaged) -> None:
    place = f"{found.metadata.location}/metadata/stats.parquet"
    found.storage.write(place, b"12345")
    found.metadata = found.metadata.evolve(partition_statistics=(PartitionStatisticsFile(17, place, 5),))


@damage(Code.LAST_ASSIGNED_ID)
def a_column_above_the_last(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(last_column_id=1)


@damage(Code.LAST_ASSIGNED_ID)
def a_partition_field_above_the_last(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(last_partition_id=999)


@damage(Code.SNAPSHOT_SEQUENCE, Feature.SEQUENCE_NUMBERS)
def a_snapshot_above_the_last(found: Damaged) -> None:
    number = found.metadata.last_sequence_number
    found.metadata = found.metadata.evolve(last_sequence_number=number - 1)


@damage(Code.SNAPSHOT_SEQUENCE, Feature.SEQUENCE_NUMBERS)
def a_sequence_number_twice(found: Damaged) -> None:
    number = found.metadata.snapshots[1].sequence_number
    found.change_snapshot(found.metadata.snapshots[0].snapshot_id, sequence_number=number)


@damage(Code.SNAPSHOT_SEQUENCE, Feature.SEQUENCE_NUMBERS)
def a_child_before_its_parent(found: Damaged) -> None:
    found.metadata = found.metadata.evolve(last_sequence_number=found.metadata.last_sequence_number + 5)
    found.change_snapshot(found.metadata.snapshots[0].snapshot_id, sequence_number=8)


@damage(Code.SNAPSHOT_ROW_IDS, Feature.ROW_LINEAGE)
def row_ids_reserved_twice(found: Damaged) -> None:
    found.change_snapshot(found.metadata.snapshots[1].snapshot_id, first_row_id=0)


@damage(Code.SNAPSHOT_ROW_IDS, Feature.ROW_LINEAGE)
def row_ids_reserved_beyond_the_next(found: Damaged) -> None:
    found.change_snapshot(found.snapshot().snapshot_id, added_rows=100)


# -- files as such


@damage(Code.FILE_MISSING, level="files")
def no_data_file(found: Damaged) -> None:
    found.storage.delete([found.data_file().file_path])


@damage(Code.FILE_MISSING, Feature.DELETE_FILES, level="files")
def no_delete_file(found: Damaged) -> None:
    found.storage.delete([found.file(DELETES).file_path])


@damage(Code.FILE_MISSING, level="metadata")
def no_manifest(found: Damaged) -> None:
    found.storage.delete([found.manifests()[0].manifest_path])


@damage(Code.FILE_MISSING, level="metadata")
def no_manifest_list(found: Damaged) -> None:
    found.storage.delete([found.list_location()])


@damage(Code.FILE_MISSING, level="files")
def no_metadata_file(found: Damaged) -> None:
    found.storage.delete([str(found.metadata_location)])


@damage(Code.FILE_MISSING, level="files")
def no_statistics(found: Damaged) -> None:
    place = f"{found.metadata.location}/metadata/stats.puffin"
    made = StatisticsFile(found.snapshot().snapshot_id, place, 10, 5)
    found.metadata = found.metadata.evolve(statistics=(made,))


@damage(Code.FILE_LENGTH, level="files")
def a_data_file_cut_short(found: Damaged) -> None:
    file = found.data_file()
    found.storage.write(file.file_path, found.storage.read(file.file_path)[:-1])


@damage(Code.FILE_LENGTH, level="files")
def a_manifest_of_another_length(found: Damaged) -> None:
    first = found.manifests()[0]
    found.change_list(lambda each: replace(each, manifest_length=each.manifest_length + 1) if each == first else each)


@damage(Code.FILE_UNREADABLE, level="footers")
def a_data_file_of_nonsense(found: Damaged) -> None:
    file = found.data_file()
    found.storage.write(file.file_path, b"x" * file.file_size_in_bytes)


@damage(Code.FILE_UNREADABLE, level="metadata")
def a_manifest_of_nonsense(found: Damaged) -> None:
    found.storage.write(found.manifests()[0].manifest_path, b"x" * 100)


@damage(Code.FILE_UNREADABLE, level="metadata")
def a_manifest_list_of_nonsense(found: Damaged) -> None:
    found.storage.write(found.list_location(), b"x" * 100)


@damage(Code.FILE_UNREADABLE)
def statistics_of_nonsense(found: Damaged) -> None:
    place = f"{found.metadata.location}/metadata/stats.puffin"
    found.storage.write(place, b"x" * 100)
    made = StatisticsFile(found.snapshot().snapshot_id, place, 100, 40)
    found.metadata = found.metadata.evolve(statistics=(made,))


def _add_from_elsewhere(table: Table) -> None:
    made = Damaged.of(table).write_rows("memory://elsewhere/x.parquet", rows(31, region="eu"))
    table.update_snapshot().fast_append([replace(made, partition=("eu",))])


@damage(Code.OUTSIDE_LOCATION, prepare=_add_from_elsewhere)
def a_file_from_elsewhere(found: Damaged) -> None:
    """Done."""


# -- manifests


@damage(Code.MANIFEST_COUNTS)
def other_counts(found: Damaged) -> None:
    first = found.manifests()[0]

    def change(each: ManifestFile) -> ManifestFile:
        return replace(each, deleted_rows_count=(each.deleted_rows_count or 0) + 1) if each == first else each

    found.change_list(change)


@damage(Code.MANIFEST_SUMMARY)
def a_summary_that_excludes_partitions(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    assert first.partitions is not None
    narrow = replace(first.partitions[0], upper_bound=b"eu")
    found.change_list(lambda each: replace(each, partitions=(narrow,)) if each == first else each)


@damage(Code.MANIFEST_SUMMARY)
def a_summary_without_bounds(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    assert first.partitions is not None
    none = replace(first.partitions[0], lower_bound=None, upper_bound=None)
    found.change_list(lambda each: replace(each, partitions=(none,)) if each == first else each)


@damage(Code.MANIFEST_SUMMARY, prepare=lambda table: table.append(_without_region()))
def a_summary_without_null(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    assert first.partitions is not None
    none = replace(first.partitions[0], contains_null=False)
    found.change_list(lambda each: replace(each, partitions=(none,)) if each == first else each)


def _without_region() -> Any:
    made = rows(41)
    return made.set_column(1, "region", [[None]]).cast(made.schema)


@damage(Code.MANIFEST_SUMMARY)
def too_few_summaries(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    found.change_list(lambda each: replace(each, partitions=()) if each == first else each)


@damage(Code.MANIFEST_SEQUENCE, Feature.SEQUENCE_NUMBERS)
def a_smallest_number_that_is_not(found: Damaged) -> None:
    first = found.manifests(DATA)[-1]
    found.change_list(lambda each: replace(each, min_sequence_number=2) if each == first else each)


@damage(
    Code.MANIFEST_SEQUENCE,
    Feature.SEQUENCE_NUMBERS,
    prepare=lambda table: table.update_snapshot().rewrite_manifests(DATA),
)
def a_manifest_above_its_snapshot(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    found.change_list(lambda each: replace(each, sequence_number=9) if each == first else each)


@damage(
    Code.ENTRY_SEQUENCE,
    Feature.SEQUENCE_NUMBERS,
    prepare=lambda table: table.update_snapshot().rewrite_manifests(DATA),
)
def entries_above_their_manifest(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    found.change_list(lambda each: replace(each, sequence_number=1) if each == first else each)


@damage(Code.ENTRY_SNAPSHOT)
def entries_of_another_snapshot(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    found.change_list(lambda each: replace(each, added_snapshot_id=17) if each == first else each)


@damage(Code.DELETE_FILE_FIELDS, Feature.DELETE_FILES)
def deletes_before_their_version(found: Damaged) -> None:
    # v4 has relative paths, which no version before it knows, so that nothing of it could be read as such a one.
    found.metadata = found.metadata.evolve(format_version=found.version - 1)


@damage(Code.PATH_TWICE, level="metadata", prepare=lambda table: table.append(rows(60, 61)))
def a_path_twice(found: Damaged) -> None:
    other = found.data_file(1)
    found.change_file(DATA, lambda file: replace(file, file_path=other.file_path))


def _add_again(table: Table) -> None:
    file = Damaged.of(table).data_file()
    table.update_snapshot().delete_files([file.file_path], Planned.on(table.metadata))
    table.update_snapshot().fast_append([replace(file, first_row_id=None)])


@damage(Code.PATH_ADDED_AGAIN, prepare=_add_again)
def a_path_again(found: Damaged) -> None:
    """Done."""


@damage(Code.VECTOR_TWICE, Feature.DELETION_VECTORS, level="metadata")
def two_vectors_for_a_file(found: Damaged) -> None:
    other = found.file(DELETES, 1)
    found.change_file(
        DELETES,
        lambda file: replace(file, referenced_data_file=other.referenced_data_file, partition=other.partition),
    )


@damage(Code.DELETE_PARTITION, Feature.DELETE_FILES, level="metadata")
def a_delete_in_another_partition(found: Damaged) -> None:
    other = found.file(DELETES, 1)
    found.change_file(DELETES, lambda file: replace(file, partition=other.partition))


@damage(Code.DELETE_SEQUENCE, Feature.DELETION_VECTORS)
def a_vector_older_than_its_file(found: Damaged) -> None:
    found.change_entries(
        found.manifests(DELETES)[0], lambda entries: [replace(entries[0], sequence_number=1), *entries[1:]]
    )


@damage(Code.DELETE_DANGLING, Feature.DELETE_FILES, level="metadata")
def a_delete_of_a_lost_file(found: Damaged) -> None:
    found.change_file(DELETES, lambda file: replace(file, referenced_data_file=f"{file.referenced_data_file}x"))


def _delete_too_early(table: Table) -> None:
    """Rows of a partition that comes later are not reached."""
    _delete_by_key(table, "jp")
    table.append(rows(51, region="jp"))


def _delete_by_key(table: Table, region: str) -> None:
    place = f"{table.location()}/data/keys.parquet"
    with table.storage.open_output(place) as sink:
        writer = equality_delete_writer(sink, table.schema(), [1], table.format_version)
        writer.write(rows(2).select(["id"]))
        done = writer.close()
    made = data_file(
        place, "parquet", done, content=FileContent.EQUALITY_DELETES, equality_ids=(1,), partition=(region,)
    )
    table.update_snapshot().row_delta(None, deletes=[made])


@damage(Code.DELETE_DANGLING, Feature.DELETE_FILES, prepare=_delete_too_early)
def an_equality_delete_of_nothing(found: Damaged) -> None:
    """Done."""


@damage(Code.COLUMN_UNRESOLVED, Feature.DELETE_FILES, "metadata", lambda table: _delete_by_key(table, "eu"))
def a_delete_by_a_lost_column(found: Damaged) -> None:
    found.change_file(DELETES, lambda file: replace(file, equality_ids=(17,)))


@damage(Code.ROW_IDS, Feature.ROW_LINEAGE)
def row_ids_of_two_files(found: Damaged) -> None:
    first, second = found.manifests(DATA)
    found.change_list(lambda each: replace(each, first_row_id=second.first_row_id) if each == first else each)


@damage(Code.ROW_IDS, Feature.ROW_LINEAGE)
def row_ids_that_were_never_given(found: Damaged) -> None:
    first = found.manifests(DATA)[0]
    found.change_list(lambda each: replace(each, first_row_id=1000) if each == first else each)


@damage(Code.SUMMARY_TOTALS)
def other_totals(found: Damaged) -> None:
    snapshot = found.snapshot()
    assert snapshot.summary is not None
    changed = {**snapshot.summary.properties, "total-records": "7"}
    found.change_snapshot(snapshot.snapshot_id, summary=replace(snapshot.summary, properties=changed))


# -- what is in files


@damage(Code.RECORD_COUNT)
def a_row_too_few(found: Damaged) -> None:
    file = found.data_file()
    ids = [each for each in range(12, 32) if each % 2 == ("eu", "us").index(file.partition[0])]
    made = found.write_rows(file.file_path, rows(*ids[: file.record_count - 1]))
    found.forget_totals()
    found.change_file(DATA, lambda _: replace(made, record_count=file.record_count, partition=file.partition))


@damage(Code.COLUMN_COUNTS)
def another_null_count(found: Damaged) -> None:
    found.change_file(DATA, lambda file: replace(file, null_value_counts={**file.null_value_counts, 3: 5}))


@damage(Code.COLUMN_COUNTS)
def another_nan_count(found: Damaged) -> None:
    found.change_file(DATA, lambda file: replace(file, nan_value_counts={3: 5}))


@damage(Code.COLUMN_BOUNDS)
def a_bound_that_excludes_values(found: Damaged) -> None:
    found.change_file(DATA, lambda file: replace(file, lower_bounds={**file.lower_bounds, 1: encode(15, LongType())}))


@damage(Code.PARTITION_VALUES)
def rows_of_another_partition(found: Damaged) -> None:
    file = found.data_file()
    other = rows(*range(12, 12 + file.record_count), region="jp")
    made = found.write_rows(file.file_path, other)
    found.forget_totals()
    found.change_file(DATA, lambda _: replace(made, partition=file.partition))


def with_ids(found: Damaged, ids: dict[str, int]) -> None:
    """The newest data file again, with these ids on its columns and none on others."""
    file = found.data_file()
    table = pq.read_table(io.BytesIO(found.storage.read(file.file_path)))
    fields = [
        each.with_metadata({"PARQUET:field_id": str(ids[each.name])} if each.name in ids else {})
        for each in table.schema
    ]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(table.columns, schema=pa.schema(fields)), sink, store_schema=False)
    found.storage.write(file.file_path, sink.getvalue())
    found.change_file(DATA, lambda each: replace(each, file_size_in_bytes=len(sink.getvalue())))
    found.forget_totals()


@damage(Code.FIELD_IDS, level="footers")
def a_column_without_its_id(found: Damaged) -> None:
    with_ids(found, {"id": 1, "region": 2})


@damage(Code.FIELD_IDS)
def a_column_under_another_id(found: Damaged) -> None:
    with_ids(found, {"id": 1, "region": 2, "price": 77})


@damage(Code.FIELD_IDS, level="footers")
def a_file_without_ids(found: Damaged) -> None:
    with_ids(found, {})


@damage(Code.VECTOR_CONTENT, Feature.DELETION_VECTORS)
def a_vector_with_another_bit(found: Damaged) -> None:
    file = found.file(DELETES)
    assert file.content_offset is not None
    content = bytearray(found.storage.read(file.file_path))
    content[file.content_offset + 12] ^= 1
    found.storage.write(file.file_path, bytes(content))


@damage(Code.VECTOR_CONTENT, Feature.DELETION_VECTORS)
def a_vector_elsewhere_in_its_file(found: Damaged) -> None:
    found.forget_totals()
    found.change_file(DELETES, lambda file: replace(file, content_offset=(file.content_offset or 0) + 1))


@damage(Code.VECTOR_CONTENT, Feature.DELETION_VECTORS)
def a_vector_of_another_count(found: Damaged) -> None:
    found.forget_totals()
    found.change_file(DELETES, lambda file: replace(file, record_count=2))


def _delete_positions(table: Table, path: str | None, position: int) -> None:
    place = f"{table.location()}/data/positions.parquet"
    file = Damaged.of(table).data_file()
    with table.storage.open_output(place) as sink:
        done = write_position_deletes(sink, {path or file.file_path: [position]}, 2).file
    made = data_file(place, "parquet", done, content=FileContent.POSITION_DELETES, partition=file.partition)
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[made])


@damage(
    Code.DELETE_POSITIONS, Feature.NEW_POSITION_DELETE_FILES, prepare=lambda table: _delete_positions(table, None, 99)
)
def a_position_beyond_the_file(found: Damaged) -> None:
    """Done."""


def _write_ids(table: Table, first: int) -> None:
    """A file whose rows bring ids along."""
    schema = Schema(*table.schema().fields, reserved.ROW_ID)
    place = f"{table.location()}/data/ids.parquet"
    made = rows(61, 63).append_column("_row_id", pa.array([first, first + 1], pa.int64()))
    with table.storage.open_output(place) as sink:
        writer = ParquetFileWriter(sink, schema)
        writer.write(made)
        done = writer.close()
    file = data_file(place, "parquet", done, partition=("us",))
    table.update_snapshot().fast_append([replace(file, nan_value_counts={})])


@damage(Code.ROW_IDS, Feature.ROW_LINEAGE, prepare=lambda table: _write_ids(table, 3))
def stored_ids_of_other_rows(found: Damaged) -> None:
    """Done."""


@damage(Code.ROW_IDS, Feature.ROW_LINEAGE, prepare=lambda table: _write_ids(table, 10**6))
def stored_ids_that_were_never_given(found: Damaged) -> None:
    """Done."""


CASES = [
    pytest.param(version, each, id=f"v{version}-{name}")
    for name, each in DAMAGES.items()
    for version in ALL_VERSIONS
    if (each.feature is None or allows(version, each.feature))
    and not (each.code is Code.DELETE_FILE_FIELDS and allows(version, Feature.RELATIVE_PATHS))
]


@pytest.mark.parametrize(("version", "case"), CASES)
def test_what_is_damaged_is_found_and_nothing_else(version: int, case: Damage) -> None:
    table = filled(version)
    case.prepare(table)
    found = Damaged.of(table)
    case.do(found)
    report = found.verify(case.level)
    assert report.codes == {case.code}, str(report)
    assert report.ok is (case.code.severity == "warning")
    assert case.code.label in str(report)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_before_it_is_damaged_the_table_is_clean(version: int) -> None:
    report = Damaged.of(filled(version)).verify()
    assert report.clean, str(report)


def test_every_kind_of_finding_has_its_damage() -> None:
    assert {each.code for each in DAMAGES.values()} == set(Code)
