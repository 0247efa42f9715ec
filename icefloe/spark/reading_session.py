"""With which session's settings Spark's reader reads a relation: it is to find columns by field id, whatever the user has set.

The vectorized reader does as the relation says. The other one, which gives a row at a time, asks the session whether ids
count, and finds columns by their names if not. So where ids are needed and the session turned the vectorized reader off, the
relation belongs to a clone of the session in which it is on.
"""

from typing import Any

from icefloe.errors import StateError
from icefloe.spark.gateway import Gateway

_VECTORIZED = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")
_BY_ID = "spark.sql.parquet.fieldId.read.enabled"


def reading_session(gateway: Gateway, schema: Any) -> Any:
    """The session, as Java has it, whose settings are right for columns of this Spark type that only ids tell apart."""
    session = gateway.spark._jsparkSession
    if _reads_by_id(gateway, session, schema):
        return session
    clone = session.cloneSession()
    for key in _VECTORIZED:
        clone.conf().set(key, "true")
    return clone


def check_settings(gateway: Gateway, session: Any, schema: Any) -> None:
    """Fail if the settings of a relation's session were changed since, so that columns would be found by name."""
    if not _reads_by_id(gateway, session, schema):
        raise StateError(
            f"{' or '.join(_VECTORIZED)} was turned off after the DataFrame was made, and Spark would now find its columns"
            f" by name; make the DataFrame again, or set {_BY_ID} to true"
        )


def _reads_by_id(gateway: Gateway, session: Any, schema: Any) -> bool:
    settings = session.sessionState().conf()
    parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
    return bool(
        parquet.ParquetUtils.isBatchReadSupportedForSchema(settings, gateway.type(schema))
        or settings.parquetFieldIdReadEnabled()
    )
