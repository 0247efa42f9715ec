"""Every operation, on every kind of catalog, with every fault at every step that its writer takes.

However it ends: what was acknowledged is there, once; what was rejected is not; what is unknown is there as a whole or not at
all; every file that any snapshot needs is there; and whoever comes next can write. A clean run first shows the steps that an
operation takes, and what the table is before and after it; then a fault strikes at each of them in turn.
"""

import multiprocessing
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import Catalog, parse_identifier
from icefloe.catalog.pointers import PointerCatalog
from icefloe.errors import CommitStateUnknown, IcefloeError
from icefloe.manifests import DataFile
from icefloe.versions import Feature, allows
from tests.catalog import faults
from tests.catalog.faults import Fault, Killed, Step, Wire, wired
from tests.catalog.operations import (
    MINDING_OTHERS,
    NEW,
    OPERATIONS,
    ORDERS,
    Operation,
    check_whole,
    describe,
    files_of,
    known,
    new_orders,
    rows,
)
from tests.catalog.tables import home_of, live_files, maker

FAULTS: dict[str, tuple[Fault, ...]] = {
    "killed": (faults.KILL_BEFORE, faults.KILL_AFTER),
    "full disk": (faults.FULL_DISK, faults.FULL_DISK_FOR_GOOD, faults.FAILED_AFTER_WRITING, faults.UNDELETABLE),
    "unreadable file": (faults.UNREADABLE_ONCE, faults.UNREADABLE),
    "lost reply": (faults.LOST_REPLY, faults.LOST_REPLY_AND_CATALOG, faults.LOST_REQUEST),
    "sent twice": (faults.SENT_TWICE,),
}


@dataclass
class World:
    """A catalog with one table that is put back as it was before every case."""

    kind: str
    version: int
    catalog: Catalog
    served: Catalog | None = None
    """What is behind a REST catalog."""
    files: dict[str, bytes] = field(default_factory=dict)
    pointer: str = ""
    clean: dict[tuple[str, bool, bool], "Clean"] = field(default_factory=dict)
    spare: list[DataFile] = field(default_factory=list)

    def remember(self) -> None:
        """What `reset` comes back to, and a file that others can commit."""
        table = self.catalog.load_table(ORDERS)
        self.spare = files_of(table, rows(90, region="jp"))
        found = self.catalog.storage.list_prefix(home_of(self.catalog))
        self.files = {info.location: self.catalog.storage.read(info.location) for info in found}
        self.pointer = str(self.catalog.load_table(ORDERS).metadata_location)

    def stored(self) -> set[str]:
        """Every file that there is now."""
        return {info.location for info in self.catalog.storage.list_prefix(home_of(self.catalog))}

    def reset(self) -> None:
        """The table as it was made, no other table, no other file."""
        stored = self.stored()
        self.catalog.storage.delete(stored - self.files.keys())
        for location in self.files.keys() - stored:
            self.catalog.storage.write(location, self.files[location])
        behind = self.served or self.catalog
        if isinstance(behind, PointerCatalog):
            orders, new = parse_identifier(ORDERS), parse_identifier(NEW)
            pointers = behind._table_pointers
            assert pointers.swap(orders, str(pointers.find(orders)), self.pointer)
            pointers.remove(new)

    def rival(self) -> None:
        """Another writer, who is faster."""
        table = known(self.catalog.load_table(ORDERS))
        table.update_snapshot().fast_append(self.spare, check_duplicates=False)

    def next_writer(self, operation: Operation, found: Mapping[str, Any] | None) -> None:
        """Whoever comes next can write, and only that changes."""
        if found is None:
            operation.begin(self.catalog, self.version, reads=False)()
            return
        table = known(self.catalog.load_table(operation.table))
        table.set_properties({"next": "writer"})
        now = describe(self.catalog, operation.table)
        assert now == {**found, "properties": {**found["properties"], "next": "writer"}}
        if operation.table == ORDERS:
            table.update_snapshot(branch="next").fast_append(self.spare, check_duplicates=False)
            assert live_files(table, table.refs()["next"].snapshot_id).count(self.spare[0].file_path) >= 1


@dataclass(frozen=True)
class Clean:
    """An operation without faults: its steps, and what the table is before and after."""

    steps: tuple[Step, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


WORLDS = [("memory", 1), ("memory", 4), ("sqlite", 3), ("postgres", 2), ("hadoop", 3), ("rest", 2)]
"""Each kind of catalog, and each version."""
every_operation = pytest.mark.parametrize("name", OPERATIONS)
every_fault = pytest.mark.parametrize("family", FAULTS)


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    kind, version = request.param
    make = maker(kind, Path(tmp_path_factory.mktemp(f"{kind}{version}")), request)
    with make.server, make() as catalog:
        catalog.create_namespace("shop")
        new_orders(catalog, version)
        made = World(kind, version, catalog, make.served)
        made.remember()
        yield made


def worlds(of: list[tuple[str, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("world", of, indirect=True, ids=lambda each: f"{each[0]}-v{each[1]}")


def applies(world: World, name: str, raced: bool) -> bool:
    """Whether the operation can be done there."""
    if raced and name in MINDING_OTHERS:
        return False
    return name != "format version" or allows(world.version + 1, Feature.FILE_SYSTEM_TABLES)


def clean_run(world: World, name: str, fault: Fault, raced: bool) -> Clean:
    """What the operation does when nothing goes wrong."""
    key = (name, raced, fault.reads)
    if key not in world.clean:
        operation = Operation(name)
        world.reset()
        if raced:
            world.rival()
        before = describe(world.catalog, operation.table)
        world.reset()
        wire = Wire(rival=world.rival if raced else None)
        done = operation.begin(wired(world.catalog, wire), world.version, reads=fault.reads)
        wire.begin()
        done()
        after = describe(world.catalog, operation.table)
        check_whole(world.catalog, operation.table)
        assert after != before
        assert wire.has_committed
        world.clean[key] = Clean(tuple(wire.steps), before, after)
    return world.clean[key]


def run(world: World, name: str, wire: Wire, *, reads: bool) -> str:
    """How the operation ends for its writer."""
    operation = Operation(name)
    world.reset()
    with wired(world.catalog, wire) as catalog:
        do = operation.begin(catalog, world.version, reads=reads)
        wire.begin()
        try:
            do()
        except Killed:
            return "killed"
        except CommitStateUnknown:
            return "unknown"
        except IcefloeError:
            return "rejected"
        finally:
            wire.end()
    return "acknowledged"


def check(world: World, name: str, clean: Clean, ended: str, committed: bool) -> None:
    """What must hold however the operation ended."""
    operation = Operation(name)
    found = describe(world.catalog, operation.table)
    match ended:
        case "acknowledged":
            assert found == clean.after
        case "rejected":
            assert found == clean.before
        case _:
            assert found == (clean.after if committed else clean.before)
    for table in {ORDERS, operation.table}:
        if world.catalog.table_exists(table):
            check_whole(world.catalog, table)
    world.next_writer(operation, found)


def strike(world: World, name: str, fault: Fault, number: int, raced: bool) -> None:
    clean = clean_run(world, name, fault, raced)
    wire = Wire(fault, number, world.rival if raced else None)
    ended = run(world, name, wire, reads=fault.reads)
    try:
        assert wire.struck is not None
        check(world, name, clean, ended, wire.has_committed)
    except Exception as error:
        steps = "".join(f"\n  {place} {step}" for place, step in enumerate(wire.steps))
        error.add_note(f"{name} on {world.kind} v{world.version}, {fault} at step {number}; it {ended}:{steps}")
        raise


def places(clean: Clean, fault: Fault) -> list[int]:
    """The numbers, among the steps that the fault can strike at, of those that make a case of their own."""
    found = fault.places(clean.steps)
    if fault is faults.KILL_AFTER:
        # Otherwise the same moment as before the next step.
        return [number for number, step in enumerate(found) if step.commits or step is found[-1]]
    return list(range(len(found)))


def cases(world: World, name: str, family: str) -> list[tuple[Fault, bool, int]]:
    """Every fault of the family at every step, without and with a faster writer."""
    return [
        (fault, raced, number)
        for raced in (False, True)
        if applies(world, name, raced)
        for fault in FAULTS[family]
        for number in places(clean_run(world, name, fault, raced), fault)
    ]


def some_families(world: World, name: str) -> list[str]:
    """Some of the families; each of them meets the operation in two of the worlds, and some operation in each world."""
    first = WORLDS.index((world.kind, world.version)) + list(OPERATIONS).index(name)
    return [family for number, family in enumerate(FAULTS) if (first + number) % len(WORLDS) < 2]


@worlds(WORLDS)
@every_operation
def test_a_fault_at_some_step_loses_nothing_and_doubles_nothing(world: World, name: str) -> None:
    # One case of each family, another one in each world; all of them are among the slow tests.
    for family in some_families(world, name):
        rng = random.Random(f"{name} {family} {world.kind} {world.version}")
        fault, raced = rng.choice(FAULTS[family]), rng.choice((False, True)) and applies(world, name, True)
        if applies(world, name, raced) and (found := places(clean_run(world, name, fault, raced), fault)):
            strike(world, name, fault, rng.choice(found), raced)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@worlds([*WORLDS, ("memory", 2), ("memory", 3)])
@every_fault
@every_operation
def test_a_fault_at_any_step_loses_nothing_and_doubles_nothing(world: World, name: str, family: str) -> None:
    for fault, raced, number in cases(world, name, family):
        strike(world, name, fault, number, raced)


# The real end of a process


def do_and_die(world: World, name: str, number: int, after: bool) -> None:
    """Be a writer that is killed at a step."""
    wire = Wire(faults.KILL_AFTER if after else faults.KILL_BEFORE, number)
    wire.really = True
    do = Operation(name).begin(wired(world.catalog, wire), world.version, reads=False)
    wire.begin()
    do()


SHARED = [each for each in WORLDS if each[0] != "memory"]
HALF_OF_SHARED = [
    pytest.param(world, name, id=f"{name}-{world[0]}-v{world[1]}")
    for number, world in enumerate(SHARED)
    for place, name in enumerate(OPERATIONS)
    if (number + place) % 2 == 0
]
"""Each operation in two of the four; the slow tests have them all."""


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("world", "name"), HALF_OF_SHARED, indirect=["world"])
def test_a_killed_process_leaves_all_or_nothing(world: World, name: str) -> None:
    kill_processes(world, name, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@worlds(SHARED)
@every_operation
def test_a_process_killed_at_any_step_leaves_all_or_nothing(world: World, name: str) -> None:
    kill_processes(world, name, 1000)


def kill_processes(world: World, name: str, most: int) -> None:
    if not applies(world, name, False):
        return
    clean = clean_run(world, name, faults.KILL_BEFORE, False)
    context = multiprocessing.get_context("fork")
    moments = [(each, False) for each in places(clean, faults.KILL_BEFORE)]
    moments += [(each, True) for each in places(clean, faults.KILL_AFTER)]
    for number, after in random.Random(f"{name} {world.kind}").sample(moments, min(most, len(moments))):
        world.reset()
        writer = context.Process(target=do_and_die, args=(world, name, number, after))
        writer.start()
        writer.join(60)
        assert writer.exitcode == -9
        committed = any(step.commits for step in faults.KILL_BEFORE.places(clean.steps)[: number + after])
        check(world, name, clean, "killed", committed)
