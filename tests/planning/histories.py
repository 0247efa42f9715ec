"""Random tables: several snapshots, specs and schemas, deletes of all kinds, and predicates that often hit."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from icefloe.expressions import Expression, Literal, values as ex
from icefloe.manifests import DataFile
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.schema import Schema, types
from icefloe.versions import Feature, allows
from tests.planning.tables import Row, SyntheticTable, same_partition

NAN = float("nan")
HOUR = 3_600_000_000
ID = types.NestedField(1, "id", types.IntegerType(), required=True)
NAME = types.NestedField(2, "name", types.StringType())
SCORE = types.NestedField(3, "score", types.DoubleType())
TS = types.NestedField(4, "ts", types.TimestampType())
PLACE = types.NestedField(5, "place", types.StructType(types.NestedField(6, "zip", types.IntegerType())))
ADDED = types.NestedField(7, "added", types.LongType())
FIRST = Schema(ID, NAME, SCORE, TS, PLACE)
LATER = Schema(
    ADDED,
    types.NestedField(1, "id", types.LongType(), True),
    SCORE,
    types.NestedField(2, "label", types.StringType()),
    TS,
    PLACE,
)
"""The first schema with a column added, one promoted, one renamed, and the order changed."""

VALUES: dict[int, list[Any]] = {
    1: [-3, 0, 1, 2, 3, 7, -(2**31), 2**31 - 1],
    2: ["", "a", "ab", "abc", "b", "ba", "\U0010ffff" * 3, None],
    3: [-1.5, -0.0, 0.0, 2.5, 5e-324, 1.7e308, float("inf"), float("-inf"), NAN, None],
    4: [-25 * HOUR, -1, 0, HOUR, 24 * HOUR, 8760 * HOUR, -(10**9) * HOUR, 10**9 * HOUR, None],
    6: [1, 2, 3, None],
    7: [10, 20, None],
}
OTHERS: dict[int, list[Any]] = {
    1: [5, -(2**40), 2**40],
    2: ["aa", "z"],
    3: [1.0],
    4: [12 * HOUR],
    6: [9],
    7: [15],
}
"""Values that no row has: between others, and beyond the type that the column had at first."""
PARTITION_FIELDS = [
    PartitionField(1, 1000, tr.IdentityTransform(), "p0"),
    PartitionField(1, 1001, tr.BucketTransform(3), "p1"),
    PartitionField(2, 1002, tr.TruncateTransform(1), "p2"),
    PartitionField(3, 1003, tr.IdentityTransform(), "p3"),
    PartitionField(4, 1004, tr.DayTransform(), "p4"),
    PartitionField(4, 1005, tr.YearTransform(), "p5"),
    PartitionField(4, 1006, tr.HourTransform(), "p6"),
    PartitionField(6, 1007, tr.IdentityTransform(), "p7"),
    PartitionField(2, 1008, tr.VoidTransform(), "p8"),
]


def rows() -> st.SearchStrategy[Row]:
    """Rows with few values, so that predicates often hit."""
    plain = {field_id: st.sampled_from(VALUES[field_id]) for field_id in (1, 2, 3, 4, 7)}
    place = st.one_of(st.none(), st.sampled_from(VALUES[6]).map(lambda value: ((6, value),)))
    return st.fixed_dictionaries({**plain, 5: place})


@st.composite
def leaves(draw: st.DrawFn, schema: Schema) -> Expression:
    """One test of a column."""
    field_id = draw(st.sampled_from([each for each in VALUES if each in schema.fields_by_id]))
    column = schema.names_by_id[field_id]
    constants = [each for each in VALUES[field_id] if each is not None and each == each]
    tests: list[Any] = [
        ex.EqualTo,
        ex.NotEqualTo,
        ex.LessThan,
        ex.LessThanOrEqual,
        ex.GreaterThan,
        ex.GreaterThanOrEqual,
        ex.is_in,
        ex.not_in,
    ]
    tests += [ex.IsNull, ex.NotNull]
    tests += [ex.IsNaN, ex.NotNaN] if field_id == 3 else [ex.StartsWith, ex.NotStartsWith] if field_id == 2 else []
    test = draw(st.sampled_from(tests))
    if test in (ex.IsNull, ex.NotNull, ex.IsNaN, ex.NotNaN):
        return test(column)  # type: ignore[no-any-return]  # chosen from several classes
    if test in (ex.is_in, ex.not_in):
        chosen = draw(st.lists(st.sampled_from(constants), max_size=3))
        return test(column, [_typed(field_id, each) for each in chosen])  # type: ignore[no-any-return]  # as above
    return test(column, _typed(field_id, draw(st.sampled_from(constants))))  # type: ignore[no-any-return]  # as above


def random_predicate(rng: random.Random, schema: Schema, depth: int = 2) -> Expression:
    """A predicate of several tests. Without hypothesis, which would take longer to draw them than a scan takes."""
    kind = rng.randrange(6) if depth else 5
    if kind < 2:
        parts = [random_predicate(rng, schema, depth - 1) for _ in range(rng.randint(2, 3))]
        return ex.conjunction(*parts) if kind else ex.disjunction(*parts)
    if kind == 2:
        return ex.negation(random_predicate(rng, schema, depth - 1))
    return _random_leaf(rng, schema)


def _random_leaf(rng: random.Random, schema: Schema) -> Expression:
    field_id = rng.choice([each for each in VALUES if each in schema.fields_by_id])
    column = schema.names_by_id[field_id]
    constants = [each for each in VALUES[field_id] if each is not None and each == each]
    constants += OTHERS[field_id]
    nameless: list[Any] = [ex.IsNull, ex.NotNull, *([ex.IsNaN, ex.NotNaN] if field_id == 3 else [])]
    compared: list[Any] = [
        ex.EqualTo,
        ex.NotEqualTo,
        ex.LessThan,
        ex.LessThanOrEqual,
        ex.GreaterThan,
        ex.GreaterThanOrEqual,
    ]
    compared += [ex.StartsWith, ex.NotStartsWith] if field_id == 2 else []
    test: Any = rng.choice([*nameless, *compared, *compared, ex.is_in, ex.not_in])
    if test in nameless:
        found: Expression = test(column)
    elif test in (ex.is_in, ex.not_in):
        found = test(column, [_typed(field_id, each) for each in rng.choices(constants, k=rng.randint(0, 4))])
    else:
        found = test(column, _typed(field_id, rng.choice(constants)))
    return found


def _typed(field_id: int, value: Any) -> Any:
    return Literal(value, types.TimestampType()) if field_id == 4 else value


@dataclass
class History:
    """A random table and what happened to it."""

    table: SyntheticTable
    data: list[DataFile]
    deletes: list[DataFile]
    vectors: dict[str, DataFile]


@st.composite
def histories(draw: st.DrawFn, version: int) -> History:
    """Tables with several snapshots, specs and schemas; with deletes of all kinds where the version has them."""
    first = 2 if version > 2 and draw(st.booleans()) else version
    history = History(SyntheticTable(FIRST, first, draw(specs(0))), [], [], {})
    steps = draw(st.integers(1, 4))
    for step in range(steps):
        if step == steps - 1 and history.table.metadata.format_version < version:
            history.table.upgrade(version)
        if draw(st.integers(0, 2)) == 0 and len(history.table.metadata.schemas) == 1:
            history.table.evolve_schema(LATER)
        if draw(st.integers(0, 2)) == 0:
            history.table.evolve_spec(draw(specs(step + 1)))
        _step(draw, history)
    return history


def specs(number: int) -> st.SearchStrategy[PartitionSpec]:
    """Unpartitioned, or some of the fields, with names of their own."""
    fields = st.lists(st.sampled_from(PARTITION_FIELDS), max_size=2, unique_by=lambda each: each.source_ids)
    return fields.map(
        lambda chosen: PartitionSpec(
            *(
                PartitionField(each.source_id, 1000 + place, each.transform, f"s{number}{each.name}")
                for place, each in enumerate(chosen)
            )
        )
    )


def _step(draw: st.DrawFn, history: History) -> None:
    table = history.table
    version = table.metadata.format_version
    added: list[DataFile] = list(_new_data(draw, table))
    removed: list[DataFile] = []
    fresh: list[DataFile] = []
    if allows(version, Feature.DELETE_FILES):
        fresh, removed = _new_deletes(draw, history, added)
    if history.data and draw(st.integers(0, 3)) == 0:
        gone = draw(st.sampled_from(history.data))
        history.data.remove(gone)
        removed.append(gone)
        if (vector := history.vectors.pop(gone.file_path, None)) and vector not in removed:
            removed.append(vector)
    removed = [each for each in removed if each not in fresh]
    fresh = [each for each in fresh if each.referenced_data_file not in {gone.file_path for gone in removed}]
    if added or fresh or removed:
        numbers = {}
        if added and allows(version, Feature.SEQUENCE_NUMBERS) and draw(st.integers(0, 4)) == 0:
            # Compaction gives new files the number of the rows that they hold.
            numbers[added[0].file_path] = draw(st.integers(0, table.metadata.last_sequence_number))
        table.add(
            *added,
            *fresh,
            removed=removed,
            operation="overwrite",
            sequence_numbers=numbers,
            rewrite=draw(st.integers(0, 3)) == 0,
        )
    history.data += added
    history.deletes += fresh


def _new_data(draw: st.DrawFn, table: SyntheticTable) -> Iterator[DataFile]:
    spec_id = draw(st.sampled_from([each.spec_id for each in table.metadata.partition_specs]))
    groups: list[tuple[tuple[Any, ...], list[Row]]] = []
    for row in draw(st.lists(rows(), max_size=6)):
        known = {field_id: value for field_id, value in row.items() if field_id in table.schema.fields_by_id}
        partition = table.partition_of(known, spec_id)
        for other, members in groups:
            if same_partition(other, partition):
                members.append(known)
                break
        else:
            groups.append((partition, [known]))
    for _, members in groups:
        file = table.data(members, spec_id)
        # Metrics may be missing, each for itself.
        for metric in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
            for field_id in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=1)):
                getattr(file, metric).pop(field_id, None)
        yield file


def _new_deletes(draw: st.DrawFn, history: History, added: list[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    table = history.table
    found: list[DataFile] = []
    removed: list[DataFile] = []
    candidates = [*history.data, *added]
    vectors_only = allows(table.metadata.format_version, Feature.DELETION_VECTORS)
    for _ in range(draw(st.integers(0, 3)) if candidates else 0):
        target = draw(st.sampled_from(candidates))
        count = len(table.model.rows[target.file_path])
        kind = draw(st.sampled_from(["positions", "positions", "equality", "equality"]))
        if kind == "equality":
            found.append(_equality(draw, table, target))
        elif vectors_only:
            if target.file_path in history.vectors:
                removed.append(history.vectors[target.file_path])
                if removed[-1] in found:
                    found.remove(removed.pop())
            positions = draw(st.sets(st.integers(0, count - 1)))
            history.vectors[target.file_path] = table.vector(target, positions)
            found.append(history.vectors[target.file_path])
        else:
            scope = draw(st.sampled_from(["partition", "reference", "unbounded"]))
            others = [each for each in candidates if each.spec_id == target.spec_id]
            others = [each for each in others if same_partition(each.partition, target.partition)]
            files = (
                [target] if scope == "reference" else draw(st.lists(st.sampled_from(others), min_size=1, max_size=2))
            )
            hits = [(each, draw(st.integers(0, len(table.model.rows[each.file_path]) - 1))) for each in files]
            found.append(table.positions(hits, target, scope))
    return found, removed


def _equality(draw: st.DrawFn, table: SyntheticTable, target: DataFile) -> DataFile:
    drawn: list[int] = draw(st.lists(st.sampled_from([1, 2, 7]), min_size=1, max_size=2, unique=True))
    field_ids = tuple(drawn)
    field_ids = tuple(each for each in field_ids if each in table.schema.fields_by_id) or (1,)
    keys = draw(st.lists(st.tuples(*(st.sampled_from(VALUES[each]) for each in field_ids)), min_size=1, max_size=3))
    unpartitioned = [each.spec_id for each in table.metadata.partition_specs if not each.fields]
    with_metrics, is_global = draw(st.integers(0, 3)) > 0, draw(st.booleans())
    if unpartitioned and is_global:
        return table.equality(field_ids, keys, unpartitioned[0], (), with_metrics)
    return table.equality(field_ids, keys, target.spec_id, target.partition, with_metrics)
