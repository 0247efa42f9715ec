"""How the calls that never pass Spark's parser reach our catalogs, on one session and until it is undone.

`spark.table`, `spark.read`, `spark.readStream` and `spark.catalog` are of the session, so it gets a class of its own. `df.write`,
`df.writeTo`, `df.writeStream` and `df.mergeInto` are of all DataFrames: while there is such a session, they look which one a frame is of. Whatever does not name a table of
ours goes on to Spark.
"""

# ruff: noqa: N802, N803 - the names are Spark's

import threading
from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.catalog import Catalog as SparkCatalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

from icefloe.spark.drop_in.catalog import DropInCatalog
from icefloe.spark.drop_in.reader import DropInNames, DropInReader
from icefloe.spark.drop_in.streams import DropInStreamReader, DropInStreamWriter
from icefloe.spark.drop_in.writers import DropInMerge, DropInWriter, DropInWriterV2

_NAMES = "_icefloe_names"
_LOCK = threading.Lock()
_LIVE: list[object] = []


class DropInSession(SparkSession):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """A session whose own calls know our catalogs; only ever the class of one that was a plain session before."""

    _icefloe_names: DropInNames

    def table(self, tableName: str) -> DataFrame:
        """A table, of ours or of Spark's."""
        return self.read.table(tableName)

    def newSession(self) -> SparkSession:
        """Another session of the same Spark, of which we know nothing."""
        session = super().newSession()
        session.__class__ = SparkSession
        return session

    @property
    def read(self) -> DataFrameReader:
        """A reader of tables, ours or Spark's, and of files."""
        return DropInReader(self, self._icefloe_names)

    @property
    def readStream(self) -> DataStreamReader:
        """A reader of streams of tables, ours or Spark's, and of files."""
        return DropInStreamReader(self, self._icefloe_names)

    @property
    def catalog(self) -> SparkCatalog:
        """All catalogs, ours and Spark's."""
        return DropInCatalog(self, self._icefloe_names)


def install(spark: SparkSession, names: DropInNames) -> Callable[[], None]:
    """Let the session's own calls find our tables; the returned function undoes it."""
    before, held = type(spark), spark.__dict__.get(_NAMES)
    spark.__dict__[_NAMES] = names
    spark.__class__ = DropInSession
    token = object()
    with _LOCK:
        if not _LIVE:
            _patch()
        _LIVE.append(token)

    def undo() -> None:
        with _LOCK:
            if token not in _LIVE:
                return
            _LIVE.remove(token)
            if not _LIVE:
                _restore()
        spark.__class__ = before
        if held is None:
            spark.__dict__.pop(_NAMES, None)
        else:
            spark.__dict__[_NAMES] = held

    return undo


_PLAIN: dict[str, Any] = {}
"""Spark's own methods and properties, while ours are in their place."""


def _patch() -> None:
    _PLAIN.update({name: ClassicFrame.__dict__[name] for name in ("write", "writeTo", "mergeInto", "writeStream")})
    frames = cast(Any, ClassicFrame)
    frames.write = property(_write, doc=_PLAIN["write"].__doc__)
    frames.writeStream = property(_write_stream, doc=_PLAIN["writeStream"].__doc__)
    frames.writeTo = _write_to
    frames.mergeInto = _merge_into


def _restore() -> None:
    for name, plain in _PLAIN.items():
        setattr(ClassicFrame, name, plain)
    _PLAIN.clear()


def _write(frame: DataFrame) -> DataFrameWriter:
    names = _names(frame)
    return cast(DataFrameWriter, _plain("write").__get__(frame)) if names is None else DropInWriter(frame, names)


def _write_stream(frame: DataFrame) -> DataStreamWriter:
    names = _names(frame)
    if names is None:
        return cast(DataStreamWriter, _plain("writeStream").__get__(frame))
    return DropInStreamWriter(frame, names)


def _write_to(frame: DataFrame, table: str) -> DataFrameWriterV2:
    names = _names(frame)
    target = None if names is None else names.target(table)
    if names is None or target is None:
        return cast(DataFrameWriterV2, _plain("writeTo")(frame, table))
    return DropInWriterV2(frame, target, names)


def _merge_into(frame: DataFrame, table: str, condition: Column) -> MergeIntoWriter:
    names = _names(frame)
    target = None if names is None else names.target(table)
    if names is None or target is None:
        return cast(MergeIntoWriter, _plain("mergeInto")(frame, table, condition))
    return DropInMerge(frame, target, condition, names)


def _names(frame: DataFrame) -> DropInNames | None:
    session = frame.sparkSession
    return session._icefloe_names if isinstance(session, DropInSession) else None


def _plain(name: str) -> Any:
    """Spark's own; whoever got hold of ours just before it was undone finds the class as it was."""
    return _PLAIN.get(name) or ClassicFrame.__dict__[name]
