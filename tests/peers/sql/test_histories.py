"""Random histories of SQL on Java Iceberg and on us: a few fixed seeds here, hours of them by `make test-sql-deep`."""

import pytest

from tests.peers.sql.engines import Engines
from tests.peers.sql.histories.generating import history
from tests.peers.sql.histories.program import program
from tests.peers.sql.histories.running import Runner

SEEDS = (4000, 4004, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (4002, 4007)))
"""Those of less than a minute, and a longer one."""


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_agree_on_a_history(engines: Engines, seed: int) -> None:
    made = history(seed)
    run = Runner(engines).run(made)
    assert run.findings == (), program(made, run.findings[0])
    assert run.steps == len(made.statements), "it ends at a difference that is expected: choose another seed"
