"""Every statement of every scenario does the same on Java Iceberg and on our Spark; `scenarios/README.md` says how to add one.

The first scenario of each file is run by `make test`, in its last run; all others by `make test-peers`.
"""

from collections import Counter

import pytest

from tests.peers.sql.conftest import RESULTS
from tests.peers.sql.engines import Engines
from tests.peers.sql.page import Result
from tests.peers.sql.running import run_scenario
from tests.peers.sql.scenario import Run, Scenario, all_scenarios

SCENARIOS = all_scenarios()
FIRST = {each.file: each for each in reversed(SCENARIOS)}


def every_run() -> list[object]:
    """Each scenario in each of its runs; all but the representative ones are slow."""
    return [
        pytest.param(
            scenario,
            run,
            id=f"{scenario.file}: {scenario.name}, {run.title}",
            marks=() if scenario is FIRST[scenario.file] and run == scenario.runs[-1] else pytest.mark.slow,
        )
        for scenario in SCENARIOS
        for run in scenario.runs
    ]


@pytest.mark.parametrize(("scenario", "run"), every_run())
def test_both_engines_do_the_same(engines: Engines, scenario: Scenario, run: Run) -> None:
    report = run_scenario(engines, scenario, run)
    known = tuple(dict.fromkeys((expected.kind, expected.reason) for _, expected in report.seen))
    RESULTS.append(Result(scenario.file, scenario.name, run.title, not str(report), known))
    assert not str(report), str(report)


def test_there_are_as_many_scenarios_as_were_promised() -> None:
    assert len({each.statements for each in SCENARIOS}) >= 610
    assert sum(len(each.runs) for each in SCENARIOS) >= 900
    versions = Counter(run.version for each in SCENARIOS for run in each.runs)
    assert all(versions[version] > 50 for version in (1, 2, 3)), versions


def test_runs_that_a_difference_names_are_runs_of_its_scenario() -> None:
    for scenario in SCENARIOS:
        titles = {run.title for run in scenario.runs}
        for step in scenario.steps:
            for expected in step.expected:
                assert set(expected.runs) <= titles, (scenario.file, scenario.name, expected)
