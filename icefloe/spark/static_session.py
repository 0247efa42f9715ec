"""How queries over little data are run: by their first plan, in few tasks, without a job for each step.

Adaptive execution runs every exchange, and every frame that is held, as a job of its own, and plans again after each. That
pays where sizes are not known. Where they are, it costs more than the work itself.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.spark.gateway import Gateway

_PARTITIONS = "spark.sql.shuffle.partitions"


def static_session(spark: Any) -> Any:
    """A session like the given one, which sees the same data and does not adapt its plans."""
    clone = spark._jsparkSession.cloneSession()
    conf = clone.conf()
    conf.set("spark.sql.adaptive.enabled", "false")
    conf.set(_PARTITIONS, str(min(int(conf.get(_PARTITIONS)), spark.sparkContext.defaultParallelism)))
    return SparkSession(spark.sparkContext, clone)


def in_session(frame: DataFrame, spark: Any) -> DataFrame:
    """The same plan in another session."""
    plan = frame._jdf.queryExecution().analyzed()
    dataset = Gateway(spark).jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    return DataFrame(dataset, spark)
