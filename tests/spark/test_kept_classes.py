"""For which Java and which Spark classes are kept, and how many of them."""

import os
import sys
from pathlib import Path

import pytest

from icefloe.spark.jvm.kept_classes import Kept, platform

CLASSES = {"one.Entry": b"code", "one.Entry$Inner": b"more"}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where classes are kept."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def made_jars(folder: Path) -> str:
    jars = [folder / name for name in ("spark-core.jar", "spark-sql.jar")]
    for jar in jars:
        jar.write_bytes(b"classes")
        os.utime(jar, (1_000, 1_000))
    return os.pathsep.join(["/no/such/conf", *map(str, jars)])


def test_classes_come_back_as_they_were() -> None:
    held = Kept("text", "source", "platform")
    assert held.load() is None
    held.store(CLASSES)
    assert held.load() == CLASSES


def test_each_text_and_each_platform_has_its_own() -> None:
    Kept("text", "source", "platform").store(CLASSES)
    for other in (("other", "source", "platform"), ("text", "changed", "platform"), ("text", "source", "another")):
        assert Kept(*other).load() is None


def test_another_java_or_another_jar_is_another_platform(tmp_path: Path) -> None:
    class_path = made_jars(tmp_path)
    known = platform("17.0.1", class_path)
    assert known is not None
    assert known == platform("17.0.1", class_path)
    others = {platform("21.0.1", class_path), platform("17.0.1", class_path.removesuffix("spark-sql.jar") + "conf")}
    jar = tmp_path / "spark-sql.jar"
    jar.write_bytes(b"longer classes")
    os.utime(jar, (1_000, 1_000))
    others.add(platform("17.0.1", class_path))
    os.utime(jar, (2_000, 2_000))
    others.add(platform("17.0.1", class_path))
    assert len(others - {known, None}) == 4


def test_a_java_elsewhere_is_no_platform(tmp_path: Path) -> None:
    assert platform("17.0.1", made_jars(tmp_path) + os.pathsep + "/no/such/spark.jar") is None
    assert platform("17.0.1", "/no/jars/at/all") is None


def test_few_versions_of_a_text_are_kept(folder: Path) -> None:
    for number in range(7):
        held = Kept("text", f"source {number}", "platform")
        held.store(CLASSES)
        for age, file in enumerate(sorted(folder.rglob("text-*.jar"), key=lambda each: -each.stat().st_mtime)):
            os.utime(file, (10_000 - age, 10_000 - age))
    Kept("other", "source", "platform").store(CLASSES)
    assert len(list(folder.rglob("text-*.jar"))) == 4
    assert [number for number in range(7) if Kept("text", f"source {number}", "platform").load()] == [3, 4, 5, 6]
    assert Kept("other", "source", "platform").load() == CLASSES
