"""Java classes that are compiled in the JVM of Spark: once, for the driver and for tasks; and what happens where that cannot be."""

import io
import logging
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from icefloe.spark.jvm import door
from icefloe.spark.jvm.kept_classes import packed
from icefloe.spark.shape_writes import FIRST_WITH_SHAPES
from icefloe.spark.spark_sessions import held_clone, hold_clones
from tests.spark.conftest import SPARK
from tests.spark.processes import bare_environment
from tests.spark.sessions import settings

ROOT = Path(__file__).parents[2]
WORKING = """package PACKAGE;

public class Entry {
  public Entry() {}
  public String greeting() { return "from UNIQUE"; }
  public scala.Function1 twice() { return new Twice(); }
}

class Twice extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
  public Object apply(Object number) { return Integer.valueOf(((Integer) number).intValue() * 2); }
}
"""
LACKING = WORKING.replace("public Entry() {}", 'public Entry() { throw new IllegalStateException("no such field"); }')
WRONG = WORKING.replace("scala.Function1", "scala.NoSuchType")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], str]:
    """Gives a text to the door, under a name that is returned; its classes are kept in a folder of the test."""
    texts: dict[str, str] = {}
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(door, "text", texts.__getitem__)

    def give(text: str) -> str:
        name = f"given_{uuid4().hex}"
        texts[name] = text.replace("UNIQUE", name)
        return name

    return give


def doubled(spark: Any, function: Any) -> list[int]:
    """What tasks make of numbers with a Scala function of ours."""
    lists = spark._jvm.java.util.ArrayList()
    for number in (1, 2, 3):
        lists.add(number)
    rows = spark.sparkContext._jsc.parallelize(lists, 2).rdd()
    tag = spark._jvm.scala.reflect.ClassTag.apply(spark._jvm.java.lang.Class.forName("java.lang.Object"))
    return sorted(rows.map(function, tag).toJavaRDD().collect())


def test_classes_are_compiled_once_and_known_to_tasks(spark: Any, given: Callable[[str], str]) -> None:
    name = given(WORKING)
    entry = door.entry(spark, name)
    assert entry is not None
    assert entry.greeting() == f"from {name}"
    again = door.entry(spark.newSession(), name, in_tasks=True)
    assert entry.equals(again)
    jars = spark.sparkContext._jsc.sc().listJars()
    assert entry.equals(door.entry(spark, name, in_tasks=True))
    assert spark.sparkContext._jsc.sc().listJars().size() == jars.size()
    assert doubled(spark, entry.twice()) == [2, 4, 6]


def kept_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jar"))


def forget(spark: Any, name: str) -> None:
    """Leave the JVM without a text, as another one would be."""
    del door._UNITS[spark._jvm._gateway_client][name]


def test_classes_are_kept_for_the_next_jvm(
    spark: Any, given: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = given(WORKING)
    assert door.entry(spark, name) is not None
    [file] = kept_files(tmp_path)
    assert file.name.startswith(f"{name}-")
    forget(spark, name)
    with monkeypatch.context() as patched:
        patched.setattr(door, "_compiled", lambda *_: pytest.fail("it is compiled again"))
        entry = door.entry(spark, name, in_tasks=True)
        assert entry is not None
        assert entry.greeting() == f"from {name}"
        assert doubled(spark, entry.twice()) == [2, 4, 6]


@pytest.mark.parametrize("damage", ["cut off", "other bytes", "not a class", "of another text", "gone"])
def test_kept_classes_that_cannot_be_used_are_compiled_again(
    spark: Any, given: Callable[[str], str], tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = given(WORKING)
    assert door.entry(spark, name) is not None
    [file] = kept_files(tmp_path)
    whole = file.read_bytes()
    match damage:
        case "cut off":
            file.write_bytes(whole[: len(whole) // 2])
        case "other bytes":
            file.write_bytes(whole[:200] + bytes(byte ^ 0xFF for byte in whole[200:400]) + whole[400:])
        case "not a class":
            classes = zipfile.ZipFile(io.BytesIO(whole)).namelist()
            file.write_bytes(packed({each.removesuffix(".class"): b"no class" for each in classes}))
        case "of another text":
            file.write_bytes(packed({"icefloe_other.Entry": b"no class"}))
        case "gone":
            file.unlink()
    forget(spark, name)
    with caplog.at_level(logging.WARNING, "icefloe.spark"):
        entry = door.entry(spark, name)
    assert entry is not None
    assert entry.greeting() == f"from {name}"
    assert kept_files(tmp_path) == [file]
    assert file.read_bytes() == whole
    assert len(caplog.records) == (damage in ("not a class", "of another text"))


def test_nothing_is_kept_of_what_cannot_be_used_or_where_python_keeps_nothing(
    spark: Any, given: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert door.entry(spark, given(LACKING)) is None
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert door.entry(spark, given(WORKING)) is not None
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(sys, "pycache_prefix", str(blocked))
    assert door.entry(spark, given(WORKING)) is not None
    assert kept_files(tmp_path) == []


def test_a_session_with_artifacts_of_its_own(spark: Any, given: Callable[[str], str]) -> None:
    name = given(WORKING)
    other = spark.newSession()
    with settings(other, {"spark.sql.artifact.isolation.enabled": "true"}):
        before = spark.sparkContext._jsc.sc().listJars().size()
        assert door.entry(other, name, in_tasks=True) is not None
        # Others do not know it yet, and get it when they ask.
        assert door.entry(spark, name, in_tasks=True) is not None
        assert spark.sparkContext._jsc.sc().listJars().size() == before + 2


def test_a_session_that_is_set_up_elsewhere_has_artifacts_of_its_own(spark: Any, given: Callable[[str], str]) -> None:
    """Spark's own default holds where nobody says otherwise, as PySpark does for the sessions that it makes."""
    name = given(WORKING)
    other = spark.newSession()
    shared = spark.conf.get("spark.sql.artifact.isolation.enabled")
    other._jsparkSession.sessionState().conf().unsetConf("spark.sql.artifact.isolation.enabled")
    assert (shared, other.conf.get("spark.sql.artifact.isolation.enabled")) == ("false", "true")
    before = spark.sparkContext._jsc.sc().listJars().size()
    assert door.entry(other, name, in_tasks=True) is not None
    assert door.entry(spark, name, in_tasks=True) is not None
    assert spark.sparkContext._jsc.sc().listJars().size() == before + 2


def test_clones_know_the_classes_that_their_session_is_sent_later(spark: Any, given: Callable[[str], str]) -> None:
    other = hold_clones(spark.newSession())
    other._jsparkSession.conf().set("spark.sql.artifact.isolation.enabled", "true")
    before = held_clone(other, {"spark.sql.caseSensitive": "true"})
    assert held_clone(other, {"spark.sql.caseSensitive": "true"}) is before
    assert door.entry(other, given(WORKING), in_tasks=True) is not None
    assert held_clone(other, {"spark.sql.caseSensitive": "true"}) is not before


def test_the_setting_leaves_java_out(spark: Any, given: Callable[[str], str]) -> None:
    name = given(WORKING)
    with settings(spark, {door.ENABLED: "false"}):
        assert door.entry(spark, name) is None
    assert door.entry(spark, name) is not None


@pytest.mark.parametrize("text", [LACKING, WRONG], ids=["lacking", "wrong"])
def test_what_cannot_be_used_is_logged_once(
    spark: Any, given: Callable[[str], str], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = given(text)
    with caplog.at_level(logging.WARNING, "icefloe.spark"):
        assert door.entry(spark, name) is None
        assert door.entry(spark, name, in_tasks=True) is None
    (record,) = caplog.records
    assert name in record.getMessage()
    assert len(record.getMessage().splitlines()) == 1


def test_a_jar_that_spark_refuses(
    spark: Any, given: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = given(WORKING)
    monkeypatch.setattr(spark.sparkContext, "_temp_dir", "/no/such/folder")
    with caplog.at_level(logging.WARNING, "icefloe.spark"):
        assert door.entry(spark, name, in_tasks=True) is None
        assert door.entry(spark, name, in_tasks=True) is None
        assert door.entry(spark, name) is not None
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "name",
    [
        "batch_rows",
        "file_writes",
        "live_rows",
        "parsers",
        "partition_files",
        "row_changes",
        "scan_index",
        "shared_readers",
        "shape_writes",
        "streams",
    ],
)
def test_the_texts_suit_this_spark(spark: Any, name: str) -> None:
    if name == "shape_writes" and SPARK < FIRST_WITH_SHAPES:
        pytest.skip("the Parquet library of this Spark knows no geometries")
    assert door.entry(spark, name, in_tasks=True) is not None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_programs_sessions_and_a_stop(spark: Any, tmp_path: Path) -> None:
    """At once, each with sessions that share artifacts and ones that do not; nothing of ours is left behind."""
    command = [sys.executable, "-m", "tests.spark.use_jvm", str(tmp_path)]
    environment = bare_environment(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    programs = [
        subprocess.Popen(
            [*command, number], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in ("1", "2")
    ]
    for program in programs:
        output, problems = program.communicate(timeout=500)
        assert program.returncode == 0, output + problems[-5000:]
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".jar"] == []
    assert list((tmp_path / "local").iterdir()) == []
