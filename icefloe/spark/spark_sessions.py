"""What a Spark session is and how it is set, and clones of it with other settings.

Spark's reader is to give the table's rows, whatever the user has set. Most of what it asks of its session is said by options
of the relation instead. What cannot be said there is set in a clone of the session, if the user has it otherwise:

- Bytes are no text; variants are made of bytes.
- Columns are matched by field id. The vectorized reader does as the relation says. The other one, which gives a row at a time,
  asks the session whether ids count, and finds columns by their names if not; so where ids are needed, the first one reads.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession, types as spark_types

from icefloe.errors import StateError
from icefloe.spark.gateway import Gateway

_VECTORIZED = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")
_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
_BYTES_ARE_TEXT = "spark.sql.parquet.binaryAsString"
_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class _Held:
    """What is kept of a session that nobody sets anew: its clones by their settings, and settings of its own."""

    clones: dict[tuple[tuple[str, str], ...], SparkSession] = field(default_factory=dict)
    settings: dict[tuple[str | None, ...], str | None] = field(default_factory=dict)


_HELD: MutableMapping[SparkSession, _Held] = WeakKeyDictionary()


def is_classic(spark: SparkSession) -> bool:
    """Whether the session has a JVM that Python can reach, unlike one of Spark Connect."""
    return ".connect." not in type(spark).__module__ and getattr(spark, "_jsparkSession", None) is not None


def is_on(spark: SparkSession, key: str, default: str | None = None) -> bool:
    """Whether a setting of the session is true."""
    return str(setting(spark, key, *(() if default is None else (default,)))).lower() == "true"


def setting(spark: SparkSession, key: str, *default: str | None) -> str | None:
    """A setting of the session; one that nobody sets anew is asked once."""
    held = _HELD.get(spark)
    if held is None:
        return _asked(spark, key, *default)
    known = (key, *default)
    if known not in held.settings:
        held.settings[known] = _asked(spark, key, *default)
    return held.settings[known]


def _asked(spark: SparkSession, key: str, *default: str | None) -> str | None:
    value: str | None = spark.conf.get(key, *default)
    return value


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether the session's column names are case-sensitive."""
    return is_on(spark, "spark.sql.caseSensitive")


def clone_with(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A clone of the session with other settings; it shares data and temporary views with the original."""
    return SparkSession(spark.sparkContext, _clone(spark._jsparkSession, settings))


def hold_clones(spark: SparkSession) -> SparkSession:
    """The session, whose settings nobody changes from now on, such as that of a query: each clone of it is made, and each setting asked, once."""
    _HELD.setdefault(spark, _Held())
    return spark


def held_clone(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A clone of the session with other settings, the same again if the session holds its clones."""
    held = _HELD.get(spark)
    if held is None:
        return clone_with(spark, settings)
    key = tuple(sorted(settings.items()))
    if key not in held.clones:
        held.clones[key] = clone_with(spark, settings)
    return held.clones[key]


def forget_clones(spark: SparkSession) -> None:
    """Make the clones of the session anew from now on, as there is something that those of before lack."""
    if (held := _HELD.get(spark)) is not None:
        held.clones.clear()


def _clone(session: JavaObject, settings: Mapping[str, str]) -> JavaObject:
    clone = session.cloneSession()
    conf = clone.conf()
    for key, value in settings.items():
        conf.set(key, value)
    return clone


def static_session(spark: SparkSession) -> SparkSession:
    """A clone of the session for queries over little data: run by their first plan, in few tasks.

    Adaptive execution runs every exchange, and every frame that is held, as a job of its own, and plans again after each.
    That pays where sizes are not known. Where they are, it costs more than the work itself.
    """
    partitions = min(int(spark.conf.get(_PARTITIONS)), spark.sparkContext.defaultParallelism)
    return clone_with(spark, {"spark.sql.adaptive.enabled": "false", _PARTITIONS: str(partitions)})


class ReadSettings(NamedTuple):
    """How a session's Parquet reader is set for some columns."""

    bytes_are_text: bool
    by_id: bool
    """Whether it finds columns by their ids."""

    def check(self, *, needs_ids: bool) -> None:
        """Fail if files would be misread, since settings of a relation's session were changed after it was made."""
        if self.bytes_are_text:
            raise StateError(
                f"{_BYTES_ARE_TEXT} was turned on after the DataFrame was made, and Spark would now take bytes for text;"
                " make the DataFrame again, or set it to false"
            )
        if needs_ids and not self.by_id:
            raise StateError(
                f"{' or '.join(_VECTORIZED)} was turned off after the DataFrame was made, and Spark would now find its"
                f" columns by name; make the DataFrame again, or set {_BY_ID} to true"
            )


def reading_session(spark: SparkSession, settings: ReadSettings, *, needs_ids: bool) -> JavaObject:
    """The session, as Java has it, or a clone, whose settings are right for columns which only ids may distinguish."""
    changes = {}
    if settings.bytes_are_text:
        changes[_BYTES_ARE_TEXT] = "false"
    if needs_ids and not settings.by_id:
        changes |= dict.fromkeys(_VECTORIZED, "true")
    return _clone(spark._jsparkSession, changes) if changes else spark._jsparkSession


def read_settings(gateway: Gateway, session: JavaObject, schema: spark_types.StructType) -> ReadSettings:
    """How a session, as Java has it, is set for columns of this Spark type."""
    settings = session.sessionState().conf()
    parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
    by_id = (
        parquet.ParquetUtils.isBatchReadSupportedForSchema(settings, gateway.type(schema))
        or settings.parquetFieldIdReadEnabled()
    )
    return ReadSettings(bool(settings.isParquetBinaryAsString()), bool(by_id))
