"""Tables with root manifests and content entries (#16025, a preview of v4): the rows of the same table without them, read only.

Nothing in the product writes such files; the writer is here, and follows the proposal of 2026-08-10.
"""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe import errors, manifests as mf
from icefloe.formats.mumbling import encode_mumbling
from icefloe.manifests.of_snapshot import SnapshotManifests
from icefloe.schema import decode_array, types
from icefloe.table import Table
from icefloe.verification.codes import Code

SWITCH = {"icefloe.preview.root-manifest": "2026-08-10"}
COLUMNS = ("id", "name", "_row_id", "_last_updated_sequence_number")


def field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(field_id).encode()})


TRACKING = pa.struct(
    [
        field("status", pa.int32(), 0),
        field("snapshot_id", pa.int64(), 1),
        field("sequence_number", pa.int64(), 3),
        field("file_sequence_number", pa.int64(), 4),
        field("first_row_id", pa.int64(), 142),
    ]
)
VECTOR = pa.struct(
    [
        field("location", pa.string(), 155),
        field("offset", pa.int64(), 144),
        field("size_in_bytes", pa.int64(), 145),
        field("cardinality", pa.int64(), 156),
    ]
)
INFO = pa.struct([field("min_sequence_number", pa.int64(), 516), field("dv", pa.binary(), 522)])
OF_ID = pa.struct([field("lower_bound", pa.int64(), 10201), field("upper_bound", pa.int64(), 10202)])
PARTITION = pa.struct([field("id_bucket", pa.int32(), 1000), field("name_trunc", pa.string(), 1001)])
ENTRY = pa.schema(
    [
        field("tracking", TRACKING, 147),
        field("content_type", pa.int32(), 134),
        field("format_version", pa.int32(), 157),
        field("location", pa.string(), 100),
        field("file_format", pa.string(), 101),
        field("record_count", pa.int64(), 103),
        field("file_size_in_bytes", pa.int64(), 104),
        field("spec_id", pa.int32(), 141),
        field("partition", PARTITION, 102),
        field("content_stats", pa.struct([field("id", OF_ID, 10200)]), 146),
        field("deletion_vector", VECTOR, 148),
        field("manifest_info", INFO, 150),
        field("equality_ids", pa.list_(field("element", pa.int32(), 136)), 135),
        field("column_files", pa.list_(field("element", pa.struct([field("location", pa.string(), 164)]), 159)), 158),
    ]
)


class Preview:
    """A writer of the proposal: the current snapshot of an ordinary table, again with a root manifest."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.snapshot = table.metadata.current_snapshot()
        assert self.snapshot is not None
        source = SnapshotManifests(table.metadata, table.storage.read)
        self.entries = []
        for manifest in source.of(self.snapshot):
            struct = table.metadata.partition_type(manifest.partition_spec_id)
            columns = source.entries(manifest, partition_type=struct)
            self.entries += [(entry, struct) for entry in columns.filter(columns.is_live).entries()]
        self.older = source.of(self.snapshot)
        self.before = table.storage.read(str(table.metadata_location))

    def files(self) -> list[dict[str, Any]]:
        """The content entries of all data files and equality deletes, with the vectors of data files."""
        vectors = {
            entry.data_file.referenced_data_file: entry.data_file
            for entry, _ in self.entries
            if entry.data_file.content is mf.FileContent.POSITION_DELETES
        }
        return [
            self._entry(entry, struct, vectors.get(entry.data_file.file_path))
            for entry, struct in self.entries
            if entry.data_file.content is not mf.FileContent.POSITION_DELETES
        ]

    def _entry(self, entry: mf.ManifestEntry, struct: Any, vector: mf.DataFile | None) -> dict[str, Any]:
        file = entry.data_file
        names = {1000: "id_bucket", 1001: "name_trunc"}
        bounds = {
            side: decode_array(pa.array([getattr(file, side + "s").get(1)], pa.binary()), types.LongType())[0].as_py()
            for side in ("lower_bound", "upper_bound")
        }
        return {
            "tracking": {
                "status": 0 if vector is None else 4,
                "snapshot_id": entry.snapshot_id,
                "sequence_number": entry.sequence_number,
                "file_sequence_number": entry.file_sequence_number,
                "first_row_id": file.first_row_id,
            },
            "content_type": int(file.content),
            "format_version": 4,
            "location": file.file_path.removeprefix(f"{self.table.location()}/"),
            "file_format": file.file_format,
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "spec_id": file.spec_id,
            "partition": {
                names[part.field_id]: value for part, value in zip(struct.fields, file.partition, strict=True)
            },
            "content_stats": {"id": bounds},
            "equality_ids": file.equality_ids,
            "deletion_vector": vector
            and {
                "location": vector.file_path,
                "offset": vector.content_offset,
                "size_in_bytes": vector.content_size_in_bytes,
                "cardinality": vector.record_count,
            },
        }

    def leaf(self, kind: int, location: str, version: int = 4, **more: Any) -> dict[str, Any]:
        """The content entry of a leaf manifest."""
        assert self.snapshot is not None
        number = more.pop("sequence_number", self.snapshot.sequence_number)
        snapshot_id = more.pop("snapshot_id", self.snapshot.snapshot_id)
        size = len(self.table.storage.read(self.table.metadata.resolve(location)))
        return {
            "tracking": {"status": 1, "snapshot_id": snapshot_id, "sequence_number": number, "file_sequence_number": number, "first_row_id": more.pop("first_row_id", 0)},
            "content_type": kind,
            "format_version": version,
            "location": location,
            "file_format": "parquet",
            "record_count": 1,
            "file_size_in_bytes": size,
            "manifest_info": {"min_sequence_number": 0, "dv": more.pop("dv", None)},
            **more,
        }  # fmt: skip

    def write(self, name: str, entries: list[dict[str, Any]]) -> str:
        """A file of content entries; its path within the table."""
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(entries, ENTRY), sink)
        self.table.storage.write(f"{self.table.location()}/metadata/{name}", sink.getvalue().to_pybytes())
        return f"metadata/{name}"

    def commit(self, root: list[dict[str, Any]], properties: dict[str, str] = SWITCH) -> bytes:
        """The metadata of the table with this root manifest."""
        document = json.loads(self.before)
        for snapshot in document["snapshots"]:
            if snapshot["snapshot-id"] == document["current-snapshot-id"]:
                del snapshot["manifest-list"]
                snapshot["root-manifest"] = self.write("root.parquet", root)
        document["properties"] |= properties
        return json.dumps(document).encode()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = icefloe.load_catalog("preview", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table: Table = catalog.create_table(
        "db.t", "id long, name string", partition_spec=["bucket(4, id)"],
        properties={"format-version": "4", "write.delete.mode": "merge-on-read"},
    )  # fmt: skip
    table.append(rows(range(20)))
    table.delete("id in (3, 5)")
    with table.update_spec() as spec:
        spec.remove_field("id_bucket")
        spec.add_field("name", "truncate[1]", "name_trunc")
    table.append(rows(range(100, 110)))
    return table


def rows(ids: Any) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"{i} name" for i in ids]})


def shown(table: Table, text: str = "") -> list[dict[str, Any]]:
    return sorted(table.scan(text, COLUMNS).to_arrow().to_pylist(), key=lambda row: row["id"])


def check(table: Table, metadata: bytes, tmp_path: Path) -> None:
    expected = {text: shown(table, text) for text in ("", "id < 5", "id >= 105", "name like '10%'")}
    files = len(list(table.scan("id >= 105").plan_files()))
    table.storage.write(str(table.metadata_location), metadata)
    again = reopened(tmp_path)
    assert {text: shown(again, text) for text in expected} == expected
    assert len(list(again.scan("id >= 105").plan_files())) == files, "files are skipped by partition and stats"
    assert again.scan().count() == len(expected[""]) == 28
    report = again.verify(level="data")
    assert report.clean, str(report)
    for change in (
        lambda: again.append(rows([1])),
        lambda: again.delete("id = 1"),
        lambda: again.set_properties({"a": "b"}),
        lambda: again.maintenance.remove_orphan_files(older_than=dt.datetime(2999, 1, 1, tzinfo=dt.UTC), force=True),
    ):
        with pytest.raises(errors.StateError, match="16025"):
            change()


def reopened(tmp_path: Path) -> Table:
    catalog = icefloe.load_catalog("preview", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    table: Table = catalog.load_table("db.t")
    return table


def test_files_in_the_root(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    check(table, preview.commit(preview.files()), tmp_path)


def test_leaves_of_several_specs_with_entries_that_are_not_live(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    files = preview.files()
    gone = {**files[0], "location": "data/gone.parquet", "tracking": {**files[0]["tracking"], "status": 3}}
    dead = {**files[0], "location": "data/dead.parquet"}
    leaf = preview.write("leaf.parquet", [dead, *files[1:], gone])
    check(table, preview.commit([files[0], preview.leaf(3, leaf, dv=encode_mumbling([0]))]), tmp_path)


def test_leaves_of_older_versions(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    leaves = [
        preview.leaf(
            3 if manifest.content is mf.ManifestContent.DATA else 4,
            manifest.manifest_path,
            version=0,
            spec_id=manifest.partition_spec_id,
            snapshot_id=manifest.added_snapshot_id,
            sequence_number=manifest.sequence_number,
            first_row_id=manifest.first_row_id,
        )
        for manifest in preview.older
    ]
    check(table, preview.commit(leaves), tmp_path)


def test_numbers_are_inherited_from_a_leaf(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    new = [entry for entry in preview.files() if entry["spec_id"] == 1]
    for entry in new:
        entry["tracking"] = {"status": 1}
    old = [entry for entry in preview.files() if entry["spec_id"] == 0]
    first = min(row["_row_id"] for row in shown(table, "id >= 100"))
    leaf = preview.leaf(3, preview.write("leaf.parquet", new), first_row_id=first)
    check(table, preview.commit([*old, leaf]), tmp_path)


def test_what_is_refused(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    files = preview.files()
    for switch in ({}, {"icefloe.preview.root-manifest": "2027-01-01"}):
        table.storage.write(str(table.metadata_location), preview.commit(files, switch))
        with pytest.raises(errors.UnsupportedVersionError, match=r"16025.*icefloe\.preview\.root-manifest.*2026-08-10"):
            reopened(tmp_path)
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (errors.UnsupportedVersionError, "16425", {"column_files": [{"location": "x"}]}),
        (errors.CorruptFileError, "content_type", {"content_type": 1}),
        (errors.CorruptFileError, "content_type", {"content_type": 9}),
        (errors.CorruptFileError, "status", {"tracking": {"status": 7}}),
        (errors.CorruptFileError, "location", {"location": None}),
        (errors.CorruptFileError, "names entry 99", preview.leaf(3, preview.write("l.parquet", files), dv=encode_mumbling([99]))),
    ]  # fmt: skip
    for kind, problem, change in wrong:
        table.storage.write(str(table.metadata_location), preview.commit([files[0] | change]))
        with pytest.raises(kind, match=problem):
            shown(reopened(tmp_path))


def test_sizes_are_verified_where_they_are_told(table: Table, tmp_path: Path) -> None:
    preview = Preview(table)
    files = preview.files()
    leaf = preview.leaf(3, preview.write("leaf.parquet", files[1:]))
    changed = [{**files[0], "file_size_in_bytes": 7}, {**leaf, "file_size_in_bytes": 8}]
    table.storage.write(str(table.metadata_location), preview.commit(changed))
    findings = reopened(tmp_path).verify(level="files").findings
    lengths = sorted(finding.message.partition(", ")[2] for finding in findings if finding.code is Code.FILE_LENGTH)
    assert lengths == ["not 7 as recorded", "not 8 as recorded"]
    (vector,) = (Path(str(table.location()).removeprefix("file://")) / "data").glob("*.puffin")
    table.storage.write(str(table.metadata_location), preview.commit(files))
    vector.write_bytes(vector.read_bytes()[:-10])
    assert not reopened(tmp_path).verify(level="data").ok
