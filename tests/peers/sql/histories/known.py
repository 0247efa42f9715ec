"""What is known: defects that are being repaired, which the generator goes around, and differences that stay, with their reasons."""

import re
from dataclasses import dataclass
from enum import Enum


class Defect(Enum):
    """A defect of ours that is known; while it is in `KNOWN_DEFECTS`, histories do not touch what it concerns."""

    VARIANT_IDS = "copy-on-write and INSERT ... SELECT write variants without field ids"
    COERCED_VALUES = "UPDATE and MERGE coerce the values that stay to the type of the new one"
    NESTED_NAMES_AGAIN = "a name of a nested field that was used before reads as NULL"
    NULL_STRUCTS = "a field assigned in a struct that is NULL is lost"
    WAP_BRANCH = "UPDATE, DELETE, MERGE and SELECT do not follow spark.wap.branch"
    TEMPORARY_VIEWS = "temporary views stay at the snapshot of their creation"
    STRUCTS_THAT_LACK_FIELDS = "an assigned struct that lacks a field is filled with NULL"
    CASE_TWINS = "names that differ by case alone are accepted, or do not work where they may"
    VOID_PARTITIONS = "v1 tables with a dropped partition field cannot be inspected"
    STORE_ASSIGNMENT = "values of other types are refused, and the policies STRICT and LEGACY are not followed"
    NAMES_IN_MERGE = (
        "bare names in NOT MATCHED BY SOURCE, NULL as a condition, qualified assignments, WITH before changes"
    )
    REPLACED_TYPES = "verify cannot read files from before a table was replaced with another type"
    NULL_PARTITIONS = "PARTITION (p = NULL) is not understood"
    PARTITION_COLUMN = "_partition cannot be read in UPDATE"
    EMPTY_BRANCHES = "a branch of an empty table cannot be made"
    TRUNCATED_LEAST = "truncate of the least int overflows"
    FLOATS_INSIDE = "a field of a struct that holds a float anywhere reads as NULL"
    ROW_READER = "without Spark's vectorized reader columns are not found by their ids"
    EXPIRE_CALL = "the procedure expire_snapshots fails after it has committed"
    REPLACE_BETWEEN = "BETWEEN is not known in the condition of REPLACE WHERE"
    REQUIRED_INSIDE = "values that may be NULL are refused for required fields of structs"


KNOWN_DEFECTS: frozenset[Defect] = frozenset()
"""Those that are not repaired yet."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A difference that stays: where it is seen, why, and where the public can read of it."""

    reason: str
    issue: str
    kind: str = ".*"
    """Which kinds of statements, as a pattern."""
    statement: str = ""
    """A pattern that the text of the statement has."""
    ours: str = ""
    """A pattern of what we answer."""
    java: str = ""
    """A pattern of what Java answers."""
    what: str = ".*"
    """Which part of the outcome or state differs."""

    def explains(self, kind: str, statement: str, what: str, ours: str, java: str) -> bool:
        """Whether a difference is this one."""
        return (
            re.fullmatch(self.kind, kind) is not None
            and re.fullmatch(self.what, what) is not None
            and re.search(self.statement, statement, re.DOTALL) is not None
            and re.search(self.ours, ours, re.DOTALL) is not None
            and re.search(self.java, java, re.DOTALL) is not None
        )


EXPECTED_DIFFERENCES: tuple[Expected, ...] = (
    Expected(
        "Java does not let Spark set defaults of columns",
        "apache/iceberg#13464",
        kind="add column",
        statement="DEFAULT",
        java="setting default values in Spark is currently unsupported",
        what="refusal",
    ),
    Expected(
        "Java cannot take a struct as a literal of a filter",
        "apache/iceberg#5132",
        statement="named_struct",
        java="Cannot create expression literal from org.apache.spark.sql.catalyst",
        what="refusal",
    ),
    Expected(
        "REPLACE WHERE of Java takes whole files alone, and ours rewrites what it must",
        "apache/iceberg#10619",
        kind="overwrite",
        statement="REPLACE WHERE",
        java="Cannot delete file where some, but not all, rows match filter",
        what="refusal",
    ),
    Expected(
        "Spark's planner computes a constant that overflows although its clause concerns no row",
        "SPARK-39865",
        kind="merge|update",
        java="CAST_OVERFLOW_IN_TABLE_INSERT",
        what="refusal",
    ),
    Expected(
        "Java cannot plan a scan of a snapshot from before its columns got other names, if variants are in them",
        "none that we know of",
        java=r"phase optimization failed with an internal error|includeColumnStats|NestedField\.fieldId\(\)",
        what="rows|answer|refusal",
    ),
    Expected(
        "Java stores bytes that are no UTF-8 as text",
        "none that we know of",
        statement="X'",
        what="rows|refusal",
        java=r"^\[",
        ours="refused: .*(UTF-8|UTF8|utf-8)",
    ),
    Expected(
        "Java replaces rows with NULL too where a condition says that a value is another one",
        "apache/iceberg#3578",
        kind="overwrite",
        statement=r"REPLACE WHERE .*(<>|!=|NOT )",
        what="rows",
    ),
    Expected(
        "Java keeps files whose rows are all deleted, with their deletes, and we remove both",
        "none that we know of",
        kind="metadata",
        statement=r"sum\(record_count\)",
        what="answer",
    ),
    Expected(
        "Java counts the first snapshot of a new branch of the session as if its table were empty",
        "none that we know of",
        kind="verify",
        statement="verify Java's",
        ours=r"^(warning: (summary-totals|delete-dangling): [^;]+(; |$))+$",
        what="verify",
    ),
    Expected(
        "Java finds a partition field by its column of now alone, and we by its own name too",
        "none that we know of",
        kind="partition field",
        statement="DROP PARTITION FIELD",
        java="Cannot find field",
        what="refusal",
    ),
    Expected(
        "Conditions of REPLACE WHERE have no NULL in lists",
        "our choice",
        kind="overwrite",
        ours="the function CAST is not known.*CAST\\(NULL AS",
        what="refusal",
    ),
    Expected(
        "Spark lets LEGACY pass where nothing would be cast, and we refuse it",
        "our choice",
        ours="storeAssignmentPolicy=LEGACY",
        what="refusal",
    ),
    Expected(
        "Java writes a row twice that two rows of the source match, if no clause is about rows that match",
        "none that we know of",
        kind="merge",
        statement="^(?!.*WHEN MATCHED).*NOT MATCHED BY SOURCE",
        what="rows",
    ),
    Expected(
        "0.0 and -0.0 are equal in Spark, and Java skips files by bounds in which -0.0 is less",
        "none that we know of",
        kind="query|travel|view|delete|update|merge",
        statement=r"\b0\.0[DF]|'-?0\.0'",
        what="answer|rows",
    ),
    Expected(
        "Java has a snapshot of a change of no row, at which a tag can be",
        "our choice",
        kind="ref",
        ours="needs a snapshot, but the table has none yet",
        what="refusal",
    ),
    Expected(
        "Java makes the branch of the session for a change of no row",
        "our choice",
        kind="truncate|delete|update|merge",
        ours=r"^\[\]$",
        java=r"^\[\('w\d', 'branch'",
        what="refs",
    ),
    Expected(
        "Java 1.12 fails to rewrite files with variants inside of other types",
        "none that we know of",
        kind="update|delete|merge",
        java=r"SubqueryExec\.executeCollect",
        what="refusal",
    ),
    Expected(
        "Java leaves delete files whose data files an overwrite removed",
        "apache/iceberg#6126",
        kind="verify",
        statement="verify Java's",
        ours=r"^(warning: delete-dangling: [^;]+(; |$))+$",
        what="verify",
    ),
    Expected(
        "Java writes no variants into ORC, and we do",
        "apache/iceberg#10392",
        kind="insert|overwrite|update|merge|delete|create",
        java=r"SparkOrcWriter|because \"iPrimitive\" is null",
        what="refusal",
    ),
    Expected(
        "Java cannot read a Parquet file with variants in lists or maps, whichever columns are asked for",
        "none that we know of",
        java="Only non-nested columns are supported for",
        what="refusal",
    ),
    Expected(
        "Java takes only some conditions for REPLACE WHERE, and we all that say which rows are meant",
        "our choice",
        kind="overwrite",
        statement="REPLACE WHERE",
        ours=r"^\[",
        java="cannot translate expression to source filter",
        what="refusal",
    ),
    Expected(
        "Java looks for the truncated least int where it wraps to, and misses rows",
        "none that we know of",
        kind="query|travel|view|update|delete|merge|overwrite",
        statement="-2147483648|-9223372036854775807L - 1L",
        what="rows|answer",
    ),
    Expected(
        "Java deletes whole files in which a column is NULL everywhere where a condition says that it is another value",
        "apache/iceberg#3578",
        kind="delete",
        statement=r"WHERE .*(<>|!=|NOT )",
        what="rows",
    ),
    Expected(
        "An empty comment of an inner field is none in a table that is made of a query",
        "our choice",
        kind="create as",
        java="'doc': ''",
        what="schema",
    ),
    Expected(
        "Java has no literal of NaN in the filters of deletes",
        "none that we know of",
        java="Cannot create expression literal from NaN",
        what="refusal",
    ),
)
