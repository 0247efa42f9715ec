"""Which deletes a task carries: each row of the spec's table, and what is refused as corrupt."""

from dataclasses import replace
from typing import Any

import pytest

from icefloe.errors import CorruptFileError
from icefloe.manifests import DataFile
from icefloe.partitioning import PartitionField, PartitionSpec, parse_partition_spec, transforms as tr
from icefloe.planning import FileScanTask, TableScan
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import DoubleType, LongType, StringType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "region", StringType()),
    NestedField(3, "score", DoubleType()),
)
BY_REGION = parse_partition_spec(["region"], SCHEMA)
BY_SCORE = parse_partition_spec(["score"], SCHEMA)
WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]


def row(number: int, region: str | None = "eu", score: float | None = 1.0) -> dict[int, Any]:
    return {1: number, 2: region, 3: score}


def plan(table: SyntheticTable, row_filter: str = "", **options: str) -> dict[str, FileScanTask]:
    scan = TableScan(table.metadata, table.storage, row_filter, options=options)
    return {task.file.file_path: task for task in scan.plan_files()}


def deletes(table: SyntheticTable, file: DataFile, row_filter: str = "", **options: str) -> list[str]:
    return sorted(each.file_path for each in plan(table, row_filter, **options)[file.file_path].deletes)


def test_position_deletes_reach_their_own_commit_and_older_ones() -> None:
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    old = table.data([row(1)])
    table.add(old)
    same = table.data([row(2)])
    other = table.data([row(3, "us")])
    wide = table.positions([(old, 0)], old, "unbounded")
    table.add(same, other, wide)
    new = table.data([row(4)])
    table.add(new)
    assert deletes(table, old) == deletes(table, same) == [wide.file_path]
    assert deletes(table, other) == deletes(table, new) == []


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_reach_only_older_commits_of_their_partition(version: int) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    old, elsewhere = table.data([row(1)]), table.data([row(1, "us")])
    table.add(old, elsewhere)
    same = table.data([row(1)])
    delete = table.equality((1,), [(1,)], 0, ("eu",))
    table.add(same, delete)
    assert deletes(table, old) == [delete.file_path]
    assert deletes(table, same) == deletes(table, elsewhere) == []


@pytest.mark.parametrize("version", WITH_DELETES)
def test_unpartitioned_equality_deletes_reach_every_partition_and_spec(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    plain = table.data([row(1)])
    table.add(plain)
    spec_id = table.evolve_spec(BY_REGION)
    parted = table.data([row(1, "us")], spec_id)
    table.add(parted)
    everywhere = table.equality((1,), [(1,)], 0)
    of_spec = table.equality((1,), [(1,)], spec_id, ("us",))
    table.add(everywhere, of_spec)
    assert deletes(table, plain) == [everywhere.file_path]
    assert deletes(table, parted) == sorted([everywhere.file_path, of_spec.file_path])


def test_a_spec_of_void_fields_is_unpartitioned() -> None:
    table = SyntheticTable(SCHEMA, 2, PartitionSpec(PartitionField(2, 1000, tr.VoidTransform(), "gone")))
    spec_id = table.evolve_spec(BY_REGION)
    parted = table.data([row(1, "us")], spec_id)
    table.add(parted)
    everywhere = table.equality((1,), [(1,)], 0, (None,))
    table.add(everywhere)
    assert deletes(table, parted) == [everywhere.file_path]


def test_unpartitioned_position_deletes_do_not_reach_other_specs() -> None:
    table = SyntheticTable(SCHEMA, 2)
    plain = table.data([row(1)])
    table.add(plain)
    parted = table.data([row(1, "us")], table.evolve_spec(BY_REGION))
    table.add(parted)
    wide = table.positions([(plain, 0)], plain, "unbounded")
    table.add(wide)
    assert deletes(table, plain) == [wide.file_path]
    assert deletes(table, parted) == []


@pytest.mark.parametrize("scope", ["reference", "partition"])
def test_position_deletes_of_one_file_reach_that_file_alone(scope: str) -> None:
    table = SyntheticTable(SCHEMA, 2)
    one, two = table.data([row(1)]), table.data([row(2)])
    table.add(one, two)
    delete = table.positions([(one, 0)], one, scope)
    table.add(delete)
    assert deletes(table, one) == [delete.file_path]
    assert deletes(table, two) == []


@pytest.mark.parametrize("value", [float("nan"), -0.0, 0.0, None])
def test_float_partitions_are_equal_bit_for_bit(value: float | None) -> None:
    table = SyntheticTable(SCHEMA, 2, BY_SCORE)
    files = {str(score): table.data([row(1, "eu", score)]) for score in (float("nan"), -0.0, 0.0, None)}
    table.add(*files.values())
    delete = table.equality((1,), [(1,)], 0, (value,))
    table.add(delete)
    for score, file in files.items():
        assert deletes(table, file) == ([delete.file_path] if score == str(value) else [])


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_stands_for_all_position_deletes_of_its_file(version: int) -> None:
    table = SyntheticTable(SCHEMA, 2)
    one, two = table.data([row(1), row(2)]), table.data([row(3)])
    table.add(one, two)
    wide = table.positions([(one, 0), (two, 0)], one, "unbounded")
    scoped = table.positions([(one, 0)], one, "reference")
    table.add(wide, scoped)
    table.upgrade(version)
    vector = table.vector(one, [0, 1])
    equality = table.equality((1,), [(1,)], 0)
    table.add(vector, equality)
    task = plan(table)[one.file_path]
    assert task.deletion_vector is not None
    assert task.deletion_vector.file_path == vector.file_path
    assert task.position_deletes == ()
    assert [each.file_path for each in task.equality_deletes] == [equality.file_path]
    assert deletes(table, two) == [wide.file_path]


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_carries_what_is_needed_to_read_it(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(1), row(2)])
    vector = table.vector(file, [1])
    table.add(file, vector)
    found = plan(table)[file.file_path].deletion_vector
    assert found == vector


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_two_vectors_for_one_file_are_corrupt(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(1), row(2)])
    table.add(file, table.vector(file, [0]), table.vector(file, [1]))
    with pytest.raises(CorruptFileError, match="two deletion vectors"):
        plan(table)


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_older_than_its_file_is_corrupt(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(1)])
    table.add(table.vector(file, [0]))
    table.add(file)
    with pytest.raises(CorruptFileError, match="sequence number 1, below 2"):
        plan(table)


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_in_another_partition_is_corrupt(version: int) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    file = table.data([row(1)])
    table.add(file, table.vector(file, [0], partition=("us",)))
    with pytest.raises(CorruptFileError, match="another one"):
        plan(table)


def test_a_position_delete_of_one_file_in_another_spec_is_corrupt() -> None:
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    file = table.data([row(1)])
    table.add(file)
    plain = table.evolve_spec(PartitionSpec())
    table.add(replace(table.positions([(file, 0)], file, "reference"), spec_id=plain, partition=()))
    with pytest.raises(CorruptFileError, match=r"spec 1.*spec 0"):
        plan(table)


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_delete_of_a_file_that_is_gone_does_not_matter(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    gone, kept = table.data([row(1)]), table.data([row(2)])
    table.add(gone, kept)
    table.add(table.vector(gone, [0]))
    table.add(removed=[gone], operation="delete")
    assert list(plan(table)) == [kept.file_path]
    assert deletes(table, kept) == []


EQUALITY_PRUNING = [
    # rows of the data file, keys of the delete, whether it may apply
    ([1, 5], [(3,)], True),
    ([1, 5], [(6,)], False),
    ([1, 5], [(-4,), (0,)], False),
    ([1, 5], [(0,), (9,)], True),
    ([1, 5], [(5,)], True),
]


@pytest.mark.parametrize("version", WITH_DELETES)
@pytest.mark.parametrize(("numbers", "keys", "applies"), EQUALITY_PRUNING)
def test_equality_deletes_are_pruned_by_ranges(
    version: int, numbers: list[int], keys: list[tuple[int]], applies: bool
) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(number) for number in numbers])
    table.add(file)
    delete = table.equality((1,), keys, 0)
    table.add(delete)
    assert deletes(table, file) == ([delete.file_path] if applies else [])
    assert deletes(table, file, **{"planning.prune-deletes": "false"}) == [delete.file_path]


NULL_PRUNING = [
    (["a", "b"], [(None,)], False),
    ([None, "b"], [(None,)], True),
    ([None, None], [("b",)], False),
    ([None, None], [("b",), (None,)], True),
    ([None, "c"], [(None,), ("a",)], True),
    ([None, "c"], [("a",)], False),
    (["aaa", "aab"], [("aac",)], True),  # bounds are cut after two characters
    (["aaa", "aab"], [("ac",)], False),
]


@pytest.mark.parametrize("version", WITH_DELETES)
@pytest.mark.parametrize(("regions", "keys", "applies"), NULL_PRUNING)
def test_equality_deletes_are_pruned_by_nulls(
    version: int, regions: list[str | None], keys: list[tuple[str | None]], applies: bool
) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(1, region) for region in regions])
    table.add(file)
    delete = table.equality((2,), keys, 0)
    table.add(delete)
    assert deletes(table, file) == ([delete.file_path] if applies else [])


def test_without_metrics_every_equality_delete_may_apply() -> None:
    table = SyntheticTable(SCHEMA, 2)
    file = table.data([row(1)], metrics={})
    table.add(file)
    delete = table.equality((1,), [(9,)], 0)
    bare = table.equality((1,), [(9,)], 0, with_metrics=False)
    table.add(delete, bare)
    assert deletes(table, file) == sorted([delete.file_path, bare.file_path])


def test_a_key_column_that_was_dropped_still_counts() -> None:
    table = SyntheticTable(SCHEMA, 2)
    low, high = table.data([row(1)]), table.data([row(100)])
    table.add(low, high)
    delete = table.equality((1,), [(100,)], 0)
    table.add(delete)
    table.evolve_schema(Schema(NestedField(2, "region", StringType()), NestedField(3, "score", DoubleType())))
    assert deletes(table, low) == []
    assert deletes(table, high) == [delete.file_path]


def test_other_columns_of_an_equality_delete_prune_nothing() -> None:
    """A delete of id 1 removes the row whatever its region is, though the file also notes another region."""
    table = SyntheticTable(SCHEMA, 2)
    file = table.data([row(1, "us")])
    table.add(file)
    delete = table.equality((1,), [(1,)], 0)
    noted = {2: b"eu"}
    delete = replace(
        delete,
        value_counts={**delete.value_counts, 2: 1},
        null_value_counts={**delete.null_value_counts, 2: 0},
        lower_bounds={**delete.lower_bounds, **noted},
        upper_bounds={**delete.upper_bounds, **noted},
    )
    table.add(delete)
    assert deletes(table, file, "region = 'us'") == [delete.file_path]


def test_the_filter_leaves_out_equality_deletes_of_other_rows() -> None:
    table = SyntheticTable(SCHEMA, 2)
    file = table.data([row(1), row(9)])
    table.add(file)
    low, high = table.equality((1,), [(1,)], 0), table.equality((1,), [(9,)], 0)
    table.add(low, high)
    assert deletes(table, file, "id > 5") == [high.file_path]
    scan = TableScan(table.metadata, table.storage, "id > 5")
    list(scan.plan_files())
    assert scan.report is not None
    assert (scan.report.counts.delete_files, scan.report.counts.delete_files_skipped) == (2, 1)


@pytest.mark.parametrize("version", WITH_DELETES)
def test_unknown_transforms_match_deletes_but_prune_nothing(version: int) -> None:
    odd = PartitionSpec(
        PartitionField(2, 1000, tr.UnknownTransform("zorder"), "odd"),
        PartitionField(1, 1001, tr.IdentityTransform(), "id"),
    )
    table = SyntheticTable(SCHEMA, version, PartitionSpec(*odd.fields))
    one = replace(table.data([], metrics={}), record_count=5, partition=("x", 1))
    two = replace(table.data([], metrics={}), record_count=5, partition=("y", 1))
    table.add(one, two)
    delete = table.equality((1,), [(1,)], 0, ("x", 1))
    table.add(delete)
    assert deletes(table, one) == [delete.file_path]
    assert deletes(table, two) == []
    assert set(plan(table, "region = 'a'")) == {one.file_path, two.file_path}
    assert plan(table, "region = 'a' and id = 2") == {}
