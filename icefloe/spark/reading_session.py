"""With which session's settings Spark's reader reads a relation: those that give the table's rows, whatever the user has set.

Most of what the reader asks of its session is said by options of the relation instead. What cannot be said there is set in a
clone of the session, if the user has it otherwise:

- Bytes are no text; variants are made of bytes.
- Columns are matched by field id. The vectorized reader does as the relation says. The other one, which gives a row at a time,
  asks the session whether ids count, and finds columns by their names if not; so where ids are needed, the first one reads.
"""

from typing import Any

from icefloe.errors import StateError
from icefloe.spark.gateway import Gateway

_VECTORIZED = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")
_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
_BYTES_ARE_TEXT = "spark.sql.parquet.binaryAsString"


def reading_session(gateway: Gateway, schema: Any, *, needs_ids: bool) -> Any:
    """The session, as Java has it, whose settings are right for columns of this Spark type, which only ids may tell apart."""
    session = gateway.spark._jsparkSession
    changes = {}
    if _takes_bytes_for_text(session):
        changes[_BYTES_ARE_TEXT] = "false"
    if needs_ids and not _reads_by_id(gateway, session, schema):
        changes |= dict.fromkeys(_VECTORIZED, "true")
    if not changes:
        return session
    clone = session.cloneSession()
    for key, value in changes.items():
        clone.conf().set(key, value)
    return clone


def check_settings(gateway: Gateway, session: Any, schema: Any, *, needs_ids: bool) -> None:
    """Fail if the settings of a relation's session were changed since, so that files would be misread."""
    if _takes_bytes_for_text(session):
        raise StateError(
            f"{_BYTES_ARE_TEXT} was turned on after the DataFrame was made, and Spark would now take bytes for text; make the"
            " DataFrame again, or set it to false"
        )
    if needs_ids and not _reads_by_id(gateway, session, schema):
        raise StateError(
            f"{' or '.join(_VECTORIZED)} was turned off after the DataFrame was made, and Spark would now find its columns"
            f" by name; make the DataFrame again, or set {_BY_ID} to true"
        )


def _takes_bytes_for_text(session: Any) -> bool:
    return bool(session.sessionState().conf().isParquetBinaryAsString())


def _reads_by_id(gateway: Gateway, session: Any, schema: Any) -> bool:
    settings = session.sessionState().conf()
    parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
    return bool(
        parquet.ParquetUtils.isBatchReadSupportedForSchema(settings, gateway.type(schema))
        or settings.parquetFieldIdReadEnabled()
    )
