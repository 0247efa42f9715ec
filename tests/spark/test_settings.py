"""Catalogs that the settings of a session name."""

import pytest

from icefloe.errors import InvalidPropertyError
from icefloe.spark.connect import catalogs_in


def test_catalogs_as_people_have_them_for_the_jar() -> None:
    settings = {
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.type": "hadoop",
        "spark.sql.catalog.local.warehouse": "/lake",
        "spark.sql.catalog.team": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.team.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "spark.sql.catalog.team.uri": "jdbc:postgresql://127.0.0.1/lake",
        "spark.sql.catalog.team.jdbc.schema-version": "V1",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        "spark.sql.catalog.other": "com.example.Other",
        "spark.sql.catalog.other.key": "value",
        "spark.sql.defaultCatalog": "team",
        "spark.sql.shuffle.partitions": "2",
    }
    assert catalogs_in(settings) == {
        "team": {"type": "sql", "uri": "jdbc:postgresql://127.0.0.1/lake", "jdbc.schema-version": "V1"},
        "local": {"type": "hadoop", "warehouse": "/lake"},
    }
    assert list(catalogs_in(settings)) == ["team", "local"]


def test_our_own_settings_and_none() -> None:
    assert catalogs_in({"spark.icefloe.catalog.lake.type": "memory"}) == {"lake": {"type": "memory"}}
    assert catalogs_in({"spark.app.name": "x"}) == {}


def test_a_class_that_only_java_has_is_named() -> None:
    with pytest.raises(InvalidPropertyError, match="GlueCatalog"):
        catalogs_in({"spark.sql.catalog.g.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"})
