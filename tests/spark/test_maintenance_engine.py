"""Steps of maintenance as jobs of Spark."""

from pyspark.sql import SparkSession

from icefloe.maintenance import engine_of


def test_items_are_mapped_by_tasks(spark: SparkSession) -> None:
    items = [f"{number:03}" for number in range(200)]
    for engine in (spark, "spark"):
        assert sorted(engine_of(engine).map(int, items)) == list(range(200))
    assert list(engine_of(spark).map(int, [])) == []
