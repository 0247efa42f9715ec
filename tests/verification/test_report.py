"""What a check says and to whom: reports as values and text, progress, and the choice of what is checked."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.errors import CorruptTableError, InvalidInputError, InvalidValueError, NoSuchSnapshotError
from icefloe.storage import FileInfo, Storage
from icefloe.verification import (
    Code,
    Finding,
    Level,
    Progress,
    Severity,
    VerificationReport,
    silent,
    verify,
)
from icefloe.verification.files import WORTH_IT
from icefloe.verification.verify import MOST_FINDINGS
from tests.verification.tables import Damaged, create, filled, rows


def damaged() -> Damaged:
    """A table whose newest snapshot has lost a data file."""
    found = Damaged.of(filled(2))
    found.storage.delete([found.data_file().file_path])
    return found


def test_a_clean_table() -> None:
    table = filled(2)
    report = table.verify(level="data", progress=silent)
    assert report.ok
    assert report.clean
    report.raise_if_broken()
    assert (report.figures.snapshots, report.figures.entries, report.figures.rows) == (3, 6, 22)
    assert str(report).startswith("clean: 0 errors, 0 warnings (level data)\nchecked in ")


def test_an_empty_table() -> None:
    assert create(2).verify(level="data", progress=silent).clean


def test_a_broken_table() -> None:
    found = damaged()
    report = found.verify("files")
    [finding] = report.findings
    assert finding.code is Code.FILE_MISSING
    assert finding.severity is Severity.ERROR
    assert finding.location is not None
    assert finding.location.endswith(".parquet")
    assert finding.snapshot_id == found.metadata.snapshots[1].snapshot_id
    assert not report.ok
    assert report.errors == report.findings
    assert str(finding).startswith("error: file-missing: memory://")
    assert "file-missing (1): a file does not exist" in str(report)
    with pytest.raises(CorruptTableError, match="file-missing"):
        report.raise_if_broken()


def test_reports_are_values() -> None:
    report = damaged().verify("files")
    again: VerificationReport = pickle.loads(pickle.dumps(report))
    assert again == report
    assert str(again) == str(report)


def test_warnings_do_not_break_a_table() -> None:
    found = Damaged.of(filled(2))
    snapshot = found.snapshot()
    assert snapshot.summary is not None
    found.change_snapshot(snapshot.snapshot_id, summary=replace(snapshot.summary, properties={"total-data-files": "9"}))
    report = found.verify("metadata")
    assert report.ok
    assert not report.clean
    assert report.warnings == report.findings
    report.raise_if_broken()
    assert "total-data-files is 9 and should be 4" in str(report)


def test_of_very_many_findings_the_first_are_kept() -> None:
    table = create(2)
    made = Damaged.of(table).write_rows("memory://elsewhere/x.parquet", rows(1))
    files = [replace(made, file_path=f"memory://elsewhere/{i}", partition=("us",)) for i in range(MOST_FINDINGS + 5)]
    table.update_snapshot().fast_append(files)
    report = table.verify(level="metadata", progress=silent)
    assert len(report.findings) == MOST_FINDINGS
    assert report.counts == {Code.OUTSIDE_LOCATION: MOST_FINDINGS + 5}
    assert f"... and {MOST_FINDINGS + 5 - 50} more" in str(report)
    assert table.verify(level="metadata", locations=["memory://elsewhere"], progress=silent).clean


def test_one_snapshot_one_ref_or_all() -> None:
    found = damaged()
    first, second, _ = (each.snapshot_id for each in found.metadata.snapshots)
    assert found.verify("files", snapshot_id=first).clean
    assert found.verify("files", snapshot_id=second).codes == {Code.FILE_MISSING}
    assert found.verify("files", ref="main").figures.snapshots == 1
    assert found.verify("files", snapshots="refs").figures.snapshots == 1
    assert found.verify("files").figures.snapshots == 3
    with pytest.raises(NoSuchSnapshotError):
        found.verify(snapshot_id=17)
    with pytest.raises(NoSuchSnapshotError):
        found.verify(ref="nowhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot_id": 1, "ref": "main"}, "give one"),
        ({"snapshots": "some"}, "'all' or 'refs'"),
        ({"level": "deep"}, "levels are metadata, files, footers, data"),
        ({"sample": 2}, "from 0 to 1"),
        ({"sample": "half"}, "from 0 to 1"),
        ({"locations": "s3://b"}, "list of texts"),
        ({"locations": [1]}, "list of texts"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        filled(2).verify(**options)


def test_a_sample_is_looked_into_and_all_files_are_asked_for() -> None:
    table = create(2)
    for number in range(20):
        table.append(rows(number))
    whole, none, some = (table.verify(sample=part, progress=silent).figures for part in (1, 0, 0.5))
    assert whole.files == none.files == some.files
    assert (whole.footers, none.footers) == (20, 0)
    assert 0 < some.footers < 20
    assert table.verify(sample=0.5, progress=silent).figures.footers == some.footers


class Counting(Storage):
    """Storage that counts how often it is asked for single files."""

    asked = 0

    def stat(self, location: str) -> FileInfo:
        self.asked += 1
        return super().stat(location)


@pytest.mark.commits_wrong_files
@pytest.mark.parametrize("files", [10, WORTH_IT])
def test_many_files_are_listed_and_not_asked_for_one_by_one(files: int) -> None:
    table = create(2)
    found = Damaged.of(table)
    made = found.write_rows(f"{table.location()}/data/0.parquet", rows(1))
    for number in range(files):
        found.storage.write(f"{table.location()}/data/{number}.parquet", b"x" * made.file_size_in_bytes)
    table.update_snapshot().fast_append(
        [
            replace(made, file_path=f"{table.location()}/data/{number}.parquet", partition=("us",))
            for number in range(files)
        ]
    )
    storage = Counting()
    report = verify(table.metadata, storage, table.metadata_location, level="files", progress=silent)
    assert report.clean, str(report)
    assert report.figures.files > files
    assert storage.asked == (0 if files == WORTH_IT else report.figures.files)
    lost, cut = (f"{table.location()}/data/{number}.parquet" for number in (3, 4))
    found.storage.delete([lost])
    found.storage.write(cut, b"x")
    report = verify(table.metadata, storage, table.metadata_location, level="files", progress=silent)
    assert [(each.code, each.location) for each in report.findings] == [
        (Code.FILE_MISSING, lost),
        (Code.FILE_LENGTH, cut),
    ]


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_is_told_step_by_step(workers: int) -> None:
    told: list[Progress] = []
    filled(2).verify(workers=workers, progress=told.append)
    by_stage = {stage: [each for each in told if each.stage == stage] for stage in ("snapshots", "manifests", "files")}
    assert [len(each) for each in by_stage.values()] == [3, 3, 6]
    for steps in by_stage.values():
        assert [each.done for each in steps] == list(range(1, len(steps) + 1))
        assert steps[-1].done == steps[-1].total


def test_nobody_looks_so_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    filled(2).verify()
    assert capsys.readouterr() == ("", "")


def test_nothing_is_changed() -> None:
    table = filled(3)
    before = {each.location: each for each in table.storage.list_prefix(str(table.location()))}
    table.verify(level="data", progress=silent)
    assert {each.location: each for each in table.storage.list_prefix(str(table.location()))} == before


def test_levels_include_those_before() -> None:
    assert [level.value for level in Level if Level.FOOTERS.includes(level)] == ["metadata", "files", "footers"]
    assert str(Finding(Code.ROW_IDS, "two")) == "error: row-ids: two"


@pytest.mark.commits_wrong_files
def test_text_that_is_not_utf_8_is_refused_and_found(tmp_path: Path) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "name string")
    column = pa.array([b"a\xff"]).view(pa.string())
    with pytest.raises(InvalidValueError, match="not UTF-8"):
        table.append(pa.table({"name": column}))
    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.table({"name": column}), path)
    table.add_files([str(path)])
    findings = {each.code: each.message for each in table.verify(level="data", progress=silent).findings}
    assert "not UTF-8" in findings[Code.FILE_UNREADABLE]
