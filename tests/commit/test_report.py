"""Reports of commits: one for each snapshot, with how it ended, delivered without disturbing the commit."""

import logging
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.commit import CommitCounts, CommitReport
from icefloe.commit.report import commit_counts
from icefloe.errors import CommitFailed, CommitStateUnknown, InvalidPropertyError
from icefloe.planning import LoggingReporter, ScanReport, reporter_named
from icefloe.planning.report import CallingReporter
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.commit.tables import Fault, data_file, fail_at, lose_race, new_table, timing

every_version = pytest.mark.parametrize("version", ALL_VERSIONS)
GATHERED: list[Any] = []


def gather(report: Any) -> None:
    GATHERED.append(report)


class Broken:
    """A reporter that cannot report."""

    def report(self, report: Any) -> None:
        raise RuntimeError(f"no {report}")


@pytest.fixture(autouse=True)
def nothing_gathered() -> None:
    GATHERED.clear()


def reporting(version: int = 2, fault: Fault | None = None, properties: Mapping[str, str] | None = None) -> Table:
    """A table whose reports are gathered, with a fault in its catalog."""
    _, committer = new_table(version, properties=properties)
    if fault is not None:
        committer.fault = fault
    return Table(("db", "t"), committer.load(), committer, timing=timing(), reporter=CallingReporter(gather))


@every_version
def test_an_append_is_reported(version: int) -> None:
    table = reporting(version)
    snapshot = table.update_snapshot().fast_append([data_file("memory://d/a", 10), data_file("memory://d/b", 5)])
    (report,) = GATHERED
    assert snapshot is not None
    assert (report.outcome, report.operation, report.attempts) == ("committed", "append", 1)
    assert (report.snapshot_id, report.sequence_number) == (snapshot.snapshot_id, snapshot.sequence_number)
    assert report.table_uuid == table.metadata.table_uuid
    assert (report.counts.added_data_files, report.counts.added_records, report.counts.removed_records) == (2, 15, 0)
    assert report.counts.manifests_created == 1
    assert report.problem is None


def test_each_snapshot_of_a_transaction_is_reported() -> None:
    table = reporting()
    with table.transaction() as transaction:
        transaction.update_snapshot().fast_append([data_file("memory://d/a")])
        transaction.update_snapshot().fast_append([data_file("memory://d/b")])
    assert [each.snapshot_id for each in GATHERED] == [each.snapshot_id for each in table.snapshots()]


def test_a_commit_without_snapshots_is_reported() -> None:
    reporting().set_properties({"a": "b"})
    (report,) = GATHERED
    assert (report.outcome, report.snapshot_id, report.counts) == ("committed", None, CommitCounts())


def test_attempts_are_counted_and_timed() -> None:
    reporting(fault=lose_race(2)).update_snapshot().fast_append([data_file("memory://d/a")])
    (report,) = GATHERED
    assert report.attempts == 3
    assert report.seconds > 0


def test_commits_that_fail_are_reported_too() -> None:
    no_retries = {"commit.retry.num-retries": "0"}
    with pytest.raises(CommitFailed):
        reporting(fault=lose_race(), properties=no_retries).update_snapshot().fast_append([data_file("memory://d/a")])
    with pytest.raises(CommitStateUnknown):
        reporting(fault=fail_at("before swap", OSError("gone"))).update_snapshot().fast_append(
            [data_file("memory://d/b")]
        )
    assert [(each.outcome, each.snapshot_id, bool(each.problem)) for each in GATHERED] == [
        ("rejected", None, True),
        ("unknown", None, True),
    ]


def test_a_reporter_that_fails_does_not_disturb_the_commit(caplog: pytest.LogCaptureFixture) -> None:
    _, committer = new_table(2)
    table = Table(("db", "t"), committer.load(), committer, reporter=Broken())
    assert table.update_snapshot().fast_append([data_file("memory://d/a")]) is not None
    assert "failed" in caplog.text


def test_reports_go_to_the_log_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "icefloe.commit"):
        new_table(2)[0].update_snapshot().fast_append([data_file("memory://d/a", 10)])
    assert "append: committed in 1 attempts" in caplog.text
    assert "records +10 -0" in caplog.text


def test_nonsense_in_a_summary_counts_as_nothing() -> None:
    assert commit_counts({"added-records": "many", "added-data-files": "-1", "deleted-records": "7"}) == CommitCounts(
        removed_records=7
    )


def test_the_catalog_names_the_reporter_of_scans_and_commits() -> None:
    catalog = icefloe.load_catalog(str(uuid.uuid4()), type="memory", **{"metrics-reporter-impl": f"{__name__}.gather"})
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", "id long")
    with catalog.create_table_transaction("n.u", "id long"):
        pass
    table.set_properties({"a": "b"})
    list(table.scan().plan_files())
    table.append(pa.table({"id": [1]}))
    list(table.scan().plan_files())
    kinds = [type(each) for each in GATHERED]
    assert kinds == [CommitReport, CommitReport, CommitReport, ScanReport]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("logging", LoggingReporter),
        ("icefloe.planning.report.LoggingReporter", LoggingReporter),
        (f"{__name__}.Broken", Broken),
        (f"{__name__}.gather", CallingReporter),
    ],
)
def test_reporters_have_names(name: str, kind: type) -> None:
    assert type(reporter_named(name)) is kind


@pytest.mark.parametrize(
    "name", ["", "nothing", "no.such.module.Reporter", "icefloe.planning.report.Nothing", f"{__name__}.GATHERED"]
)
def test_names_of_no_reporter_are_refused(name: str) -> None:
    with pytest.raises(InvalidPropertyError, match="reporter"):
        reporter_named(name)
