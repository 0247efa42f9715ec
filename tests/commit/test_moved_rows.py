"""A rewrite while others delete, update and merge rows of its files: nothing comes back, nothing is lost, ids stay.

The oracle is the law of rewrites: a `replace` snapshot has the rows of its parent, with the same ids and numbers.
"""

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.commit import Planned
from icefloe.data import WriteRequest, data_file_of, write_data_files
from icefloe.errors import ValidationError
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.manifests import DataFile, FileContent, ManifestContent
from icefloe.partitioning import UNPARTITIONED
from icefloe.table import Table
from icefloe.verification import Severity, silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import BY_REGION, SCHEMA, MemoryCommitter, entries, handle, live_paths, new_table
from tests.shared_rows import row_modes

WITH_IDS = [each for each in ALL_VERSIONS if allows(each, Feature.ROW_LINEAGE)]
with_ids = pytest.mark.parametrize("version", WITH_IDS)
REGIONS = ("eu", "us")
LINEAGE = ("_row_id", "_last_updated_sequence_number")
Row = tuple[Any, ...]


def rows(ids: Sequence[int], region: str = "eu", price: float = 1.0) -> pa.Table:
    """A row for each id."""
    columns = {"id": pa.array(ids, pa.int64()), "region": [region] * len(ids), "price": [price] * len(ids)}
    return pa.table(columns, schema=pa.schema([("id", pa.int64()), ("region", pa.string()), ("price", pa.float64())]))


def content(table: Table) -> list[Row]:
    """The rows with their ids and numbers."""
    has_ids = allows(table.format_version, Feature.ROW_LINEAGE)
    scan = table.scan().to_arrow() if not has_ids else table.scan(selected_fields=("*", *LINEAGE)).to_arrow()
    return sorted(map(tuple, (row.values() for row in scan.to_pylist())), key=repr)


@dataclass
class Rewriting:
    """A rewrite that has read its files and written the new ones, and is yet to be committed."""

    table: Table
    planned: Planned
    old: list[DataFile]
    new: list[DataFile]
    live: int

    @staticmethod
    def of(table: Table, row_filter: str = "region = 'eu'", pieces: int = 1, order: str = "id") -> "Rewriting":
        """All files with such rows, sorted, in so many new files."""
        table = table.refresh()
        fields = ("*", *LINEAGE) if allows(table.format_version, Feature.ROW_LINEAGE) else ("*",)
        scan = table.scan(row_filter, fields)
        old = [task.file for task in scan.plan_files()]
        data = scan.to_arrow().sort_by([(order, "descending")])
        bounds = [len(data) * number // pieces for number in range(pieces + 1)]
        parts = [data.slice(first, past - first) for first, past in pairwise(bounds)]
        new = [file for part in parts for file in written(table, part)]
        return Rewriting(table, Planned.on(table.metadata), old, new, len(data))

    def commit(self, table: Table | None = None) -> None:
        """Put the new files in place of the old ones."""
        update = (table or self.table).update_snapshot()
        made = update.rewrite_files(self.planned, remove=self.old, add=self.new, live_rows=self.live)
        assert made is not None
        assert made.operation == "replace"


def written(table: Table, data: pa.Table) -> list[DataFile]:
    """New files with these rows."""
    lineage = LINEAGE[0] in data.column_names
    return write_data_files(data, WriteRequest(table.metadata, table.storage, lineage=lineage)) if len(data) else []


def delete_equal(table: Table, ids: Sequence[int], region: str | None = None) -> DataFile:
    """An equality delete file for rows of these ids, of a partition where the table has some; not committed."""
    location = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    with table.storage.open_output(location) as sink:
        writer = equality_delete_writer(sink, SCHEMA, [1], table.format_version)
        writer.write(pa.table({"id": pa.array(ids, pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), False)])))
        done = writer.close()
    partition = () if region is None else (region,)
    return data_file_of(
        done,
        location,
        "parquet",
        content=FileContent.EQUALITY_DELETES,
        equality_ids=(1,),
        spec_id=table.spec().spec_id,
        partition=partition,
    )


def filled(version: int) -> tuple[Table, MemoryCommitter]:
    """Rows 0 to 29 in three files of one partition, each of a commit of its own, and rows 100 to 104 of another."""
    table, committer = new_table(version, BY_REGION, row_modes("merge-on-read"))
    for first in (0, 10, 20):
        table.append(rows(range(first, first + 10)))
    table.append(rows(range(100, 105), "us"))
    return table, committer


def check(table: Table, before: list[Row]) -> None:
    """The rows are the same, and all parts of the table fit together."""
    assert content(table.refresh()) == before
    check_parts(table)


def check_parts(table: Table) -> None:
    """The table is verified, but for its metadata files, which this catalog does not write."""
    report = table.verify(level="data", progress=silent)
    errors = [each for each in report.findings if each.severity is Severity.ERROR]
    assert [each.location for each in errors] == [table.metadata_location], str(report)


# -- others come before the commit


OTHERS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id in (3, 4, 25)"),
    "update": lambda table: table.upsert(rows([3, 17], price=9.0), ["id"]),
    "merge": lambda table: table.upsert(rows([5, 6, 7, 500, 501], price=2.0), ["id"]),
    "move": lambda table: table.upsert(rows([8], "us"), ["id"]),
    "twice": lambda table: (table.delete("id = 11"), table.delete("id = 12")),
    "equality": lambda table: table.update_snapshot().row_delta(None, deletes=[delete_equal(table, [1, 29], "eu")]),
    "equality and vector": lambda table: (
        table.update_snapshot().row_delta(None, deletes=[delete_equal(table, [1, 2], "eu")]),
        table.delete("id in (2, 3)"),
    ),
    "append": lambda table: table.append(rows([600])),
    "manifests": lambda table: (table.delete("id = 13"), table.update_snapshot().rewrite_manifests()),
    "delete manifests": lambda table: (
        table.delete("id = 13"),
        table.delete("id = 23"),
        table.update_snapshot().rewrite_manifests(ManifestContent.DELETES),
    ),
}


@with_ids
@pytest.mark.parametrize("other", OTHERS)
def test_rows_deleted_meanwhile_stay_deleted(version: int, other: str) -> None:
    table, committer = filled(version)
    rewriting = Rewriting.of(table, pieces=2)
    OTHERS[other](handle(committer))
    before = content(table.refresh())
    rewriting.commit()
    check(table, before)
    assert not {file.file_path for file in rewriting.old} & set(live_paths(table))


@pytest.mark.parametrize(("version", "other"), [(WITH_IDS[n % len(WITH_IDS)], each) for n, each in enumerate(OTHERS)])
def test_so_they_do_if_others_come_between_two_attempts(version: int, other: str) -> None:
    table, committer = filled(version)
    table.delete("id = 0")
    rewriting = Rewriting.of(table, order="price")
    handle(committer).delete("id = 27")
    expected: list[list[Row]] = []

    def come(boundary: str) -> None:
        if boundary == "before swap" and not expected:
            expected.append([])
            OTHERS[other](handle(committer))
            expected[0] = content(handle(committer))

    committer.fault = come
    rewriting.commit()
    check(table, expected[0])


@with_ids
def test_two_vectors_of_one_file_within_the_window(version: int) -> None:
    """[J #17764]: one file got several vectors since the plan; only the last one is live."""
    table, committer = filled(version)
    table.delete("id = 1")
    rewriting = Rewriting.of(table)
    for number in (2, 3, 4):
        handle(committer).delete(f"id = {number}")
    before = content(table.refresh())
    rewriting.commit()
    check(table, before)
    (vector,) = entries(table, ManifestContent.DELETES)
    assert vector.data_file.record_count == 3
    assert vector.data_file.referenced_data_file == rewriting.new[0].file_path


@with_ids
def test_the_vector_is_newer_than_the_file_whose_number_is_that_of_the_plan(version: int) -> None:
    table, committer = filled(version)
    rewriting = Rewriting.of(table)
    handle(committer).delete("id = 2")
    rewriting.commit()
    numbers = {entry.data_file.content: entry.sequence_number for entry in entries(table)}
    assert numbers[FileContent.POSITION_DELETES] == table.metadata.last_sequence_number
    file = next(each for each in entries(table) if each.data_file.file_path == rewriting.new[0].file_path)
    assert file.sequence_number == table.metadata.snapshot(rewriting.planned.snapshot_id or 0).sequence_number


@with_ids
def test_rows_may_go_to_another_spec(version: int) -> None:
    table, committer = filled(version)
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("bucket(2, id)")
    rewriting = Rewriting.of(table)
    OTHERS["merge"](handle(committer))
    before = content(table.refresh())
    rewriting.commit()
    check(table, before)


@with_ids
def test_a_whole_file_that_was_deleted_is_deleted_in_the_new_ones(version: int) -> None:
    """All rows of a small file were deleted or updated: the file itself is gone."""
    table, committer = filled(version)
    table.append(rows([40, 41]))
    rewriting = Rewriting.of(table)
    handle(committer).delete("id = 40")
    handle(committer).delete("id >= 40 and id < 50")
    handle(committer).upsert(rows([3], price=7.0), ["id"])
    before = content(table.refresh())
    rewriting.commit()
    check(table, before)


@with_ids
def test_a_file_that_was_rewritten_is_a_conflict(version: int) -> None:
    table, committer = filled(version)
    rewriting = Rewriting.of(table)
    other = handle(committer)
    other.set_properties(row_modes("copy-on-write"))
    other.delete("id < 3 or id >= 10 and id < 13")
    with pytest.raises(ValidationError, match="removed or rewrote it; 20 of the 30"):
        rewriting.commit()
    check_parts(table.refresh())


@with_ids
def test_a_file_that_another_rewrite_replaced_is_a_conflict(version: int) -> None:
    table, _ = filled(version)
    rewriting = Rewriting.of(table)
    Rewriting.of(table, "id < 10").commit()
    with pytest.raises(ValidationError, match="cannot be removed"):
        rewriting.commit()
    check_parts(table.refresh())


@with_ids
def test_a_small_file_that_was_rewritten_is_none(version: int) -> None:
    table, committer = filled(version)
    table.append(rows([40, 41]))
    rewriting = Rewriting.of(table)
    other = handle(committer)
    other.set_properties(row_modes("copy-on-write"))
    other.delete("id = 41")
    before = content(other)
    rewriting.commit()
    check(table, before)


@with_ids
def test_rows_without_ids_are_a_conflict(version: int) -> None:
    """Files from before the upgrade have no ids in the snapshot of the plan, though they have some by now."""
    table, committer = filled(2)
    table.upgrade_format_version(version)
    rewriting = Rewriting.of(table)
    handle(committer).delete("id = 3")
    before = content(table.refresh())
    with pytest.raises(ValidationError, match="had no ids"):
        rewriting.commit()
    check(table, before)
    Rewriting.of(table).commit()
    check(table, before)


@with_ids
def test_new_files_without_ids_are_a_conflict(version: int) -> None:
    table, committer = filled(version)
    rewriting = Rewriting.of(table)
    data = table.scan("region = 'eu'").to_arrow()
    rewriting.new = written(table, data)
    handle(committer).delete("id = 3")
    before = content(table.refresh())
    with pytest.raises(ValidationError, match="occurs 0 times in the new files"):
        rewriting.commit()
    check(table, before)


@with_ids
def test_rows_that_come_twice_are_a_conflict(version: int) -> None:
    table, committer = filled(version)
    table.delete("id = 0")
    rewriting = Rewriting.of(table)
    data = table.scan("region = 'eu'", ("*", *LINEAGE)).to_arrow().sort_by("id")
    rewriting.new = written(table, pa.concat_tables([data.slice(1), data.slice(3, 1)]))
    handle(committer).delete("id = 4")
    with pytest.raises(ValidationError, match="occurs 2 times in the new files"):
        rewriting.commit()


@with_ids
def test_deletes_of_before_the_upgrade_are_known(version: int) -> None:
    """A vector takes over what position delete files deleted before the plan: those rows are in no new file."""
    table, committer = filled(2)
    table.delete("id in (1, 2, 15)")
    table.upgrade_format_version(version)
    table.append(rows([50, 51, 52, 53]))
    rewriting = Rewriting.of(table)
    handle(committer).delete("id in (3, 16)")
    before = content(table.refresh())
    rewriting.commit()
    check(table, before)


@with_ids
def test_equality_deletes_made_into_vectors_meanwhile(version: int) -> None:
    """Those of before the plan are in no new file, those of after it are only in the vector by now."""
    table, committer = filled(version)
    old = delete_equal(table, [1, 2], "eu")
    table.update_snapshot().row_delta(None, deletes=[old])
    rewriting = Rewriting.of(table)
    newer = delete_equal(table, [3, 14], "eu")
    other = handle(committer)
    other.update_snapshot().row_delta(None, deletes=[newer])
    before = content(other)
    first, second, *_ = (file.file_path for file in sorted(rewriting.old, key=lambda file: file.first_row_id or 0))
    positions = {first: [1, 2, 3], second: [4]}
    with other.transaction() as tx:
        tx.update_snapshot().row_delta(Planned.on(other.metadata), vectors=positions)
        tx.update_snapshot().rewrite_files(Planned.on(other.metadata), remove_deletes=[old, newer])
    assert content(other.refresh()) == before
    rewriting.commit()
    check(table, before)


def test_equality_deletes_made_into_position_deletes_meanwhile_are_a_conflict() -> None:
    table, committer = filled(2)
    rewriting = Rewriting.of(table)
    other = handle(committer)
    newer = delete_equal(table, [3], "eu")
    other.update_snapshot().row_delta(None, deletes=[newer])
    before = content(other)
    path = next(task.file.file_path for task in other.scan("id = 3").plan_files())
    location = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    with table.storage.open_output(location) as sink:
        done = write_position_deletes(sink, {path: [3]}, 2)
    position = data_file_of(
        done.file,
        location,
        "parquet",
        content=FileContent.POSITION_DELETES,
        spec_id=0,
        partition=("eu",),
        referenced_data_file=done.referenced_data_file,
    )
    other.update_snapshot().rewrite_files(Planned.on(other.metadata), remove_deletes=[newer], add_deletes=[position])
    assert content(other.refresh()) == before
    with pytest.raises(ValidationError, match="for a data file that this commit removes"):
        rewriting.commit()
    check(table, before)


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_the_rows_that_were_read_are_counted_exactly(version: int) -> None:
    table, _ = filled(version)
    table.update_snapshot().row_delta(None, deletes=[delete_equal(table, [1, 2], "eu")])
    rewriting = Rewriting.of(table)
    assert rewriting.live == 28
    rewriting.live = 27
    with pytest.raises(ValidationError, match="28 rows in place of the 27 that were read"):
        rewriting.commit()
    rewriting.live = 28
    before = content(table)
    rewriting.commit()
    check(table, before)


@with_ids
def test_all_rows_may_be_deleted_meanwhile(version: int) -> None:
    table, committer = filled(version)
    rewriting = Rewriting.of(table)
    other = handle(committer)
    for first in (0, 10, 20):
        other.delete(f"id >= {first} and id < {first + 9}")
    before = content(other)
    rewriting.commit()
    check(table, before)


# -- random histories


@dataclass
class Machine:
    """Does random things to a table, and rewrites that are planned at one time and committed at another."""

    version: int
    seed: int
    pending: list[Rewriting] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        spec = self.rng.choice((UNPARTITIONED, BY_REGION))
        self.table, self.committer = new_table(self.version, spec, row_modes("merge-on-read"))
        self.next = 0
        self.append()
        self.append()

    def step(self) -> None:
        steps = [self.append, self.delete, self.delete, self.update, self.merge, self.equality]
        steps += [self.plan, self.plan, self.commit, self.commit, self.copy]
        self.rng.choice(steps)()

    def other(self) -> Table:
        return handle(self.committer)

    def _ids(self, most: int = 4) -> list[int]:
        return self.rng.sample(range(self.next), min(self.next, self.rng.randint(1, most)))

    def append(self) -> None:
        count = self.rng.randint(1, 12)
        self.other().append(rows(range(self.next, self.next + count), self.rng.choice(REGIONS)))
        self.next += count

    def delete(self) -> None:
        self.other().delete(f"id in ({', '.join(map(str, self._ids()))})")

    def update(self) -> None:
        self.other().upsert(rows(self._ids(), self.rng.choice(REGIONS), self.rng.random()), ["id"])

    def merge(self) -> None:
        ids = [*self._ids(), self.next, self.next + 1]
        self.next += 2
        self.other().upsert(rows(ids, self.rng.choice(REGIONS), self.rng.random()), ["id"])

    def copy(self) -> None:
        self.other().set_properties(row_modes("copy-on-write"))
        self.delete()
        self.other().set_properties(row_modes("merge-on-read"))

    def equality(self) -> None:
        table = self.other()
        region = None if table.spec().is_unpartitioned else self.rng.choice(REGIONS)
        table.update_snapshot().row_delta(None, deletes=[delete_equal(table, self._ids(), region)])

    def plan(self) -> None:
        region = self.rng.choice(REGIONS)
        rewriting = Rewriting.of(
            self.other(), f"region = '{region}'", self.rng.randint(1, 3), self.rng.choice(("id", "price"))
        )
        if self.table.refresh().spec().is_unpartitioned:
            # Files may hold rows of other regions, too.
            rewriting = Rewriting.of(self.other(), "", self.rng.randint(1, 3))
        if rewriting.old:
            self.pending.append(rewriting)

    def commit(self) -> None:
        if not self.pending:
            return
        rewriting = self.pending.pop(self.rng.randrange(len(self.pending)))
        before = content(self.table.refresh())
        try:
            rewriting.commit(self.other() if self.rng.random() < 0.5 else None)
        except ValidationError as problem:
            allowed = ("cannot be removed", "removed or rewrote it")
            assert any(each in str(problem) for each in allowed), problem  # noqa: PT017 - success is fine as well
        assert content(self.table.refresh()) == before


@with_ids
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_a_rewrite_never_changes_rows(version: int, seed: int) -> None:
    machine = Machine(version, seed)
    for _ in range(10):
        machine.step()
    while machine.pending:
        machine.commit()
    check_parts(machine.table.refresh())


@pytest.mark.slow
@with_ids
@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_no_longer_history_does_either(version: int, seed: int) -> None:
    machine = Machine(version, seed)
    for _ in range(30):
        machine.step()
    while machine.pending:
        machine.commit()
    check_parts(machine.table.refresh())
