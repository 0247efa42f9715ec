"""What Spark writes has the table's field ids at every level, and what it reads is found by them, however it is set."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe import load_catalog
from icefloe.errors import CorruptFileError
from icefloe.spark import native_write
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import sorted_rows, sql_modes
from tests.spark.sessions import settings

MODES = ("copy-on-write", "merge-on-read")
WITH_VARIANTS = [each for each in ALL_VERSIONS if allows(each, Feature.VARIANT)]
VECTORIZED = "spark.sql.parquet.enableVectorizedReader"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("ids")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"lake": catalog})
    spark.sql("USE spark_catalog.default")


@pytest.fixture
def row_by_row(spark: Any) -> Iterator[None]:
    """Spark's reader as it is without vectors."""
    spark.conf.set(VECTORIZED, "false")
    yield
    spark.conf.unset(VECTORIZED)


# -- written


@pytest.mark.parametrize(
    ("version", "mode", "shreds"),
    [
        (WITH_VARIANTS[0], MODES[0], "true"),
        (WITH_VARIANTS[-1], MODES[1], "false"),
        *(pytest.param(each, MODES[0], "false", marks=pytest.mark.slow) for each in WITH_VARIANTS),
        pytest.param(WITH_VARIANTS[-1], MODES[1], "true", marks=pytest.mark.slow),
    ],
)
def test_variants_live_through_every_statement(ice: Session, version: int, mode: str, shreds: str) -> None:
    """Spark's optimizer takes the metadata of a variant away when it pushes it into a scan."""
    modes = sql_modes(mode)
    modes += f", 'write.parquet.shred-variants' = '{shreds}'"
    ice.sql(
        "CREATE OR REPLACE TABLE db.v (id INT, v VARIANT, s STRUCT<w: VARIANT, x: INT>)"
        f" TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    made = "parse_json(concat('{\"a\":', id, '}'))"
    ice.sql(f"INSERT INTO db.v SELECT id, {made}, named_struct('w', {made}, 'x', id) FROM range(1, 5)")
    ice.sql("UPDATE db.v SET id = 10, s.x = 7 WHERE v:a::int = 1")
    ice.sql("DELETE FROM db.v WHERE v:a::int = 2")
    ice.sql("MERGE INTO db.v t USING (SELECT 3 k) s ON t.v:a::int = s.k WHEN MATCHED THEN UPDATE SET id = 30")
    ice.sql("INSERT INTO db.v SELECT id + 100, v, s FROM db.v WHERE v:a::int = 4")
    ice.sql(
        f"CREATE OR REPLACE TABLE db.copy TBLPROPERTIES ('format-version' = '{version}', {modes}) AS SELECT id, v, s FROM db.v"
    )
    ice.write(ice.table("db.v")).to("db.copy").append()
    expected = [(i, f'{{"a":{a}}}', f'{{"a":{a}}}', x) for i, a, x in ((10, 1, 7), (104, 4, 4), (30, 3, 3), (4, 4, 4))]
    shown = "SELECT id, to_json(v), to_json(s.w), s.x FROM"
    assert sorted_rows(ice, f"{shown} db.v") == expected
    assert sorted_rows(ice, f"{shown} db.copy") == sorted(expected * 2, key=repr)
    for name in ("db.v", "db.copy"):
        table = ice.load_table(name)
        found = table.scan().to_arrow()
        assert not found["v"].null_count
        assert table.verify(level="data").ok


def test_a_file_without_its_ids_is_no_part_of_a_table(
    ice: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = ice.catalog.create_table("db.guarded", "id int, s struct<a: int>", location=str(tmp_path))
    monkeypatch.setattr(native_write, "with_ids", lambda given, known, around: given)
    frame = ice.spark.createDataFrame([(1, (1,))], "id int, s struct<a: int>")
    real = native_write.IdFormat.prepareWrite

    def without(self: Any, session: Any, job: Any, options: Any, schema: Any) -> Any:
        bare = ice.spark._jvm.org.apache.spark.sql.types.DataType.fromJson(frame.schema.json())
        return real(self, session, job, options, bare)

    monkeypatch.setattr(native_write.IdFormat, "prepareWrite", without)
    with (
        settings(ice.spark, {door.ENABLED: "false"}),
        pytest.raises(CorruptFileError, match="none is 1, that of column 'id'"),
    ):
        ice.write(frame).to("db.guarded").append()
    assert table.refresh().current_snapshot() is None
    assert not [each for each in tmp_path.rglob("*") if each.suffix == ".parquet"]


def test_the_format_in_java_writes_as_the_one_in_python_does(ice: Session) -> None:
    ice.catalog.create_table(
        "db.formats", "id int not null, `a.b` struct<`c d`: int, e: struct<f: string, g: double>>, v string"
    )
    frame = ice.spark.createDataFrame(
        [(1, (2, ("x", 1.5)), "y"), (2, None, None)],
        "id int, `a.b` struct<`c d`: int, e: struct<f: string, g: double>>, v string",
    )
    for enabled in ("true", "false"):
        with settings(ice.spark, {door.ENABLED: enabled}):
            ice.write(frame).to("db.formats").append()
    files = {task.file.file_path for task in ice.load_table("db.formats").scan().plan_files()}
    schemas = [str(pq.read_metadata(file.removeprefix("file://")).schema).partition("\n")[2] for file in files]
    assert len(schemas) >= 2
    assert len(set(schemas)) == 1


def test_no_format_of_python_is_part_of_a_plan(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark compares the parts of a plan hundreds of times, and each time would ask Python."""
    ice.catalog.create_table("db.compared", "id int", properties={"format-version": "3"})

    def refuse(*_: object) -> None:
        raise AssertionError("a format of Python was made")

    monkeypatch.setattr(native_write.IdFormat, "__init__", refuse)
    ice.sql("INSERT INTO db.compared SELECT id FROM range(9)")
    ice.sql("UPDATE db.compared SET id = id + 10 WHERE id < 3")
    assert sorted_rows(ice, "SELECT max(id) FROM db.compared") == [(12,)]


# -- read


def test_a_field_of_a_struct_with_floats_is_read_alone(ice: Session) -> None:
    """Such structs go by other names inside, for their NaN; and Spark forgets the id of what it reads in part."""
    table = ice.catalog.create_table(
        "db.floats", "id int, s struct<d: double, t: struct<f: float, b: string>, c: string>"
    )
    nan = float("nan")
    values = [{"d": 1.0, "t": {"f": 1.5, "b": "x"}, "c": "y"}, {"d": nan, "t": {"f": nan, "b": "z"}, "c": None}, None]
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "s": values}))
    assert sorted_rows(ice, "SELECT id, s.c FROM db.floats") == [(1, "y"), (2, None), (3, None)]
    assert sorted_rows(ice, "SELECT id, s.t.b FROM db.floats") == [(1, "x"), (2, "z"), (3, None)]
    assert sorted_rows(ice, "SELECT id, s.d, s.t.f FROM db.floats WHERE s.d < 2") == [(1, 1.0, 1.5)]
    assert sorted_rows(ice, "SELECT id FROM db.floats WHERE s.d > 100") == [(2,)], (
        "the statistics of the file leave NaN out"
    )
    assert sorted_rows(ice, "SELECT id FROM db.floats WHERE s.t.f = 'NaN'") == [(2,)]
    assert sorted_rows(ice, "SELECT id FROM db.floats WHERE s IS NULL") == [(3,)]
    frame = ice.table("db.floats").select("s.t.b")
    assert "ReadSchema: struct<s:struct<t:struct<b:string>>>" in frame._jdf.queryExecution().toString()


def test_a_renamed_struct_is_read_by_its_fields(ice: Session) -> None:
    ice.sql("CREATE OR REPLACE TABLE db.renamed (id INT, s STRUCT<a: INT, b: STRING>)")
    ice.sql("INSERT INTO db.renamed VALUES (1, named_struct('a', 1, 'b', 'x')), (2, NULL)")
    ice.sql("ALTER TABLE db.renamed RENAME COLUMN s TO z")
    ice.sql("ALTER TABLE db.renamed ADD COLUMN s STRUCT<a: INT>")
    assert sorted_rows(ice, "SELECT id, z.b FROM db.renamed") == [(1, "x"), (2, None)]
    assert sorted_rows(ice, "SELECT id FROM db.renamed WHERE z.a = 1") == [(1,)]
    assert sorted_rows(ice, "SELECT id, s.a FROM db.renamed WHERE s.a IS NULL") == [(1, None), (2, None)]
    assert sorted_rows(ice, "SELECT * FROM db.renamed") == [
        (1, ice.spark.createDataFrame([((1, "x"),)], "z struct<a: int, b: string>").head()[0], None),
        (2, None, None),
    ]


def test_ids_count_where_rows_are_read_one_by_one(ice: Session, row_by_row: None) -> None:
    ice.sql("CREATE OR REPLACE TABLE db.single (id INT, d DOUBLE, r INT)")
    ice.sql("INSERT INTO db.single VALUES (1, 2.5, 3)")
    ice.sql("ALTER TABLE db.single RENAME COLUMN r TO q")
    assert sorted_rows(ice, "SELECT * FROM db.single") == [(1, 2.5, 3)]
    assert sorted_rows(ice, "SELECT id FROM db.single WHERE q = 3 AND d > 2") == [(1,)]


def test_a_frame_says_so_when_settings_would_make_it_read_by_name(ice: Session) -> None:
    ice.sql("CREATE OR REPLACE TABLE db.later (id INT, d DOUBLE)")
    ice.sql("INSERT INTO db.later VALUES (1, 2.5)")
    frame = ice.table("db.later")
    ice.spark.conf.set(VECTORIZED, "false")
    try:
        with pytest.raises(Exception, match="make the DataFrame again"):
            frame.collect()
    finally:
        ice.spark.conf.unset(VECTORIZED)
    assert sorted_rows(ice, "SELECT * FROM db.later") == [(1, 2.5)]
