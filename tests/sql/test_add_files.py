"""`add_files`: files that others wrote become part of a table as they are, or nothing changes and it is said why."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import IcefloeError, IncompatibleChangeError, InvalidInputError, NoSuchColumnError, ValidationError
from icefloe.schema.types import LongType
from icefloe.sql.procedures import call
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS

NAME_MAPPING = "schema.name-mapping.default"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("lake", type="memory", warehouse=str(tmp_path / "warehouse"))
    made.create_namespace("db")
    return made


def make(
    catalog: Catalog, columns: str = "id BIGINT, name STRING", by: tuple[str, ...] = (), version: int = 2
) -> Table:
    return catalog.create_table("db.t", columns, partition_spec=list(by), properties={"format-version": str(version)})


def put(folder: Path, called: str = "one.parquet", /, **columns: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / called)
    return folder / called


def longs(*values: int | None) -> Any:
    return pa.array(values, pa.int64())


def added(catalog: Catalog, source: Path | str, kind: str = "parquet", **named: Any) -> tuple[int, int]:
    given = {"table": "db.t", "source_table": f"{kind}.`{source}`", **named}
    (row,) = call(catalog, "add_files", (), given).to_pylist()
    assert list(row) == ["added_files_count", "changed_partition_count"]
    return row["added_files_count"], row["changed_partition_count"]


def rows(table: Table) -> list[tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_folder_of_an_unpartitioned_table(catalog: Catalog, tmp_path: Path, version: int) -> None:
    table = make(catalog, version=version)
    table.append(pa.table({"id": longs(0), "name": ["own"]}))
    put(tmp_path / "in", "a.parquet", id=longs(1, 2), name=["a", None], more=longs(7, 8))
    put(tmp_path / "in", "b.parquet", id=longs(3))
    put(tmp_path / "in", "_hidden.parquet", id=longs(9))
    put(tmp_path / "in" / "below", id=longs(9))
    assert added(catalog, tmp_path / "in") == (2, 1)
    assert rows(table) == [(0, "own"), (1, "a"), (2, None), (3, None)]
    assert NAME_MAPPING in table.properties
    files = {Path(each["file_path"]).name: each for each in table.inspect.files().to_pylist()}
    assert files["a.parquet"]["record_count"] == 2
    bounds = files["a.parquet"]["readable_metrics"]["id"]
    assert (bounds["lower_bound"], bounds["upper_bound"], bounds["null_value_count"]) == (1, 2, 0)
    assert table.scan("id > 2").to_arrow()["id"].to_pylist() == [3]
    assert table.verify(level="data", locations=[f"file://{tmp_path}"]).ok
    # A file, and what was added before.
    assert added(catalog, put(tmp_path / "more", id=longs(4))) == (1, 1)
    with pytest.raises(ValidationError, match="already"):
        added(catalog, tmp_path / "in")
    assert added(catalog, tmp_path / "in", check_duplicate_files=False) == (2, 1)
    (tmp_path / "empty").mkdir()
    assert added(catalog, tmp_path / "empty") == (0, 0)


def test_folders_of_partitions_with_a_filter_and_nulls(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, "id BIGINT, day DATE, part STRING", ("day", "part"))
    home = tmp_path / "in"
    put(home / "day=2024-01-01" / "PART=a b", id=longs(1))
    put(home / "day=2024-01-01" / "PART=x%2Fy", id=longs(2))
    put(home / "day=2024-01-02" / "PART=__HIVE_DEFAULT_PARTITION__", id=longs(3))
    assert added(catalog, home, partition_filter={"day": "2024-01-02"}, parallelism=2) == (1, 1)
    assert added(catalog, home, partition_filter={"part": "a b"}) == (1, 1)
    assert added(catalog, home, partition_filter={"day": "2024-01-01", "part": "x/y"}) == (1, 1)
    found = [(row["id"], str(row["day"]), row["part"]) for row in table.refresh().scan().to_arrow().to_pylist()]
    assert sorted(found) == [(1, "2024-01-01", "a b"), (2, "2024-01-01", "x/y"), (3, "2024-01-02", None)]
    assert table.scan("day = '2024-01-02'").to_arrow()["id"].to_pylist() == [3]
    for wanted, problem in (
        ({"id": "1"}, "partitioned by day, part"),
        ({"day": "2025-01-01"}, "no partition"),
        ({"day": "soon"}, "soon"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            added(catalog, home, partition_filter=wanted)
    put(home, id=longs(1))
    with pytest.raises(InvalidInputError, match="same names"):
        added(catalog, home)


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_other_formats(catalog: Catalog, tmp_path: Path, kind: str) -> None:
    table = make(catalog, "id BIGINT NOT NULL, name STRING")
    (tmp_path / "in").mkdir()
    if kind == "orc":
        orc.write_table(pa.table({"id": longs(1, 2), "name": ["a", None]}), tmp_path / "in" / "x.orc")
    else:
        other = catalog.create_table(
            "db.avro", "id BIGINT, name STRING", properties={"write.format.default": "avro", "format-version": "2"}
        )
        other.append(pa.table({"id": longs(1, 2), "name": ["a", None]}))
        (place,) = other.inspect.files()["file_path"].to_pylist()
        (tmp_path / "in" / "x.avro").write_bytes(other.storage.read(place))
    assert added(catalog, tmp_path / "in", kind) == (1, 1)
    assert rows(table) == [(1, "a"), (2, None)]


BAD: list[tuple[str, str, tuple[str, ...], dict[str, Any], type[Exception], str]] = [
    ("type", "id INT", (), {"id": ["a"]}, IncompatibleChangeError, "'id' is string"),
    ("narrower", "id INT", (), {"id": longs(1)}, IncompatibleChangeError, "'id' is long"),
    ("missing", "id BIGINT, n INT NOT NULL", (), {"id": longs(1)}, NoSuchColumnError, "'n'"),
    ("nulls", "id BIGINT NOT NULL", (), {"id": longs(1, None)}, IncompatibleChangeError, "has nulls"),
    ("partitioned", "id BIGINT, p INT", ("p",), {"id": longs(1)}, InvalidInputError, "no partition spec"),
    ("transform", "id BIGINT", ("bucket(4, id)",), {"id": longs(1)}, InvalidInputError, "no partition spec"),
]


@pytest.mark.parametrize(
    ("columns", "by", "data", "error", "problem"), [each[1:] for each in BAD], ids=[b[0] for b in BAD]
)
def test_files_that_do_not_fit_change_nothing(
    catalog: Catalog,
    tmp_path: Path,
    columns: str,
    by: tuple[str, ...],
    data: dict[str, Any],
    error: type[Exception],
    problem: str,
) -> None:
    table = make(catalog, columns, by)
    before = table.metadata_location
    put(tmp_path / "in", **data)
    with pytest.raises(error, match=problem):
        added(catalog, tmp_path / "in")
    assert table.refresh().metadata_location == before


def test_other_calls_that_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog)
    before = table.metadata_location
    put(tmp_path / "p" / "p=1", id=longs(1))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.parquet").write_bytes(b"no such file")
    for source, named, problem in (
        (f"parquet.`{tmp_path}/p`", {}, r"no partition spec of the columns \(p\)"),
        (f"parquet.`{tmp_path}/nowhere`", {}, "neither a file nor a folder"),
        (f"parquet.`{tmp_path}/bad`", {}, "x.parquet"),
        (f"parquet.`{tmp_path}/p`", {"parallelism": 0}, "parallelism"),
        (f"parquet.`{tmp_path}/bad`", {"partition_filter": {"p": "1"}}, "not partitioned"),
        ("other.table", {}, "no table other.table"),
    ):
        with pytest.raises(IcefloeError, match=problem):
            call(catalog, "add_files", (), {"table": "db.t", "source_table": source, **named})
    assert table.refresh().metadata_location == before


def test_a_file_of_another_table_is_refused_by_its_ids(catalog: Catalog) -> None:
    other = catalog.create_table("db.other", "name STRING, id BIGINT")
    other.append(pa.table({"name": ["a"], "id": longs(1)}))
    (place,) = other.inspect.files()["file_path"].to_pylist()
    table = make(catalog, "key STRING, id BIGINT")
    with pytest.raises(IncompatibleChangeError, match="another table"):
        table.add_files([place])
    with table.update_schema() as update:
        update.rename_column("key", "name")
    table.add_files([place])
    assert rows(table) == [("a", 1)]
    assert NAME_MAPPING not in table.properties


def test_partitions_come_from_statistics_where_folders_say_nothing(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, "id BIGINT, region STRING", ("region", "truncate(10, id)"))
    good = put(tmp_path / "in", "a.parquet", id=longs(11, 19), region=["eu", "eu"])
    nulls = put(tmp_path / "in", "b.parquet", id=longs(None, None), region=pa.array([None, None], pa.string()))
    made = table.add_files([str(good), str(nulls)], {"by": "test"})
    assert made is not None
    assert made.summary is not None
    assert made.summary["by"] == "test"
    found = {tuple(row.values()) for row in table.inspect.files()["partition"].to_pylist()}
    assert found == {("eu", 10), (None, None)}
    for name, data, problem in (
        ("c", {"id": longs(9, 11), "region": ["eu", "eu"]}, "from 9 to 11"),
        ("d", {"id": longs(1, 2), "region": ["eu", "us"]}, "from 'eu' to 'us'"),
        ("e", {"id": longs(1, None), "region": ["eu", "eu"]}, "null in some rows"),
        ("f", {"other": longs(1)}, "says nothing of its partition"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            table.add_files([str(put(tmp_path / "in", f"{name}.parquet", **data))])
    wrong = put(tmp_path / "x" / "region=us" / "id_trunc=10", id=longs(11), region=["eu"])
    with pytest.raises(InvalidInputError, match="'us', and its rows 'eu'"):
        table.add_files([str(wrong)])


def test_the_mapping_goes_along_with_the_schema(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog)
    table.add_files([str(put(tmp_path, "a.parquet", id=longs(1), name=["a"]))])
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.add_column("n", LongType())
    table.add_files([str(put(tmp_path, "b.parquet", id=longs(2), label=["b"], n=longs(5)))])
    assert rows(table) == [(1, "a", None), (2, "b", 5)]


def test_a_mapping_of_another_commit_is_neither_replaced_nor_relied_on(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog)
    behind = [catalog.load_table("db.t") for _ in range(3)]
    files = [str(put(tmp_path, f"{number}.parquet", id=longs(number), name=["a"])) for number in range(4)]
    theirs = '[{"field-id": 1, "names": ["key"]}, {"field-id": 2, "names": ["name"]}]'
    table.set_properties({NAME_MAPPING: theirs})
    with pytest.raises(ValidationError, match="name mapping of the table was changed by another commit"):
        behind[0].add_files([files[0]])
    assert catalog.load_table("db.t").properties[NAME_MAPPING] == theirs
    # One that says the same of the same names, and more of others, will do; one that is gone comes back.
    table.set_properties({NAME_MAPPING: theirs.replace('"key"', '"key", "id"')})
    behind[1].add_files([files[1]])
    table.refresh().remove_properties(NAME_MAPPING)
    behind[1].add_files([files[2]])
    behind[2].add_files([files[3]])
    assert rows(table.refresh()) == [(1, "a"), (2, "a"), (3, "a")]


def test_the_oldest_timestamps_of_parquet(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, "at timestamptz, local timestamp")
    micros = pa.array([1_700_000_000_000_001, None], pa.timestamp("us"))
    pq.write_table(
        pa.table({"at": micros, "local": micros}), tmp_path / "old.parquet", use_deprecated_int96_timestamps=True
    )
    table.add_files([str(tmp_path / "old.parquet")])
    found = table.scan().to_arrow()
    assert found["at"].cast(pa.int64()).to_pylist() == [1_700_000_000_000_001, None]
    assert found["local"].cast(pa.int64()).to_pylist() == [1_700_000_000_000_001, None]


def test_files_have_ids_everywhere_or_nowhere_and_only_those_of_the_table(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, "id BIGINT, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>")
    (tmp_path / "in").mkdir()

    def problem(ids: dict[str, int], columns: Any = None) -> str:
        """Why a file with these ids is not added."""
        made = columns or pa.table({"id": longs(1), "s": [{"a": 1, "b": "x"}], "l": [[1]]})
        inner = [_with_id(each, ids.get(f"s.{each.name}")) for each in made.schema.field("s").type]
        fields = [
            _with_id(made.schema.field("id"), ids.get("id")),
            _with_id(pa.field("s", pa.struct(inner)), ids.get("s")),
            _with_id(
                pa.field("l", pa.list_(_with_id(pa.field("element", pa.int64()), ids.get("l.element")))), ids.get("l")
            ),
        ]
        pq.write_table(made.cast(pa.schema(fields)), tmp_path / "in" / "one.parquet")
        with pytest.raises(IncompatibleChangeError) as caught:
            added(catalog, tmp_path / "in")
        return str(caught.value)

    own = {name: table.schema().find_field(name).field_id for name in ("id", "s", "s.a", "s.b", "l", "l.element")}
    assert "'s' in it has no field id" in problem({**own, "s": -1})
    assert "'s.b' in it has no field id" in problem({**own, "s.b": -1})
    assert "'l.element' in it has no field id" in problem({**own, "l.element": -1})
    assert "that of 'l.element' in the table" in problem({**own, "s.a": own["l.element"], "l.element": own["s.a"]})
    assert "has not given to a column yet" in problem({**own, "s.b": 99})
    assert table.refresh().current_snapshot() is None


def _with_id(field: Any, field_id: int | None) -> Any:
    return field.with_metadata({} if field_id is None or field_id < 0 else {"PARQUET:field_id": str(field_id)})
