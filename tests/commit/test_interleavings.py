"""Two writers, step by step: for each pair of operations and each isolation, whether the second one may go ahead.

Both plan on the same snapshot, and the first one commits. The second has then prepared its commit before that (and must
notice when it loses the race), or prepares it only after that; both must end the same way. When it goes ahead, the table
must be as if it had been planned after the first one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from icefloe.commit.committer import TableState
from icefloe.commit.history import Isolation, Planned
from icefloe.commit.update_snapshot import UpdateSnapshot
from icefloe.commit.vectors import load_vector
from icefloe.commit.view import read_entries
from icefloe.commit.workbench import Caches
from icefloe.errors import ValidationError
from icefloe.manifests.files import FileContent
from icefloe.manifests.wanted import WITHOUT_METRICS
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
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


@dataclass(frozen=True)
class Op:
    """An operation of the table of outcomes: how it is done by a writer that planned on a snapshot."""

    do: Callable[[UpdateSnapshot, Planned, int, str], object]
    feature: Feature | None = None


def _rows_deleted(up: UpdateSnapshot, planned: Planned, version: int, row: int, tag: str, **more: object) -> None:
    if allows(version, Feature.DELETION_VECTORS):
        up.row_delta(planned, vectors={EU_A: [row]}, conflict_filter=OF_A, **more)  # type: ignore[arg-type]  # few tests
        return
    deletes = position_deletes(region="eu", referenced_data_file=EU_A, path=f"memory://d/{tag}-deletes")
    up.row_delta(planned, deletes=[deletes], conflict_filter=OF_A, **more)  # type: ignore[arg-type]  # few tests


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
            p, remove=[EU_A], add=[data_file(f"memory://d/{tag}", 9, "eu", (1, 9))], conflict_filter=OF_A
        )
    ),
    "delete where eu": Op(lambda up, p, v, tag: up.delete("region = 'eu'")),
    "delete file eu-a": Op(lambda up, p, v, tag: up.delete_files([EU_A], p, conflict_filter=OF_A)),
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
            p, remove=[EU_A, EU_B], add=[data_file(f"memory://d/{tag}", 20, "eu", (1, 20))]
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
        **dict.fromkeys((*_REMOVES_EU_A, "delete row 1", "delete row 2", "update row 1", "rewrite eu"), "no"),
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
        table.update_snapshot().fast_append([data_file(path, 10, region, ids)])
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
        for columns in [read_entries(manifest, table.metadata, bench, WITHOUT_METRICS)]
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
    try:
        OPS[second].do(table.update_snapshot(), Planned.on(table.metadata), version, "second")
    except ValidationError:
        return None
    return content(table)


def names(version: int) -> list[str]:
    """The operations that tables of the version know."""
    return [name for name, op in OPS.items() if op.feature is None or allows(version, op.feature)]


# The oldest and the newest version differ from their neighbours in nothing that depends on isolation.
FULL = [each for each in ALL_VERSIONS if each not in (min(ALL_VERSIONS), max(ALL_VERSIONS))]
CASES = [
    (version, isolation, first)
    for version in ALL_VERSIONS
    for isolation in Isolation
    for first in names(version)
    if isolation is Isolation.SERIALIZABLE or version in FULL
]


@pytest.mark.parametrize(("version", "isolation", "first"), CASES, ids=lambda each: str(getattr(each, "value", each)))
def test_the_second_writer_goes_ahead_exactly_when_the_table_of_outcomes_says_so(
    version: int, isolation: Isolation, first: str
) -> None:
    # Whether the second one is prepared early or late cannot depend on the level: each check asks for the level itself.
    may_differ = isolation is Isolation.SERIALIZABLE
    for second in names(version):
        may = expected(first, second, version, isolation)
        for prepared_before in (True, False) if version in FULL and may_differ else (True,):
            table, committer = at(base_state(version) if prepared_before else after_first(version, first))
            planned = Planned(base_state(version).metadata.current_snapshot_id, isolation)
            case = (first, second, prepared_before)
            try:
                with table.transaction() as tx:
                    OPS[second].do(tx.update_snapshot(), planned, version, "second")
                    committer._state = after_first(version, first)
                went_ahead = True
            except ValidationError:
                went_ahead = False
            assert went_ahead is may, case
            found = content(table.refresh())
            if went_ahead:
                assert found == serial(version, first, second), case
            else:
                assert table.metadata is after_first(version, first).metadata, case


def test_the_table_of_outcomes_has_every_pair() -> None:
    assert OUTCOMES.keys() == OPS.keys()
    for row in OUTCOMES.values():
        assert row.keys() == OPS.keys()
