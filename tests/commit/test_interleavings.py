"""Two writers, step by step: for each pair of operations and each isolation, whether the second one may go ahead.

Both plan on the same snapshot, and the first one commits: before the second prepares its commit; after that, so that it loses
the race; while it tries again; or after its swap, before it knows of that. It must end the same way whenever the first one comes.
When it goes ahead, the table must be as if it had been planned after the first one.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit import Caches, Isolation, Planned, TableState
from icefloe.commit.parent import Parent
from icefloe.commit.vectors import load_vector
from icefloe.errors import CommitFailed, CommitStateUnknown, ValidationError
from icefloe.manifests import WITHOUT_METRICS, DataFile, FileContent
from icefloe.schema import reserved
from icefloe.storage import Storage
from icefloe.table import Table
from icefloe.table.update_snapshot import UpdateSnapshot
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    SCHEMA,
    MemoryCommitter,
    bench_of,
    data_file,
    equality_deletes,
    handle,
    manifests,
    new_table,
    position_deletes,
)

EU_A, EU_B, US = "memory://d/eu-a", "memory://d/eu-b", "memory://d/us"
SHARED = Caches()
"""Files never change, so that all handles here may remember them together; thousands of cases are read faster."""
OF_A = "region = 'eu' and id <= 10"
"""What row-level operations here read: the rows of the file `eu-a`."""


@cache
def stored_file(path: str, region: str, first: int, last: int) -> DataFile:
    """A data file that exists, with row ids from 0 on: a rewrite looks for rows that were deleted meanwhile."""
    ids = pa.array(range(first, last + 1), pa.int64())
    columns = {"id": ids, "region": pa.array([region] * len(ids)), "price": pa.array([1.0] * len(ids))}
    fields = [*SCHEMA.fields, reserved.ROW_ID]
    arrays = [*columns.values(), pa.array(range(len(ids)), pa.int64())]
    schema = pa.schema(
        [
            pa.field(field.name, array.type, not field.required, {"PARQUET:field_id": str(field.field_id)})
            for field, array in zip(fields, arrays, strict=True)
        ]
    )
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, schema=schema), sink)
    Storage().write(path, sink.getvalue())
    return data_file(path, len(ids), region, (first, last), file_size_in_bytes=len(sink.getvalue()))


@dataclass(frozen=True)
class Op:
    """An operation of the table of outcomes: how it is done by a writer that planned on a snapshot."""

    do: Callable[[UpdateSnapshot, Planned, int, str], object]
    feature: Feature | None = None


def _rows_deleted(up: UpdateSnapshot, planned: Planned, version: int, row: int, tag: str, **more: object) -> None:
    if allows(version, Feature.DELETION_VECTORS):
        up.row_delta(planned.reading(OF_A), vectors={EU_A: [row]}, **more)  # type: ignore[arg-type]  # few tests
        return
    deletes = position_deletes(region="eu", referenced_data_file=EU_A, path=f"memory://d/{tag}-deletes")
    up.row_delta(planned.reading(OF_A), deletes=[deletes], **more)  # type: ignore[arg-type]  # few tests


def _upsert(up: UpdateSnapshot, tag: str) -> None:
    deletes = equality_deletes(region="eu", path=f"memory://d/{tag}-deletes")
    up.row_delta(None, add=[data_file(f"memory://d/{tag}", 1, "eu")], deletes=[deletes])


OPS = {
    "append to eu": Op(lambda up, p, v, tag: up.fast_append([data_file(f"memory://d/{tag}", 10, "eu", (100, 109))])),
    "append to eu-a's ids": Op(
        lambda up, p, v, tag: up.merge_append([data_file(f"memory://d/{tag}", 5, "eu", (1, 5))])
    ),
    "append to us": Op(lambda up, p, v, tag: up.fast_append([data_file(f"memory://d/{tag}", 10, "us", (1, 10))])),
    "overwrite where eu": Op(
        lambda up, p, v, tag: up.overwrite(p, row_filter="region = 'eu'", add=[data_file(f"memory://d/{tag}", 3, "eu")])
    ),
    "overwrite file eu-a": Op(
        lambda up, p, v, tag: up.overwrite(
            p.reading(OF_A), remove=[EU_A], add=[data_file(f"memory://d/{tag}", 9, "eu", (1, 9))]
        )
    ),
    "delete where eu": Op(lambda up, p, v, tag: up.delete("region = 'eu'")),
    "delete file eu-a": Op(lambda up, p, v, tag: up.delete_files([EU_A], p.reading(OF_A))),
    "replace eu": Op(lambda up, p, v, tag: up.replace_partitions([data_file(f"memory://d/{tag}", 4, "eu")], p)),
    "delete row 1": Op(lambda up, p, v, tag: _rows_deleted(up, p, v, 1, tag), Feature.DELETE_FILES),
    "delete row 2": Op(lambda up, p, v, tag: _rows_deleted(up, p, v, 2, tag), Feature.DELETE_FILES),
    "update row 1": Op(
        lambda up, p, v, tag: _rows_deleted(up, p, v, 1, tag, add=[data_file(f"memory://d/{tag}", 1, "eu", (2, 2))]),
        Feature.DELETE_FILES,
    ),
    "upsert to eu": Op(lambda up, p, v, tag: _upsert(up, tag), Feature.DELETE_FILES),
    "rewrite eu": Op(
        lambda up, p, v, tag: up.rewrite_files(
            p, remove=[EU_A, EU_B], add=[stored_file(f"memory://d/{tag}-rewritten", "eu", 1, 20)]
        )
    ),
    "rewrite manifests": Op(lambda up, p, v, tag: up.rewrite_manifests()),
}

# For each operation as the second one: what each first one means for it. `yes`: it goes ahead at both levels; `no`: at
# none; `snap`: at snapshot isolation only. What v3 and later can tell by their vectors, and v2 cannot, is `v3:`, the rest `v2:`.
ALWAYS = dict.fromkeys(OPS, "yes")
_REMOVES_EU_A = ("overwrite where eu", "overwrite file eu-a", "delete where eu", "delete file eu-a", "replace eu")
_CHANGES_ROWS = ("delete row 1", "delete row 2", "update row 1", "upsert to eu")

OF_PARTITION = {
    **ALWAYS,
    "append to eu": "snap",
    "append to eu-a's ids": "snap",
    **dict.fromkeys((*_REMOVES_EU_A, *_CHANGES_ROWS), "no"),
}
OF_FILE = {
    **ALWAYS,
    "append to eu-a's ids": "snap",
    **dict.fromkeys((*_REMOVES_EU_A, *_CHANGES_ROWS, "rewrite eu"), "no"),
}

OUTCOMES: dict[str, dict[str, str]] = {
    "append to eu": ALWAYS,
    "append to eu-a's ids": ALWAYS,
    "append to us": ALWAYS,
    "overwrite where eu": OF_PARTITION,
    "overwrite file eu-a": OF_FILE,
    "delete where eu": ALWAYS,
    "delete file eu-a": OF_FILE,
    "replace eu": OF_PARTITION,
    "delete row 1": {**OF_FILE, "delete row 1": "v3:no v2:yes", "delete row 2": "yes"},
    "delete row 2": {
        **OF_FILE,
        "delete row 1": "yes",
        "delete row 2": "v3:no v2:yes",
        "update row 1": "v3:snap v2:no",
    },
    "update row 1": {**OF_FILE, "delete row 2": "v3:snap v2:no"},
    "upsert to eu": ALWAYS,
    "rewrite eu": {
        **ALWAYS,
        **dict.fromkeys((*_REMOVES_EU_A, "rewrite eu"), "no"),
        **dict.fromkeys(("delete row 1", "delete row 2", "update row 1"), "v3:yes v2:no"),
    },
    "rewrite manifests": ALWAYS,
}


def expected(first: str, second: str, version: int, isolation: Isolation) -> bool:
    """What the table of outcomes says."""
    word = OUTCOMES[second][first]
    if " " in word:
        by_version = dict(part.split(":") for part in word.split())
        word = by_version["v3" if allows(version, Feature.DELETION_VECTORS) else "v2"]
    return {"yes": True, "no": False, "snap": isolation is Isolation.SNAPSHOT}[word]


@cache
def base_state(version: int) -> TableState:
    """A table with three files, each of a commit of its own."""
    table, committer = new_table(version, BY_REGION)
    for path, region, ids in ((EU_A, "eu", (1, 10)), (EU_B, "eu", (11, 20)), (US, "us", (1, 10))):
        table.update_snapshot().fast_append([stored_file(path, region, *ids)])
    return committer.load()


def at(state: TableState) -> tuple[Table, MemoryCommitter]:
    """A catalog of its own at this state; files are shared, since they never change."""
    committer = MemoryCommitter(state.metadata)
    committer._state = state
    return handle(committer, caches=SHARED), committer


@cache
def after_first(version: int, first: str) -> TableState:
    """The state after the first writer's commit."""
    table, committer = at(base_state(version))
    OPS[first].do(table.update_snapshot(), Planned.on(table.metadata), version, "first")
    return committer.load()


def content(table: Table) -> tuple[list[str], list[tuple[object, ...]]]:
    """The live data files, and what is deleted in them."""
    paths: list[str] = []
    deletes: list[tuple[object, ...]] = []
    bench = bench_of(table, SHARED)
    files = (
        file
        for manifest in manifests(table, caches=SHARED)
        for columns in [Parent(table.metadata, bench).read(manifest, WITHOUT_METRICS)]
        for file in columns.filter(columns.is_live).files()
    )
    for file in files:
        if file.content is FileContent.DATA:
            paths.append(file.file_path)
        elif file.is_deletion_vector:
            positions = tuple(load_vector(table.storage, file).positions().tolist())
            deletes.append((str(file.referenced_data_file), positions))
        else:
            deletes.append((file.file_path, ()))
    return sorted(paths), sorted(deletes, key=str)


@cache
def serial(version: int, first: str, second: str) -> tuple[list[str], list[tuple[object, ...]]] | None:
    """The content when the second one plans after the first; None if it cannot even be planned then."""
    table, _ = at(after_first(version, first))
    if second == "rewrite eu" and first in ("delete row 1", "delete row 2", "update row 1"):
        # The rows are deleted in the new file, and not left out of it.
        paths = [path for path in content(table)[0] if path not in (EU_A, EU_B)]
        new = "memory://d/second-rewritten"
        return sorted([*paths, new]), [(new, (int(first[-1]),))]
    try:
        OPS[second].do(table.update_snapshot(), Planned.on(table.metadata), version, "second")
    except ValidationError:
        return None
    return content(table)


def names(version: int) -> list[str]:
    """The operations that tables of the version know."""
    return [name for name, op in OPS.items() if op.feature is None or allows(version, op.feature)]


CASES = [(version, isolation, first) for version in ALL_VERSIONS for isolation in Isolation for first in names(version)]
every_case = pytest.mark.parametrize(
    ("version", "isolation", "first"), CASES, ids=lambda each: str(getattr(each, "value", each))
)


def check_second(
    version: int, first: str, second: str, isolation: Isolation, begin: TableState, interfere: Callable[..., None]
) -> None:
    """The second writer, planned on the base, begins at a state, and the first one comes in between."""
    table, committer = at(begin)
    planned = Planned(base_state(version).metadata.current_snapshot_id, isolation)
    try:
        with table.transaction() as tx:
            OPS[second].do(tx.update_snapshot(), planned, version, "second")
            interfere(committer)
        went_ahead = True
    except ValidationError:
        went_ahead = False
    assert went_ahead is expected(first, second, version, isolation)
    after = committer.load()
    if went_ahead:
        assert content(table.refresh()) == serial(version, first, second)
    else:
        assert after.metadata is after_first(version, first).metadata


@every_case
def test_the_second_writer_goes_ahead_exactly_when_the_table_of_outcomes_says_so(
    version: int, isolation: Isolation, first: str
) -> None:
    def come_first(committer: MemoryCommitter) -> None:
        committer._state = after_first(version, first)

    for second in names(version):
        # Prepared before the first one came, so that a race is lost.
        check_second(version, first, second, isolation, base_state(version), come_first)


# The other moments at which the first one can come: before anything is prepared, in the middle of the second one's retry, and
# after its swap, before it knows of that. What is checked then asks for the isolation itself, so that one level will do.


every_first = pytest.mark.parametrize(
    ("version", "first"), [(version, each) for version in ALL_VERSIONS for each in names(version)]
)


@every_first
def test_it_does_not_matter_when_the_first_writer_comes(version: int, first: str) -> None:
    # A third of the pairs for each version, another one for its neighbour; all of them are among the slow tests.
    check_moments(version, first, names(version)[(version + names(version).index(first)) % 3 :: 3])


@pytest.mark.slow
@every_first
def test_for_no_pair_it_matters_when_the_first_writer_comes(version: int, first: str) -> None:
    check_moments(version, first, names(version))


def check_moments(version: int, first: str, seconds: list[str]) -> None:
    isolation = Isolation.SERIALIZABLE
    for second in seconds:
        check_second(version, first, second, isolation, after_first(version, first), lambda committer: None)
        check_second(version, first, second, isolation, base_state(version), lambda c: _come_late(c, version, first))
        check_reply(version, first, second, isolation)


def _come_late(committer: MemoryCommitter, version: int, first: str) -> None:
    """The first one comes when the second one has lost a race already, has read the table again, and comes to its swap."""

    def fault(boundary: str) -> None:
        if boundary == "before swap" and committer.load() is base_state(version):
            committer.fault = come
            raise CommitFailed("lost against nobody in particular")

    def come(boundary: str) -> None:
        if boundary == "before swap":
            committer.fault = lambda _: None
            committer._state = after_first(version, first)

    committer.fault = fault


def check_reply(version: int, first: str, second: str, isolation: Isolation) -> None:
    """The second one swaps; before it hears of that, the other one commits too, planned on the base; then the reply is lost."""
    table, committer = at(base_state(version))
    other, _ = at(base_state(version))
    other._committer = committer
    planned = Planned(base_state(version).metadata.current_snapshot_id, isolation)
    went_ahead = []

    def fault(boundary: str) -> None:
        if boundary != "after swap":
            return
        committer.fault = lambda _: None
        try:
            OPS[first].do(other.update_snapshot(), planned, version, "first")
            went_ahead.append(True)
        except ValidationError:
            went_ahead.append(False)
        raise CommitStateUnknown("the reply was lost")

    committer.fault = fault
    OPS[second].do(table.update_snapshot(), planned, version, "second")
    if not went_ahead:
        # Nothing to do for the second one, such as manifests that are fine as they are.
        assert table.metadata is base_state(version).metadata
        return
    assert went_ahead == [expected(second, first, version, isolation)]
    assert table.state is committer.load()
    before = base_state(version).metadata
    ours = table.snapshots()[len(before.snapshots)]
    assert ours.parent_snapshot_id == before.current_snapshot_id
    assert table.metadata.is_ancestor(ours.snapshot_id, of=table.metadata.current_snapshot_id or 0)


def test_the_table_of_outcomes_has_every_pair() -> None:
    assert OUTCOMES.keys() == OPS.keys()
    for row in OUTCOMES.values():
        assert row.keys() == OPS.keys()
