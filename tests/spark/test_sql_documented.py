"""One statement of each kind that Iceberg's documentation of Spark has: it does what is said there, or is on our list of exceptions."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.errors import IcefloeError
from icefloe.spark.session import Session
from icefloe.table import Table

SETTINGS = "spark.sql.sources.partitionOverwriteMode", "spark.wap.branch"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("documented")
    catalog = load_catalog("shelf", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("zoo")
    yield Session(spark, {"shelf": catalog})
    for key in SETTINGS:
        spark.conf.unset(key)
    spark.sql("USE spark_catalog.default")


class Page:
    """Runs statements, and looks at what they did."""

    def __init__(self, ice: Session) -> None:
        self.ice = ice

    def __call__(self, text: str, found: Callable[[], Any] | None = None, expected: Any = None) -> None:
        self.ice.spark.sql(text)
        if found is not None:
            assert found() == expected, text

    def rows(self, text: str, *expected: tuple[Any, ...]) -> None:
        """Whether a query gives these rows, in any order."""
        found = [tuple(row) for row in self.ice.spark.sql(text).collect()]
        assert sorted(found, key=repr) == sorted(expected, key=repr), text

    def table(self, name: str) -> Table:
        return self.ice.load_table(f"shelf.zoo.{name}")

    def exists(self, name: str) -> bool:
        return self.ice.catalog.table_exists(f"zoo.{name}")

    def columns(self, name: str) -> dict[str, str]:
        return {field.name: str(field.field_type) for field in self.table(name).schema().fields}

    def spec(self, name: str) -> dict[str, str]:
        return {field.name: str(field.transform) for field in self.table(name).spec().fields}

    def refs(self, name: str) -> dict[str, int]:
        return {ref: found.snapshot_id for ref, found in self.table(name).refs().items()}


@pytest.fixture
def run(ice: Session) -> Page:
    return Page(ice)


def test_making_tables(run: Page, tmp_path: Path) -> None:
    run("CREATE TABLE shelf.zoo.pets (tag bigint NOT NULL COMMENT 'on the collar', kind string) USING iceberg")
    assert run.columns("pets") == {"tag": "long", "kind": "string"}
    assert (run.table("pets").schema().fields[0].required, run.table("pets").schema().fields[0].doc) == (
        True,
        "on the collar",
    )
    run(
        "CREATE TABLE shelf.zoo.visits (tag bigint, kind string, seen timestamp) USING iceberg"
        " PARTITIONED BY (kind, bucket(8, tag), hours(seen))",
        lambda: run.spec("visits"),
        {"kind": "identity", "tag_bucket": "bucket[8]", "seen_hour": "hour"},
    )
    run(
        f"CREATE TABLE shelf.zoo.placed (tag int) USING iceberg LOCATION '{tmp_path}/placed' COMMENT 'far away'",
        lambda: (run.table("placed").location(), run.table("placed").properties["comment"]),
        (f"file://{tmp_path}/placed", "far away"),
    )
    run("CREATE TABLE shelf.zoo.ctas USING iceberg AS SELECT 1 AS tag, 'x' AS kind")
    run.rows("SELECT * FROM shelf.zoo.ctas", (1, "x"))
    uuid = run.table("ctas").metadata.table_uuid
    run(
        "REPLACE TABLE shelf.zoo.ctas USING iceberg PARTITIONED BY (kind) TBLPROPERTIES ('color'='red') AS SELECT 2 AS tag, 'y' AS kind"
    )
    assert (run.spec("ctas"), run.table("ctas").properties["color"]) == ({"kind": "identity"}, "red")
    run("CREATE OR REPLACE TABLE shelf.zoo.ctas USING iceberg AS SELECT 3 AS tag")
    assert (run.spec("ctas"), run.columns("ctas"), len(run.table("ctas").snapshots())) == ({}, {"tag": "int"}, 3)
    assert run.table("ctas").metadata.table_uuid == uuid
    run("ALTER TABLE shelf.zoo.ctas RENAME TO shelf.zoo.renamed", lambda: run.exists("ctas"), False)
    place = Path(str(run.table("renamed").location()).removeprefix("file://"))
    run("DROP TABLE shelf.zoo.renamed", lambda: run.exists("renamed"), False)
    assert any(place.rglob("*.parquet"))
    run("CREATE TABLE shelf.zoo.purged USING iceberg AS SELECT 1 AS tag")
    place = Path(str(run.table("purged").location()).removeprefix("file://"))
    run("DROP TABLE shelf.zoo.purged PURGE", lambda: any(place.rglob("*.parquet")), False)


def test_altering_columns(run: Page) -> None:
    run("CREATE TABLE shelf.zoo.cages (id int NOT NULL, w float, at struct<lat: double, lon: double>) USING iceberg")
    alter = "ALTER TABLE shelf.zoo.cages"
    size = "read.split.target-size"
    run(f"{alter} SET TBLPROPERTIES ('{size}'='1000000')", lambda: run.table("cages").properties[size], "1000000")
    run(f"{alter} UNSET TBLPROPERTIES ('{size}')", lambda: size in run.table("cages").properties, False)
    run(f"{alter} SET TBLPROPERTIES ('comment'='iron')", lambda: run.table("cages").properties["comment"], "iron")
    run(f"{alter} ADD COLUMNS (color string COMMENT 'of the bars', n int)")
    assert run.table("cages").schema().find_field("color").doc == "of the bars"
    run(f"{alter} ADD COLUMN box struct<a: double>")
    run(f"{alter} ADD COLUMN box.b double")
    run(f"{alter} ADD COLUMN parts array<struct<a: double>>")
    run(f"{alter} ADD COLUMN parts.element.b double")
    run(f"{alter} ADD COLUMN lookup map<struct<a: int>, struct<c: int>>")
    run(f"{alter} ADD COLUMN lookup.value.d int")
    names = run.table("cages").schema().names_by_id.values()
    assert {"box.b", "parts.element.b", "lookup.value.d"} <= set(names)
    run(f"{alter} ADD COLUMN m bigint AFTER id", lambda: list(run.columns("cages"))[:3], ["id", "m", "w"])
    run(f"{alter} ADD COLUMN box.zero int FIRST")
    assert run.columns("cages")["box"].index("zero") < run.columns("cages")["box"].index(" a:")
    run(f"{alter} RENAME COLUMN color TO paint", lambda: "paint" in run.columns("cages"), True)
    run(f"{alter} RENAME COLUMN at.lat TO latitude", lambda: "latitude" in run.columns("cages")["at"], True)
    run(f"{alter} ALTER COLUMN w TYPE double", lambda: run.columns("cages")["w"], "double")
    run(f"{alter} ALTER COLUMN n TYPE bigint", lambda: run.columns("cages")["n"], "long")
    run(f"{alter} ALTER COLUMN w COMMENT 'in kg'", lambda: run.table("cages").schema().find_field("w").doc, "in kg")
    run(f"{alter} ALTER COLUMN n FIRST", lambda: next(iter(run.columns("cages"))), "n")
    run(f"{alter} ALTER COLUMN box.a AFTER b")
    assert run.columns("cages")["box"].index(" b:") < run.columns("cages")["box"].index(" a:")
    run(f"{alter} ALTER COLUMN id DROP NOT NULL", lambda: run.table("cages").schema().find_field("id").required, False)
    run(f"{alter} DROP COLUMN paint", lambda: "paint" in run.columns("cages"), False)
    run(f"{alter} DROP COLUMN box.zero", lambda: "zero" in run.columns("cages")["box"], False)


def test_partition_fields_orders_and_identifiers(run: Page) -> None:
    run("CREATE TABLE shelf.zoo.evolved (id bigint NOT NULL, s string NOT NULL, t timestamp) USING iceberg")
    alter = "ALTER TABLE shelf.zoo.evolved"
    for term, name, transform in (
        ("s", "s", "identity"),
        ("bucket(16, id)", "id_bucket_16", "bucket[16]"),
        ("truncate(4, s)", "s_trunc_4", "truncate[4]"),
        ("year(t)", "t_year", "year"),
    ):
        run(f"{alter} ADD PARTITION FIELD {term}")
        assert run.spec("evolved").get(name) == transform, term
        run(f"{alter} DROP PARTITION FIELD {term}")
        assert run.spec("evolved").get(name) in (None, "void"), term
    run(f"{alter} ADD PARTITION FIELD bucket(16, id) AS piece", lambda: run.spec("evolved")["piece"], "bucket[16]")
    run(f"{alter} DROP PARTITION FIELD piece")
    run(f"{alter} ADD PARTITION FIELD days(t)")
    run(f"{alter} REPLACE PARTITION FIELD t_day WITH hours(t)", lambda: run.spec("evolved").get("t_hour"), "hour")
    run(f"{alter} REPLACE PARTITION FIELD t_hour WITH months(t) AS m", lambda: run.spec("evolved").get("m"), "month")
    mode = "write.distribution-mode"
    run(f"{alter} WRITE ORDERED BY s, id", lambda: len(run.table("evolved").sort_order().fields), 2)
    assert run.table("evolved").properties[mode] == "range"
    run(f"{alter} WRITE ORDERED BY s ASC NULLS LAST, id DESC NULLS FIRST")
    keys_of = [(each.direction.name, each.null_order.name) for each in run.table("evolved").sort_order().fields]
    assert keys_of == [("ASC", "NULLS_LAST"), ("DESC", "NULLS_FIRST")]
    run(f"{alter} WRITE LOCALLY ORDERED BY id", lambda: len(run.table("evolved").sort_order().fields), 1)
    run(f"{alter} WRITE DISTRIBUTED BY PARTITION", lambda: run.table("evolved").properties[mode], "hash")
    run(f"{alter} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY s, id")
    assert (run.table("evolved").properties[mode], len(run.table("evolved").sort_order().fields)) == ("hash", 2)
    run(f"{alter} WRITE UNORDERED", lambda: len(run.table("evolved").sort_order().fields), 0)

    def keys() -> set[str]:
        return set(run.table("evolved").schema().identifier_field_names)

    run(f"{alter} SET IDENTIFIER FIELDS id", keys, {"id"})
    run(f"{alter} SET IDENTIFIER FIELDS id, s", keys, {"id", "s"})
    run(f"{alter} DROP IDENTIFIER FIELDS s", keys, {"id"})


def test_branches_tags_and_reading_them(run: Page) -> None:
    run("CREATE TABLE shelf.zoo.log (id bigint, word string, x float) USING iceberg")
    run("INSERT INTO shelf.zoo.log VALUES (1, 'a', 1.0)")
    (first,) = (each.snapshot_id for each in run.table("log").snapshots())
    alter = "ALTER TABLE shelf.zoo.log"
    run(f"{alter} CREATE BRANCH `side-way`", lambda: run.refs("log")["side-way"], first)
    run(f"{alter} CREATE BRANCH IF NOT EXISTS `side-way`")
    run(f"{alter} CREATE TAG IF NOT EXISTS `old-one`", lambda: run.refs("log")["old-one"], first)
    run(f"{alter} DROP COLUMN x")
    run(f"{alter} ADD COLUMN day date")
    run("INSERT INTO shelf.zoo.log VALUES (2, 'b', date '2024-04-04')")
    second = run.table("log").metadata.current_snapshot_id
    day = "date '2024-04-04'"
    run.rows("SELECT id, word, day IS NULL FROM shelf.zoo.log", (1, "a", True), (2, "b", False))
    # A branch is read by the table's schema, a tag and a snapshot by the snapshot's.
    for text, columns in (
        ("shelf.zoo.log.`branch_side-way`", ["id", "word", "day"]),
        ("shelf.zoo.log VERSION AS OF 'side-way'", ["id", "word", "day"]),
        ("shelf.zoo.log FOR SYSTEM_VERSION AS OF 'side-way'", ["id", "word", "day"]),
        ("shelf.zoo.log.`tag_old-one`", ["id", "word", "x"]),
        ("shelf.zoo.log VERSION AS OF 'old-one'", ["id", "word", "x"]),
        (f"shelf.zoo.log VERSION AS OF {first}", ["id", "word", "x"]),
        (f"shelf.zoo.log FOR SYSTEM_VERSION AS OF {first}", ["id", "word", "x"]),
        ("shelf.zoo.log TIMESTAMP AS OF current_timestamp()", ["id", "word", "day"]),
    ):
        assert run.ice.spark.sql(f"SELECT * FROM {text}").columns == columns, text
    moment = run.table("log").snapshots()[0].timestamp_ms
    run.rows(f"SELECT id FROM shelf.zoo.log FOR SYSTEM_TIME AS OF timestamp_millis({moment})", (1,))
    with pytest.raises(IcefloeError, match="snapshot"):
        run.ice.spark.sql("SELECT * FROM shelf.zoo.log TIMESTAMP AS OF 499162860")
    run(f"INSERT INTO shelf.zoo.log.`branch_side-way` VALUES (6, 'f', {day})")
    run.rows("SELECT id FROM shelf.zoo.log.`branch_side-way`", (1,), (6,))
    run("UPDATE shelf.zoo.log.`branch_side-way` AS b SET word = 'c'")
    run("DELETE FROM shelf.zoo.log.`branch_side-way` WHERE id = 6")
    run.rows("SELECT id, word FROM shelf.zoo.log.`branch_side-way`", (1, "c"))
    run(f"{alter} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    run("SET spark.wap.branch = side-way")
    run(f"INSERT INTO shelf.zoo.log VALUES (7, 'g', {day})", lambda: run.refs("log")["main"], second)
    run("RESET spark.wap.branch")
    run.rows("SELECT id FROM shelf.zoo.log VERSION AS OF 'side-way'", (1,), (7,))
    keep = f"{alter} CREATE OR REPLACE BRANCH `side-way` AS OF VERSION {first} RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS"
    run(keep, lambda: run.refs("log")["side-way"], first)
    kept, days = run.table("log").refs()["side-way"], 24 * 3600 * 1000
    assert (kept.max_ref_age_ms, kept.min_snapshots_to_keep, kept.max_snapshot_age_ms) == (30 * days, 3, 2 * days)
    run(
        f"{alter} REPLACE BRANCH `side-way` AS OF VERSION {second} RETAIN 60 DAYS",
        lambda: run.refs("log")["side-way"],
        second,
    )
    run(
        f"{alter} REPLACE TAG `old-one` AS OF VERSION {second} RETAIN 60 DAYS",
        lambda: run.refs("log")["old-one"],
        second,
    )
    run(f"{alter} CREATE OR REPLACE TAG `old-one` AS OF VERSION {first} RETAIN 365 DAYS")
    assert run.table("log").refs()["old-one"].max_ref_age_ms == 365 * days
    run(
        f"{alter} CREATE TAG forever AS OF VERSION {first}",
        lambda: run.table("log").refs()["forever"].max_ref_age_ms,
        None,
    )
    run(f"{alter} DROP BRANCH `side-way`", lambda: "side-way" in run.refs("log"), False)
    run(f"{alter} DROP TAG `old-one`", lambda: "old-one" in run.refs("log"), False)
    for name in ("history", "metadata_log_entries", "snapshots", "entries", "files", "manifests", "partitions", "refs"):
        assert run.ice.spark.sql(f"SELECT * FROM shelf.zoo.log.{name}").count() > 0, name
    for name in ("position_deletes", "all_data_files", "all_delete_files", "all_entries", "all_manifests"):
        run.ice.spark.sql(f"SELECT * FROM shelf.zoo.log.{name}").count()
    run.rows(f"SELECT record_count FROM shelf.zoo.log.files VERSION AS OF {first}", (1,))
    run.rows(
        "SELECT s.operation FROM shelf.zoo.log.history h JOIN shelf.zoo.log.snapshots s ON h.snapshot_id = s.snapshot_id"
        " WHERE h.is_current_ancestor",
        ("append",),
        ("append",),
    )


def test_views(run: Page) -> None:
    run("CREATE TABLE IF NOT EXISTS shelf.zoo.base (id bigint, zip int) USING iceberg")

    def view() -> Any:
        return run.ice.catalog.load_view("zoo.seen")

    run("CREATE VIEW shelf.zoo.seen AS SELECT * FROM shelf.zoo.base")
    run(
        "CREATE VIEW IF NOT EXISTS shelf.zoo.seen AS SELECT 1 AS other",
        lambda: view().schema().column_names,
        ("id", "zip"),
    )
    run(
        "CREATE TABLE IF NOT EXISTS shelf.zoo.seen (other int) USING iceberg",
        lambda: run.ice.catalog.table_exists("zoo.seen"),
        False,
    )
    run(
        "CREATE VIEW IF NOT EXISTS shelf.zoo.base AS SELECT 1 AS other",
        lambda: run.ice.catalog.view_exists("zoo.base"),
        False,
    )
    run(
        "CREATE OR REPLACE VIEW shelf.zoo.seen (key COMMENT 'new name') COMMENT 'short' TBLPROPERTIES ('a'='1', 'b'='2')"
        " AS SELECT id FROM shelf.zoo.base"
    )
    (field,) = view().schema().fields
    assert (field.name, field.doc, view().properties["a"], view().properties["comment"]) == (
        "key",
        "new name",
        "1",
        "short",
    )
    assert ("a", "1") in {tuple(row) for row in run.ice.spark.sql("SHOW TBLPROPERTIES shelf.zoo.seen").collect()}
    run("ALTER VIEW shelf.zoo.seen SET TBLPROPERTIES ('a'='9')", lambda: view().properties["a"], "9")
    run(
        "ALTER VIEW shelf.zoo.seen UNSET TBLPROPERTIES ('a', 'b')", lambda: {"a", "b"} & view().properties.keys(), set()
    )
    for place in ("shelf.zoo", "shelf.zoo LIKE 'se*'"):
        assert "seen" in {row["viewName"] for row in run.ice.spark.sql(f"SHOW VIEWS IN {place}").collect()}
    assert "SELECT id" in run.ice.spark.sql("SHOW CREATE TABLE shelf.zoo.seen").collect()[0][0]
    assert run.ice.spark.sql("DESCRIBE EXTENDED shelf.zoo.seen").collect()[0][:2] == ("key", "bigint")
    run("DROP VIEW shelf.zoo.seen", lambda: run.ice.catalog.view_exists("zoo.seen"), False)
    run("DROP VIEW IF EXISTS shelf.zoo.seen")


@pytest.mark.slow
def test_writes(run: Page) -> None:
    run("CREATE TABLE shelf.zoo.events (id bigint, lvl string, n int) USING iceberg PARTITIONED BY (lvl)")
    run("CREATE TABLE shelf.zoo.other (id bigint, op string) USING iceberg")
    run("INSERT INTO shelf.zoo.events VALUES (1, 'lo', NULL), (2, 'lo', 5), (3, 'hi', 7), (4, 'hi', 1)")
    run("INSERT INTO shelf.zoo.other SELECT * FROM VALUES (1, 'up'), (2, 'up'), (3, 'off'), (9, 'new')")
    run(
        """MERGE INTO shelf.zoo.events t USING (SELECT * FROM shelf.zoo.other) s ON t.id = s.id
        WHEN MATCHED AND s.op = 'off' THEN DELETE
        WHEN MATCHED AND t.n IS NULL AND s.op = 'up' THEN UPDATE SET t.n = 0
        WHEN MATCHED AND s.op = 'up' THEN UPDATE SET t.n = t.n + 1
        WHEN NOT MATCHED AND s.op = 'new' THEN INSERT (id, lvl, n) VALUES (s.id, 'new', 1)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET lvl = 'gone'"""
    )
    run.rows("SELECT * FROM shelf.zoo.events", (1, "lo", 0), (2, "lo", 6), (4, "gone", 1), (9, "new", 1))
    run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    run("INSERT OVERWRITE shelf.zoo.events SELECT id, lvl, n * 10 FROM shelf.zoo.events WHERE lvl = 'lo'")
    run("SET spark.sql.sources.partitionOverwriteMode = static")
    run(
        "INSERT OVERWRITE shelf.zoo.events PARTITION (lvl = 'new') SELECT id, 11 FROM shelf.zoo.events WHERE lvl = 'new'"
    )
    run.rows("SELECT * FROM shelf.zoo.events", (1, "lo", 0), (2, "lo", 60), (4, "gone", 1), (9, "new", 11))
    run("DELETE FROM shelf.zoo.events WHERE n >= 11 AND n < 12")
    run("DELETE FROM shelf.zoo.events WHERE id < (SELECT min(id) + 1 FROM shelf.zoo.other)")
    run("UPDATE shelf.zoo.events SET lvl = 'x', n = 2 WHERE n > 50 AND n < 70")
    run("UPDATE shelf.zoo.events AS e SET lvl = 'back' WHERE EXISTS (SELECT id FROM shelf.zoo.other WHERE e.id = id)")
    run.rows("SELECT * FROM shelf.zoo.events", (2, "back", 2), (4, "gone", 1))
    run("DELETE FROM shelf.zoo.events AS e WHERE EXISTS (SELECT id FROM shelf.zoo.other WHERE e.id = id)")
    run.rows("SELECT * FROM shelf.zoo.events", (4, "gone", 1))
    run("INSERT OVERWRITE shelf.zoo.events SELECT 5, 'all', 5")
    run.rows("SELECT * FROM shelf.zoo.events", (5, "all", 5))


def test_conditions_with_times_are_in_the_time_zone_of_the_session(run: Page, spark: Any) -> None:
    run("CREATE TABLE shelf.zoo.moments (id int, t timestamp, word string) USING iceberg")
    run(
        "INSERT INTO shelf.zoo.moments SELECT id, timestamp '2024-01-01 04:00:00Z' + make_dt_interval(0, 2 * id), 'it\\'s' FROM range(2)"
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        run(
            "INSERT INTO shelf.zoo.moments REPLACE WHERE t >= TIMESTAMP '2024-01-01 00:00:00' AND word = 'it\\'s' AND id < 5L"
            " SELECT 3, timestamp '2024-01-01 08:00:00Z', 'new'"
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    run.rows("SELECT id FROM shelf.zoo.moments", (0,), (3,))


def test_texts_that_procedures_get_are_cast_as_spark_does(run: Page, spark: Any) -> None:
    run("CREATE TABLE shelf.zoo.texts (id bigint) USING iceberg")
    for number in range(2):
        run(f"INSERT INTO shelf.zoo.texts VALUES ({number})")
    one, two = run.table("texts").snapshots()
    call = "CALL shelf.system"
    run.rows(f"{call}.rollback_to_snapshot('zoo.texts', '{one.snapshot_id}')", (two.snapshot_id, one.snapshot_id))
    run(f"{call}.set_current_snapshot('zoo.texts', {two.snapshot_id})")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        ((moment,),) = spark.sql(f"SELECT CAST(timestamp_millis({two.timestamp_ms}) AS STRING)").collect()
        run.rows(f"{call}.rollback_to_timestamp('zoo.texts', '{moment}')", (two.snapshot_id, one.snapshot_id))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    with pytest.raises(IcefloeError, match="'table' is given twice"):
        run(f"{call}.ancestors_of(table => 'zoo.texts', table => 'zoo.texts')")


def test_procedures(run: Page, tmp_path: Path) -> None:
    run("CREATE TABLE shelf.zoo.calls (id bigint) USING iceberg TBLPROPERTIES ('write.wap.enabled'='true')")
    for number in range(3):
        run(f"INSERT INTO shelf.zoo.calls VALUES ({number})")
    one, two, three = (each.snapshot_id for each in run.table("calls").snapshots())
    call = "CALL shelf.system"
    run.rows(f"{call}.rollback_to_snapshot('zoo.calls', {two})", (three, two))
    moment = run.table("calls").snapshots()[1].timestamp_ms
    run.rows(f"{call}.rollback_to_timestamp('zoo.calls', timestamp_millis({moment}))", (two, one))
    run.rows(f"{call}.set_current_snapshot('zoo.calls', {three})", (one, three))
    run(f"ALTER TABLE shelf.zoo.calls CREATE TAG s1 AS OF VERSION {two}")
    run.rows(f"{call}.set_current_snapshot(table => 'zoo.calls', ref => 's1')", (three, two))
    found = run.ice.spark.sql(f"{call}.cherrypick_snapshot(snapshot_id => {three}, table => 'zoo.calls')").collect()
    assert found[0]["source_snapshot_id"] == three
    run("SET spark.wap.id = w1")
    run("INSERT INTO shelf.zoo.calls VALUES (50)")
    run("RESET spark.wap.id")
    (row,) = run.ice.spark.sql(f"{call}.publish_changes(wap_id => 'w1', table => 'zoo.calls')").collect()
    assert row["current_snapshot_id"] == run.table("calls").metadata.current_snapshot_id
    run("ALTER TABLE shelf.zoo.calls CREATE BRANCH later")
    run("INSERT INTO shelf.zoo.calls.branch_later VALUES (60)")
    (row,) = run.ice.spark.sql(f"{call}.fast_forward('zoo.calls', 'main', 'later')").collect()
    assert (row["branch_updated"], row["updated_ref"]) == ("main", run.refs("calls")["later"])
    assert run.ice.spark.sql(f"{call}.ancestors_of('zoo.calls')").columns == ["snapshot_id", "timestamp"]
    run.rows("SELECT id FROM shelf.zoo.calls", (0,), (1,), (2,), (50,), (60,))
    (row,) = run.ice.spark.sql(f"{call}.rewrite_manifests('zoo.calls')").collect()
    assert (row["rewritten_manifests_count"] > 1, row["added_manifests_count"]) == (True, 1)
    run.rows(f"{call}.rewrite_manifests(table => 'zoo.calls', use_caching => false, spec_id => 0)", (0, 0))
    (row,) = run.ice.spark.sql(f"{call}.health('zoo.calls')").collect()
    assert (row["records"], row["partition"]) == (5, "")
    quiet = "map('maintenance.rewrite.quiet-ms', '0', 'maintenance.rewrite.cooldown-ms', '0')"
    steps = run.ice.spark.sql(f"{call}.maintain(table => 'zoo.calls', options => {quiet})").collect()
    assert {row["outcome"] for row in steps} == {"done", "not due"}
    (row,) = run.ice.spark.sql(f"{call}.expire_snapshots('zoo.calls', TIMESTAMP '2000-01-01 00:00:00', 100)").collect()
    assert set(row) == {0}
    run("ALTER TABLE shelf.zoo.calls DROP TAG s1")
    run.ice.spark.sql(f"{call}.expire_snapshots(table => 'zoo.calls', snapshot_ids => ARRAY({three}))")
    assert three not in {each.snapshot_id for each in run.table("calls").snapshots()}
    place = run.table("calls").metadata_location
    (row,) = run.ice.spark.sql(f"{call}.register_table(table => 'zoo.again', metadata_file => '{place}')").collect()
    assert row["total_records_count"] == 5
