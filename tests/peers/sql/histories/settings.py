"""Random settings of the session: those that change what statements mean, and those that may change how rows are read and written."""

import random

from tests.peers.sql.histories.known import Defect

MEANING: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("spark.sql.ansi.enabled", ("false",), 0.35),
    ("spark.sql.caseSensitive", ("true",), 0.2),
    (
        "spark.sql.session.timeZone",
        ("America/New_York", "Asia/Kolkata", "Pacific/Apia", "Europe/Berlin", "+05:30"),
        0.4,
    ),
    ("spark.sql.storeAssignmentPolicy", ("LEGACY", "STRICT"), 0.25),
    ("spark.sql.sources.partitionOverwriteMode", ("dynamic",), 0.3),
    ("spark.sql.timestampType", ("TIMESTAMP_NTZ",), 0.1),
    ("spark.sql.mapKeyDedupPolicy", ("LAST_WIN",), 0.1),
)
"""The setting, the values that are not its default, and how often it has one of them."""

WORKING: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("spark.sql.adaptive.enabled", ("true",), 0.3),
    ("spark.sql.shuffle.partitions", ("1", "3"), 0.3),
    ("spark.sql.parquet.enableVectorizedReader", ("false",), 0.25),
    ("spark.sql.parquet.enableNestedColumnVectorizedReader", ("false",), 0.15),
    ("spark.sql.iceberg.vectorization.enabled", ("false",), 0.2),
    ("spark.sql.parquet.columnarReaderBatchSize", ("1", "2", "3"), 0.25),
    ("spark.sql.orc.enableVectorizedReader", ("false",), 0.1),
    ("spark.sql.optimizer.nestedSchemaPruning.enabled", ("false",), 0.1),
    ("spark.sql.parquet.filterPushdown", ("false",), 0.1),
    ("spark.sql.parquet.recordLevelFilter.enabled", ("true",), 0.1),
    ("spark.sql.parquet.aggregatePushdown", ("true",), 0.1),
    ("spark.sql.parquet.outputTimestampType", ("INT96", "TIMESTAMP_MILLIS"), 0.15),
    ("spark.sql.parquet.writeLegacyFormat", ("true",), 0.1),
    ("spark.sql.parquet.fieldId.write.enabled", ("false",), 0.1),
    ("spark.sql.parquet.fieldId.read.enabled", ("false", "true"), 0.1),
    ("spark.sql.parquet.fieldId.read.ignoreMissing", ("true",), 0.05),
    ("spark.sql.parquet.datetimeRebaseModeInWrite", ("LEGACY", "EXCEPTION"), 0.1),
    ("spark.sql.parquet.datetimeRebaseModeInRead", ("LEGACY", "EXCEPTION"), 0.1),
    ("spark.sql.parquet.int96RebaseModeInWrite", ("LEGACY",), 0.05),
    ("spark.sql.parquet.inferTimestampNTZ.enabled", ("false",), 0.1),
    ("spark.sql.parquet.binaryAsString", ("true",), 0.1),
    ("spark.sql.parquet.mergeSchema", ("true",), 0.1),
    ("spark.sql.parquet.compression.codec", ("gzip", "uncompressed"), 0.1),
    ("spark.sql.files.maxPartitionBytes", ("700",), 0.05),
    ("spark.sql.files.ignoreCorruptFiles", ("true",), 0.05),
    ("spark.sql.autoBroadcastJoinThreshold", ("-1",), 0.2),
    ("spark.sql.codegen.wholeStage", ("false",), 0.5),
    ("spark.sql.variant.pushVariantIntoScan", ("false", "true"), 0.5),
    ("spark.sql.variant.writeShredding.enabled", ("true", "false"), 0.2),
    ("spark.sql.optimizer.dynamicPartitionPruning.enabled", ("false",), 0.05),
    ("spark.sql.legacy.charVarcharAsString", ("true",), 0.03),
    ("spark.sql.maxMetadataStringLength", ("5",), 0.03),
)


_CONCERNED = {
    "spark.sql.storeAssignmentPolicy": Defect.STORE_ASSIGNMENT,
    "spark.sql.parquet.enableVectorizedReader": Defect.ROW_READER,
    "spark.sql.parquet.enableNestedColumnVectorizedReader": Defect.ROW_READER,
}


def random_settings(chance: random.Random, avoid: frozenset[Defect]) -> dict[str, str]:
    """A few settings that are not the defaults."""
    found: dict[str, str] = {}
    for key, values, share in (*MEANING, *WORKING):
        draw, value = chance.random(), chance.choice(values)
        if draw < share and _CONCERNED.get(key) not in avoid:
            found[key] = value
    return found
