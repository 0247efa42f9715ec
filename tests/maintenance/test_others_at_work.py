"""Others change the table at any step of a procedure: no row is lost or revived, whoever commits first."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from icefloe import Table
from icefloe.catalog import Catalog
from icefloe.errors import CommitFailed, IcefloeError, ValidationError
from icefloe.versions import ALL_VERSIONS
from tests.catalog.faults import Wire, wired
from tests.catalog.tables import maker
from tests.maintenance.worn import CHANGES, NAME, PROCEDURES, Others, check_whole, worn_table

Result = TypeVar("Result")


class Meeting(Wire):
    """A wire that lets others act at one of its steps."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._meets_at = at
        self._act = act
        self.failure: BaseException | None = None
        """What went wrong with the others, if it was no conflict: procedures go on without what they may do without."""

    def around(self, action: str, what: str, do: Callable[[], Result]) -> Result:
        if self._begun and len(self.steps) >= self._meets_at:
            self.meet()
        return super().around(action, what, do)

    def meet(self) -> None:
        """Let them act, unless they have."""
        act, self._act = self._act, lambda: None
        try:
            act()
        except (CommitFailed, ValidationError):
            # They were too late, and may be: they have changed nothing.
            return
        except BaseException as error:
            self.failure = error
            raise


@pytest.fixture
def new_catalog(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], Catalog]]:
    catalogs: list[Catalog] = []

    def new() -> Catalog:
        catalogs.append(maker("memory", tmp_path / str(len(catalogs)), request)())
        return catalogs[-1]

    yield new
    for catalog in catalogs:
        catalog.close()


def meet(catalog: Catalog, procedure: str, change: str, seed: int, version: int) -> None:
    """Run a procedure, and a change at a random step of it; then the rows are what the change left."""
    table = worn_table(catalog, version)
    others = Others(catalog, seed)
    wire = Meeting(random.Random(seed).randrange(60), lambda: others.act(change))
    maintained: Table = wired(catalog, wire).load_table(NAME)
    wire.begin()
    refusal: IcefloeError | None = None
    try:
        PROCEDURES[procedure].run(maintained)
    except IcefloeError as error:
        # A refusal is allowed, a wrong row is not.
        refusal = error
    try:
        wire.meet()
        assert wire.failure is None
        others.check(table)
        check_whole(table)
        PROCEDURES[procedure].run(table.refresh())
        others.check(table)
        check_whole(table)
    except Exception as error:
        error.add_note(f"{procedure} and {change}, seed {seed}, v{version}; refused: {refusal}")
        raise


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_rows_are_neither_lost_nor_revived(procedure: str, new_catalog: Callable[[], Catalog]) -> None:
    rng = random.Random(procedure)
    versions = [version for version in ALL_VERSIONS if PROCEDURES[procedure].applies(version)]
    meet(new_catalog(), procedure, rng.choice((*CHANGES, *PROCEDURES)), rng.randrange(1000), rng.choice(versions))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_rows_are_neither_lost_nor_revived_at_any_step(
    procedure: str, version: int, new_catalog: Callable[[], Catalog]
) -> None:
    if not PROCEDURES[procedure].applies(version):
        pytest.skip("nothing to do in this version")
    for number, change in enumerate((*CHANGES, *PROCEDURES)):
        for seed in range(3):
            meet(new_catalog(), procedure, change, 10 * number + seed, version)
