"""A procedure that is killed at any step: the rows are as before, and the next run finishes."""

import multiprocessing
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from icefloe.catalog import Catalog
from icefloe.versions import ALL_VERSIONS
from tests.catalog import faults
from tests.catalog.faults import Killed, Wire, wired
from tests.catalog.tables import maker
from tests.maintenance.worn import NAME, PROCEDURES, check_whole, rows_in, unneeded_files, worn_table


@pytest.fixture
def new_catalog(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Catalog]]:
    catalogs: list[Catalog] = []

    def new(kind: str) -> Catalog:
        folder = tmp_path / str(len(catalogs))
        folder.mkdir()
        catalogs.append(maker(kind, folder, request)())
        return catalogs[-1]

    yield new
    for catalog in catalogs:
        catalog.close()


def run_until(catalog: Catalog, procedure: str, number: int, *, really: bool = False) -> int:
    """Run a procedure, killed before a step that changes something; without such a step, how many there are."""
    wire = Wire(faults.KILL_BEFORE, number)
    wire.really = really
    table = wired(catalog, wire).load_table(NAME)
    wire.begin()
    with suppress(Killed):
        PROCEDURES[procedure].run(table)
    return len(faults.KILL_BEFORE.places(wire.steps))


def check_after(catalog: Catalog, procedure: str, before: object) -> None:
    """The rows are as before, and a second run leaves the table whole."""
    table = catalog.load_table(NAME)
    assert {ref: rows_in(table, ref) for ref in ("main", "dev")} == before
    check_whole(table)
    PROCEDURES[procedure].run(table.refresh())
    assert {ref: rows_in(table.refresh(), ref) for ref in ("main", "dev")} == before
    check_whole(table)


def kill(catalog: Catalog, procedure: str, version: int, number: int) -> None:
    """Kill a run of a procedure at a step, in this process."""
    table = worn_table(catalog, version)
    before = {ref: rows_in(table, ref) for ref in ("main", "dev")}
    run_until(catalog, procedure, number)
    try:
        check_after(catalog, procedure, before)
    except Exception as error:
        error.add_note(f"{procedure} killed at step {number}, v{version}")
        raise


def count_steps(catalog: Catalog, procedure: str, version: int) -> int:
    """How many steps of a run change something; such a run leaves no file behind."""
    table = worn_table(catalog, version)
    strange = unneeded_files(table)
    count = run_until(catalog, procedure, -1)
    assert unneeded_files(table) <= strange
    return count


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_killed_run_changes_no_row(procedure: str, new_catalog: Callable[[str], Catalog]) -> None:
    rng = random.Random(procedure)
    version = rng.choice([version for version in ALL_VERSIONS if PROCEDURES[procedure].applies(version)])
    count = count_steps(new_catalog("memory"), procedure, version)
    for number in rng.sample(range(count), min(count, 1)):
        kill(new_catalog("memory"), procedure, version, number)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_run_killed_at_any_step_changes_no_row(
    procedure: str, version: int, new_catalog: Callable[[str], Catalog]
) -> None:
    if not PROCEDURES[procedure].applies(version):
        pytest.skip("nothing to do in this version")
    for number in range(count_steps(new_catalog("memory"), procedure, version)):
        kill(new_catalog("memory"), procedure, version, number)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_killed_process_changes_no_row(procedure: str, new_catalog: Callable[[str], Catalog]) -> None:
    version = next(version for version in (3, 2, 1) if PROCEDURES[procedure].applies(version))
    count = count_steps(new_catalog("sqlite"), procedure, version)
    context = multiprocessing.get_context("fork")
    for number in range(count):
        catalog = new_catalog("sqlite")
        table = worn_table(catalog, version)
        before = {ref: rows_in(table, ref) for ref in ("main", "dev")}
        run = context.Process(target=run_until, args=(catalog, procedure, number), kwargs={"really": True})
        run.start()
        run.join(60)
        assert run.exitcode == -9
        check_after(catalog, procedure, before)
