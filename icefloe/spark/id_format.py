"""What schema Spark's Parquet writer writes: the one of the query, with the table's field ids, whatever became of them.

Spark's writer takes the ids of columns from the metadata of the optimized query's output, and rules of its optimizer drop
that, as when a variant goes through a scan. So the schema gets its ids where the writer is made.
"""

import json
from typing import Any

from pyspark.sql import DataFrame, types as spark_types

from icefloe.errors import StateError
from icefloe.spark.gateway import Gateway, Returned
from icefloe.spark.types import FIELD_ID


def write_parquet(
    gateway: Gateway, frame: DataFrame, folder: str, options: dict[str, str], partition: list[str], schema: Any
) -> None:
    """Write the frame's rows as Parquet files to a folder; those that have no field in `schema` must be the partition's."""
    jvm = gateway.callbacks().jvm
    sql = jvm.org.apache.spark.sql
    plan = frame._jdf.queryExecution().analyzed()
    output = plan.output()
    columns = [output.apply(index) for index in range(output.size())]
    by_name = {column.name(): column for column in columns}
    settings = jvm.java.util.HashMap()
    for key, value in options.items():
        settings.put(key, value)
    command = sql.execution.datasources.InsertIntoHadoopFsRelationCommand(
        jvm.org.apache.hadoop.fs.Path(folder),
        jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()),
        False,
        gateway.seq(by_name[name] for name in partition),
        gateway.none(),
        IdFormat(gateway, schema),
        jvm.PythonUtils.toScalaMap(settings),
        plan,
        sql.SaveMode.Append,
        gateway.none(),
        gateway.none(),
        gateway.seq(column.name() for column in columns),
    )
    sql.classic.Dataset.ofRows(gateway.spark._jsparkSession, command)


class IdFormat:
    """Spark's Parquet format, except that it writes the ids of a schema: a `FileFormat` for writing only."""

    def __init__(self, gateway: Gateway, schema: Any) -> None:
        self._gateway = gateway
        self._schema = schema
        self._parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        self._returned = Returned()

    # -- what Spark calls, by its names

    def prepareWrite(self, session: Any, job: Any, options: Any, schema: Any) -> Any:  # noqa: N802  # Spark's name
        """The factory of writers for files of these columns."""
        given = spark_types.StructType.fromJson(json.loads(schema.json()))
        written = self._gateway.type(with_ids(given, self._schema, ""))
        return self._returned(self._parquet.prepareWrite(session, job, options, written))

    def supportDataType(self, data_type: Any) -> bool:  # noqa: N802  # Spark's name
        """As Parquet has it."""
        return bool(self._parquet.supportDataType(data_type))

    def supportFieldName(self, name: str) -> bool:  # noqa: N802  # Spark's name
        """As Parquet has it."""
        return bool(self._parquet.supportFieldName(name))

    def allowDuplicatedColumnNames(self) -> bool:  # noqa: N802  # Spark's name
        """As Parquet has it."""
        return bool(self._parquet.allowDuplicatedColumnNames())

    def toString(self) -> str:  # noqa: N802  # Java's name
        """What plans show."""
        return "Parquet"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """By identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether it is this one."""
        return other is self

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileFormat",)


def with_ids(given: Any, known: Any, around: str) -> Any:
    """The Spark struct that is given, with the ids of the one that is known, field by field; the names must be the same.

    What may be null is the known one's as well: values of required fields were checked when they were shaped.
    """
    if [field.name for field in given.fields] != [field.name for field in known.fields]:
        raise StateError(
            f"Spark would write the fields {', '.join(given.names)} of {around or 'the table'}, which has"
            f" {', '.join(known.names)}"
        )
    return spark_types.StructType(
        [
            spark_types.StructField(
                one.name,
                _type_with_ids(one.dataType, other.dataType, f"{around}.{one.name}" if around else one.name),
                other.nullable,
                {FIELD_ID: other.metadata[FIELD_ID]},
            )
            for one, other in zip(given.fields, known.fields, strict=True)
        ]
    )


def _type_with_ids(given: Any, known: Any, path: str) -> Any:
    if isinstance(given, spark_types.StructType) and isinstance(known, spark_types.StructType):
        return with_ids(given, known, path)
    return given
