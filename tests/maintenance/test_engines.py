"""Which engine runs maintenance."""

from dataclasses import replace
from pathlib import Path

import pytest

from icefloe import Table
from icefloe.errors import InvalidInputError
from icefloe.maintenance import RewriteGroup, RewritePlan, Threads, engine_of
from icefloe.sql.rewrite_procedures import engine_for
from tests.maintenance.rewriting import filled


def test_this_process_is_the_default() -> None:
    engine = engine_of(None)
    assert isinstance(engine, Threads)
    assert list(engine.map(len, ["", "a", "bb"])) == [0, 1, 2]


@pytest.mark.parametrize("engine", ["flink", 7])
def test_other_engines_are_refused(engine: object) -> None:
    with pytest.raises(InvalidInputError, match="engine must be None, 'spark' or a Spark session"):
        engine_of(engine)


def planned(table: Table, size: int) -> RewritePlan:
    """A plan of one group of so many bytes."""
    plan = table.maintenance.rewrite_data_files(dry_run=True)
    return replace(plan, groups=(RewriteGroup(1, 0, "", ("a", "b"), size, 10, 1),))


def test_a_call_leaves_to_others_what_they_do_faster(tmp_path: Path) -> None:
    table = filled(tmp_path, files=1)
    little, much = planned(table, 1 << 20), planned(table, 1 << 30)
    cluster, laptop = Threads(Threads().cores + 1), Threads(Threads().cores)
    assert engine_for(much, cluster) is cluster
    assert engine_for(much, laptop) == Threads()
    assert engine_for(little, cluster) == Threads()
