"""Several writers at once, each doing whatever comes to its mind: the table ends up as if they had come one after another.

Every writer says its intentions in the summaries of its snapshots. Afterwards the history is read, and the intentions are
replayed in its order on a model that is nothing but a set of rows. How the writers' steps interleave is drawn by a seed: one
writer moves at a time, and at every step outside of itself (a file, a pointer) the turn may go to another.
"""

import json
import multiprocessing
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog
from icefloe.commit import Planned
from icefloe.errors import AlreadyExistsError, CommitFailed, IcefloeError, ValidationError
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.catalog.faults import Wire, wired
from tests.catalog.operations import DDL, files_of, rows
from tests.catalog.tables import KINDS_AND_VERSIONS, PATIENT

Result = TypeVar("Result")
Row = tuple[int, str]

NAME = "shop.orders"
REGIONS = ("eu", "us", "jp")
BASE: frozenset[Row] = frozenset({(1, "eu"), (2, "eu"), (3, "us"), (4, "us"), (5, "jp")})
KEYS = range(1, 13)
"""The ids that deletes and upserts are about; appends bring others."""
REFUSED = (ValidationError, CommitFailed, AlreadyExistsError)
"""How an operation may rightly end that another one came in the way of."""


def new_table(catalog: Catalog, version: int, mode: str) -> Table:
    """A table with a row in each partition, and a branch."""
    modes = {"write.delete.mode": mode, "write.merge.mode": mode}
    properties = {"format-version": version, "commit.manifest.min-count-to-merge": "3", **modes, **PATIENT}
    properties |= {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}
    table = catalog.create_table(NAME, DDL, partition_spec=["region"], properties=properties)
    for region in REGIONS:
        table.append(rows(*sorted(each for each, place in BASE if place == region), region=region))
    table.manage_snapshots().create_branch("dev").commit()
    return table


# What writers do, and what it means


@dataclass(frozen=True)
class Intention:
    """What a writer wants: the rows that it adds, and which it takes away, in the words of the model."""

    kind: str
    add: tuple[Row, ...] = ()
    region: str | None = None
    ids: tuple[int, ...] = ()
    branch: str = "main"

    def replayed(self, content: frozenset[Row]) -> frozenset[Row]:
        """What the content is after it."""
        match self.kind:
            case "append":
                left = content
            case "overwrite" | "replace":
                left = frozenset(row for row in content if row[1] != self.region)
            case "delete":
                left = frozenset(row for row in content if row[0] not in self.ids)
            case "upsert":
                left = frozenset(row for row in content if row[0] not in {each[0] for each in self.add})
            case _:
                return content
        assert not left & frozenset(self.add), "a row came twice"
        return left | frozenset(self.add)

    def do(self, table: Table, note: dict[str, str]) -> object:
        """Do it to the table."""
        data = _data(self.add)
        match self.kind:
            case "append":
                return table.append(data, note, branch=self.branch)
            case "overwrite":
                return table.overwrite(data, f"region = '{self.region}'", note)
            case "replace":
                return table.dynamic_partition_overwrite(data, note)
            case "delete":
                return table.delete(f"id in ({', '.join(map(str, self.ids))})", note)
            case "upsert":
                return table.upsert(data, ["id"], snapshot_properties=note)
            case "rewrite":
                return _rewrite(table, str(self.region), note)
            case "manifests":
                return table.update_snapshot(snapshot_properties=note).rewrite_manifests()
            case "schema":
                with table.update_schema() as update:
                    update.add_column(f"c{self.ids[0]}", LongType())
                return None
            case _:
                raise AssertionError(self.kind)


def _data(found: tuple[Row, ...]) -> Any:
    columns = {"id": pa.array([each[0] for each in found], pa.int64()), "region": [each[1] for each in found]}
    return pa.table(columns, schema=pa.schema([("id", pa.int64()), ("region", pa.string())]))


def _rewrite(table: Table, region: str, note: dict[str, str]) -> object:
    planned = Planned.on(table.metadata)
    scan = table.scan(f"region = '{region}'", ("id", "region"))
    old = [task.file for task in scan.plan_files()]
    if not old:
        return None
    update = table.update_snapshot(snapshot_properties=note)
    return update.rewrite_files(planned, remove=old, add=files_of(table, scan.to_arrow()))


KINDS = ("append", "append", "overwrite", "replace", "delete", "delete", "upsert", "rewrite", "manifests", "schema")


def draw(rng: random.Random, number: int) -> Intention:
    """A random intention; its number makes the rows that it appends its own."""
    kind, region = rng.choice(KINDS), rng.choice(REGIONS)
    fresh = 1000 + number * 10
    match kind:
        case "append":
            added = tuple((fresh + each, rng.choice(REGIONS)) for each in range(2))
            return Intention(kind, added, branch=rng.choice(("main", "main", "dev")))
        case "overwrite" | "replace":
            return Intention(kind, ((fresh, region),), region)
        case "delete":
            return Intention(kind, ids=tuple(sorted(rng.sample(KEYS, 2))))
        case "upsert":
            return Intention(kind, tuple((each, rng.choice(REGIONS)) for each in sorted(rng.sample(KEYS, 2))))
        case _:
            return Intention(kind, region=region, ids=(number,))


# The writers


class Turns:
    """Lets one writer move at a time; whose turn is next is drawn at every step."""

    def __init__(self, seed: int, writers: int) -> None:
        self._rng = random.Random(seed)
        self._changed = threading.Condition()
        self._alive = set(range(writers))
        self._turn = self._rng.choice(sorted(self._alive))

    def step(self, writer: int) -> None:
        """Give the turn to somebody, and wait until it is ours."""
        with self._changed:
            self._pass_on()
            while self._turn != writer:
                assert self._changed.wait(60), "nobody moves"

    def wait(self, writer: int) -> None:
        """Wait for the first turn."""
        with self._changed:
            while self._turn != writer:
                assert self._changed.wait(60), "nobody moves"

    def leave(self, writer: int) -> None:
        """Take part no longer."""
        with self._changed:
            self._alive.discard(writer)
            self._pass_on()

    def _pass_on(self) -> None:
        self._turn = self._rng.choice(sorted(self._alive)) if self._alive else -1
        self._changed.notify_all()


class TurnWire(Wire):
    """A wire on which steps wait for their turns; helpers of a writer move within its turn."""

    def __init__(self, turns: Turns | None, writer: int) -> None:
        super().__init__()
        self._turns, self._writer, self._thread = turns, writer, 0

    def begin(self) -> None:
        super().begin()
        self._thread = threading.get_ident()

    def around(self, action: str, what: str, do: Callable[[], Result]) -> Result:
        if self._turns is not None and threading.get_ident() == self._thread and action != "read":
            self._turns.step(self._writer)
        return do()


@dataclass
class Run:
    """What happened: intentions by number, and which of them were acknowledged or refused."""

    intentions: dict[int, Intention] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)


def write(catalog: Catalog, run: Run, writer: int, seed: int, count: int, turns: Turns | None) -> None:
    """Be one writer."""
    rng, wire = random.Random(f"{seed} {writer}"), TurnWire(turns, writer)
    try:
        if turns is not None:
            turns.wait(writer)
        with wired(catalog, wire) as own:
            wire.begin()
            for each in range(count):
                number = writer * 100 + each
                intention = run.intentions[number] = draw(rng, number)
                try:
                    made = intention.do(own.load_table(NAME), {"intention": str(number)})
                except REFUSED:
                    run.refused.add(number)
                else:
                    if made is not None:
                        run.acknowledged.add(number)
    except BaseException as error:  # noqa: BLE001 - told by the test
        run.errors.append(error)
    finally:
        if turns is not None:
            turns.leave(writer)


def work(catalog: Catalog, seed: int, writers: int, count: int, turns: Turns | None) -> Run:
    """Let writers do their work, and wait for them."""
    run = Run()
    threads = [
        threading.Thread(target=write, args=(catalog, run, number, seed, count, turns)) for number in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
    assert not any(thread.is_alive() for thread in threads)
    for error in run.errors:
        raise error
    return run


# What must hold


def check(table: Table, run: Run) -> None:
    """The table is what the intentions make of it, in the order of its history."""
    told: list[int] = []
    base = 3
    for branch in ("main", "dev"):
        content = BASE
        for snapshot in _ancestors(table, branch)[base:]:
            assert snapshot.summary is not None
            number = int(snapshot.summary["intention"])
            told.append(number)
            assert run.intentions[number].branch == branch
            content = run.intentions[number].replayed(content)
        found = [(row["id"], row["region"]) for row in table.scan(ref=branch).to_arrow().to_pylist()]
        assert sorted(found) == sorted(content), f"{branch} is not what its history says"
    assert len(told) == len(set(told)), "an intention was committed twice"
    assert set(told) == run.acknowledged
    assert not run.acknowledged & run.refused
    columns = {field.name for field in table.schema().fields} - {"id", "region"}
    wanted = {f"c{n}" for n, each in run.intentions.items() if each.kind == "schema" and n not in run.refused}
    assert columns == wanted
    check_numbers(table)


def _ancestors(table: Table, branch: str) -> list[Any]:
    head = table.refs()[branch].snapshot_id
    return list(table.metadata.ancestors(head))[::-1]


def check_numbers(table: Table) -> None:
    """Sequence numbers and row ids are in order, and nobody's twice."""
    snapshots = table.snapshots()
    if allows(table.format_version, Feature.SEQUENCE_NUMBERS):
        assert [each.sequence_number for each in snapshots] == list(range(1, len(snapshots) + 1))
        for branch in ("main", "dev"):
            for one, two in pairwise(_ancestors(table, branch)):
                assert one.sequence_number < two.sequence_number
                assert two.parent_snapshot_id == one.snapshot_id
    if allows(table.format_version, Feature.ROW_LINEAGE):
        ends = [(each.first_row_id or 0, (each.first_row_id or 0) + (each.added_rows or 0)) for each in snapshots]
        for (_, end), (start, _) in pairwise(ends):
            assert start >= end
        assert ends[-1][1] == table.metadata.next_row_id
        for branch in ("main", "dev"):
            ids = table.scan(selected_fields=("id", "_row_id"), ref=branch).to_arrow().column("_row_id").to_pylist()
            assert len(ids) == len(set(ids))
            assert all(each is not None and each < table.metadata.next_row_id for each in ids)


def told(run: Run, seed: int) -> str:
    shown = {number: str(each) for number, each in sorted(run.intentions.items())}
    return f"seed {seed}, acknowledged {sorted(run.acknowledged)}, refused {sorted(run.refused)}: {json.dumps(shown)}"


def run_and_check(catalog: Catalog, version: int, seed: int, writers: int, count: int, in_turns: bool) -> Run:
    mode = ("merge-on-read", "copy-on-write")[seed % 2]
    new_table(catalog, version, mode)
    run = work(catalog, seed, writers, count, Turns(seed, writers) if in_turns else None)
    try:
        check(catalog.load_table(NAME), run)
    except (AssertionError, IcefloeError) as error:
        error.add_note(told(run, seed))
        raise
    return run


@pytest.mark.parametrize(("kind", "version"), KINDS_AND_VERSIONS)
def test_writers_in_turns_leave_what_a_serial_replay_gives(catalog: Catalog, version: int) -> None:
    run_and_check(catalog, version, 7 + version, writers=3, count=4, in_turns=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("kind", "version"), KINDS_AND_VERSIONS)
def test_many_writers_in_turns_leave_what_a_serial_replay_gives(catalog: Catalog, version: int, seed: int) -> None:
    run_and_check(catalog, version, seed, writers=4, count=6, in_turns=True)


@pytest.mark.parametrize(("kind", "version"), [("sqlite", 3), ("postgres", 2), ("hadoop", 3), ("memory", 4)])
def test_threads_that_write_at_once_leave_what_a_serial_replay_gives(catalog: Catalog, version: int) -> None:
    run = run_and_check(catalog, version, 40 + version, writers=3, count=5, in_turns=False)
    assert run.acknowledged


def write_and_tell(catalog: Catalog, writer: int, seed: int, count: int, start: Any, results: Any) -> None:
    """Be one writer in a process of its own."""
    start.wait(60)
    run = Run()
    write(catalog, run, writer, seed, count, None)
    results.put((run.intentions, run.acknowledged, run.refused, [repr(each) for each in run.errors]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "version"), [each for each in KINDS_AND_VERSIONS if each.values[0] != "memory"])
def test_processes_that_write_at_once_leave_what_a_serial_replay_gives(
    catalog: Catalog, version: int, seed: int
) -> None:
    new_table(catalog, version, ("merge-on-read", "copy-on-write")[seed % 2])
    context = multiprocessing.get_context("fork")
    start, results, writers = context.Barrier(4), context.Queue(), range(4)
    processes = [
        context.Process(target=write_and_tell, args=(catalog, each, seed, 8, start, results)) for each in writers
    ]
    for process in processes:
        process.start()
    run = Run()
    for _ in writers:
        intentions, acknowledged, refused, errors = results.get(timeout=250)
        assert not errors
        run.intentions |= intentions
        run.acknowledged |= acknowledged
        run.refused |= refused
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    try:
        check(catalog.load_table(NAME), run)
    except (AssertionError, IcefloeError) as error:
        error.add_note(told(run, seed))
        raise
