"""`icefloe sql`: statements of Spark SQL from a shell, on the catalog of the working directory."""

import io
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icefloe.cli.main import main


def test_statements(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["init", "-q"]) == 0
    (tmp_path / "make.sql").write_text(
        "CREATE NAMESPACE shop; -- a; b\nCREATE TABLE shop.t (id BIGINT, s STRING);\nINSERT INTO shop.t VALUES (1, 'a;b'), (2, NULL)"
    )
    assert main(["sql", "-f", "make.sql"]) == 0
    capsys.readouterr()
    assert main(["sql", "SELECT * FROM shop.t ORDER BY id", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == [{"id": 1, "s": "a;b"}, {"id": 2, "s": None}]
    assert main(["sql", "-c", "DELETE FROM shop.t WHERE id = 2"]) == 0
    capsys.readouterr()
    assert main(["query", "SELECT count(*) AS n FROM shop.t", "--engine", "spark", "-o", "csv"]) == 0
    assert capsys.readouterr().out == "n\n1\n"
    assert main(["sql", "SELECT nope FROM shop.t"]) == 2
    assert "nope" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n\nFROM shop.t;\nSELECT broken;\nexit;\n"))
    assert main(["sql", "-o", "csv"]) == 0
    said = capsys.readouterr()
    assert said.out == "n\n1\n"
    assert "Error: " in said.err
    assert spark.sql("SELECT 1").collect()[0][0] == 1
