"""What is read and written is the same whatever the session's settings of Spark's file sources are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import VariantVal

from icefloe.schema.types import StringType
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
BYTES_ARE_TEXT = "spark.sql.parquet.binaryAsString"
PLAIN = (
    "id INT, d DOUBLE, b BINARY, t STRING, n DECIMAL(20, 3), day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, v VARIANT,"
    " s STRUCT<b: BINARY, v: VARIANT, at: TIMESTAMP>"
)
NESTED = f"{PLAIN}, a ARRAY<BINARY>, m MAP<STRING, STRUCT<v: VARIANT, local: TIMESTAMP_NTZ>>"
ROW = (
    "double('NaN') AS d, X'FF00' AS b, 'text' AS t, 1234567.891BD AS n, DATE'1200-01-01' AS day,"
    " TIMESTAMP'1200-01-01 00:00:00.123456' AS at, TIMESTAMP_NTZ'1200-01-01 00:00:00.123456' AS local,"
    """ parse_json('{"a": 1, "b": "x", "c": [1, 2]}') AS v,"""
    """ named_struct('b', X'FE', 'v', parse_json('[1, {"k": null}]'), 'at', TIMESTAMP'0900-01-01 01:02:03') AS s"""
)
NESTED_ROW = (
    f"{ROW}, array(X'FD', NULL) AS a,"
    """ map('k', named_struct('v', parse_json('"x"'), 'local', TIMESTAMP_NTZ'0900-01-01 00:00:00')) AS m"""
)
QUERIES = (
    "SELECT * FROM db.plain",
    "SELECT * FROM db.nested",
    "SELECT id, s.v, s.b FROM db.plain WHERE at = TIMESTAMP'1200-01-01 00:00:00.123456' AND d = double('NaN')",
    "SELECT id, v:a::int FROM db.nested WHERE day < DATE'1500-01-01' AND v:b::string = 'x' AND m['k'].v IS NOT NULL",
)
READING: Mapping[str, Mapping[str, str]] = {
    "bytes are text": {BYTES_ARE_TEXT: "true"},
    "no old dates": {
        "spark.sql.parquet.int96AsTimestamp": "false",
        "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
        "spark.sql.parquet.int96TimestampConversion": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    },
    "dates of another calendar": {
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
    },
    "ids": {
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
        "spark.sql.caseSensitive": "true",
    },
    "schemas of files": {
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.parquet.respectSummaryFiles": "true",
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true",
    },
    "no filters": {"spark.sql.parquet.filterPushdown": "false"},
    "filters of records": {"spark.sql.parquet.recordLevelFilter.enabled": "true"},
    "no shredded variants": {"spark.sql.variant.allowReadingShredded": "false"},
    "whole variants": {
        "spark.sql.parquet.ignoreVariantAnnotation": "true",
        "spark.sql.variant.pushVariantIntoScan": "false",
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    },
    "parts of variants": {
        "spark.sql.variant.pushVariantIntoScan": "true",
        "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
    },
    "small tasks": {
        "spark.sql.files.maxPartitionBytes": "100",
        "spark.sql.parquet.columnarReaderBatchSize": "1",
        "spark.sql.columnVector.offheap.enabled": "true",
    },
    "no code": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
}
WRITING: Mapping[str, Mapping[str, str]] = {
    "dates of another calendar": {
        BYTES_ARE_TEXT: "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "INT96",
    },
    "no old dates": {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    },
    "files as others want them": {
        "spark.sql.parquet.fieldId.write.enabled": "false",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.variant.annotateLogicalType.enabled": "false",
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.inferShreddingSchema": "true",
    },
    "files elsewhere": {
        "spark.sql.files.maxRecordsPerFile": "1",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "parquet.summary.metadata.level": "ALL",
        "mapreduce.fileoutputcommitter.algorithm.version": "2",
    },
}


SEVERAL = (
    ("bytes are text", "no old dates", "schemas of files", "no filters"),
    (
        "dates of another calendar",
        "ids",
        "filters of records",
        "whole variants",
    ),
)
"""Settings for reading that can be made at once; each by itself is slow."""
ALONE = ("no shredded variants", "parts of variants", "small tasks", "no code")


def together(names: tuple[str, ...]) -> Mapping[str, str]:
    """All settings of these names."""
    return {key: value for name in names for key, value in READING[name].items()}


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with tables of two files, the one written by Spark's writer, the other, with lists, by ours."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        for name, columns, row in (("plain", PLAIN, ROW), ("nested", NESTED, NESTED_ROW)):
            session.sql(
                f"CREATE TABLE db.{name} ({columns}) TBLPROPERTIES ('format-version' = '3',"
                " 'write.parquet.shred-variants' = 'true')"
            )
            session.sql(f"INSERT INTO db.{name} SELECT id, {row} FROM VALUES (1), (2) AS t(id)")
            session.sql(f"INSERT INTO db.{name} (id) VALUES (3)")
        yield session


def shown(session: Session, query: str) -> list[str]:
    return sorted(str(plain(row)) for row in session.sql(query).collect())


def plain(value: Any) -> Any:
    """A value with variants as JSON: numbers in them may be stored as wide as their column in a file is."""
    match value:
        case VariantVal():
            return value.toJson()
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case tuple() | list():
            return [plain(each) for each in value]
        case _:
            return value


@pytest.fixture(scope="module")
def expected(ice: Session) -> list[list[str]]:
    found = [shown(ice, query) for query in QUERIES]
    assert [len(each) for each in found] == [3, 3, 2, 2]
    return found


@pytest.mark.parametrize(
    "given",
    [
        *(pytest.param(together(names), id=" and ".join(names)) for names in SEVERAL),
        *(pytest.param(READING[name], id=name) for name in ALONE),
        *(pytest.param(READING[name], id=name, marks=pytest.mark.slow) for names in SEVERAL for name in names),
    ],
)
def test_rows_are_read_as_they_are(ice: Session, expected: list[list[str]], given: Mapping[str, str]) -> None:
    with settings(ice.spark, given):
        assert [shown(ice, query) for query in QUERIES] == expected
        with settings(ice.spark, {VECTORIZED: "false"}):
            assert [shown(ice, query) for query in QUERIES] == expected


@pytest.mark.parametrize("given", WRITING.values(), ids=WRITING)
def test_rows_are_written_as_they_are(ice: Session, given: Mapping[str, str]) -> None:
    names = (("plain", PLAIN, ROW), ("nested", NESTED, NESTED_ROW))
    with settings(ice.spark, given):
        for name, columns, row in names:
            ice.sql(f"CREATE OR REPLACE TABLE db.new_{name} ({columns}) TBLPROPERTIES ('format-version' = '3')")
            ice.sql(f"INSERT INTO db.new_{name} SELECT id, {row} FROM VALUES (2), (3) AS t(id)")
        ice.sql("UPDATE db.new_plain SET id = 1 WHERE id = 3")
        ice.sql("UPDATE db.new_nested SET id = 1 WHERE id = 3")
    for name, _, _ in names:
        assert shown(ice, f"SELECT * FROM db.new_{name}") == shown(ice, f"SELECT * FROM db.{name} WHERE id < 3")


def test_a_setting_that_comes_after_the_frame_is_told(ice: Session) -> None:
    frame = ice.table("db.plain").select("v")
    with settings(ice.spark, {BYTES_ARE_TEXT: "true"}):
        with pytest.raises(
            Py4JJavaError, match=f"StateError: {BYTES_ARE_TEXT} was turned on after the DataFrame was made"
        ):
            frame.collect()
        assert len(ice.table("db.plain").select("v").collect()) == 3


def test_files_that_are_missing_or_broken_are_errors(ice: Session) -> None:
    """Settings that pass over them are for folders of files. Here rows would be lost, and for ever by the next rewrite."""
    ignore = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}
    ice.sql("CREATE OR REPLACE TABLE db.broken (id INT)")
    for number in (1, 2):
        ice.sql(f"INSERT INTO db.broken VALUES ({number})")
    first, second = (
        Path(file.file.file_path.removeprefix("file:")) for file in ice.load_table("db.broken").scan().plan_files()
    )
    with settings(ice.spark, ignore):
        first.write_bytes(first.read_bytes()[:20])
        with pytest.raises(Exception, match=r"(?i)parquet|read"):
            ice.table("db.broken").collect()
        first.unlink()
        with pytest.raises(Exception, match=r"(?i)not exist|not found"):
            ice.table("db.broken").collect()
    assert second.exists()
    ice.sql("DROP TABLE db.broken")


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_texts_mean_the_same_however_literals_are_escaped(ice: Session, escaped: str) -> None:
    texts = ["it's", "a\\b", "a\\\\b", "'", "plain"]
    ice.sql("CREATE OR REPLACE TABLE db.texts (id INT, s STRING) TBLPROPERTIES ('format-version' = '3')")
    table = ice.load_table("db.texts")
    table.append(pa.table({"id": pa.array(range(5), pa.int32()), "s": texts}))
    with table.update_schema() as update:
        update.add_column("d", StringType(), default_value="it's \\ x")
    with settings(ice.spark, {"spark.sql.parser.escapedStringLiterals": escaped}):
        for number, text in enumerate(texts):
            quoted = text.replace("'", "''")
            assert [row["id"] for row in ice.table("db.texts", row_filter=f"s = '{quoted}'").collect()] == [number]
        ice.sql("INSERT INTO db.texts (id) VALUES (9)")
        ice.sql("UPDATE db.texts SET d = DEFAULT WHERE id = 1")
        assert {row["d"] for row in ice.table("db.texts").collect()} == {"it's \\ x"}
        assert ice.spark.sql("EXPLAIN INSERT INTO spark_catalog.default.none SELECT 1").collect()
