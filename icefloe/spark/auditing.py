"""Write, audit, publish by the settings of a session: which branch is read and changed where only a table is named.

As in Java's Spark integration: a branch or snapshot that is named comes first; tables without `write.wap.enabled` take no
notice; a branch that is not there yet is read as `main` and created by the first change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from icefloe import commit as cm, errors, properties as props
from icefloe.metadata import summary as totals
from icefloe.spark.spark_sessions import setting
from icefloe.table import Table

_ID = f"spark.{totals.WAP_ID}"
_BRANCH = f"spark.{cm.WAP_BRANCH}"


@dataclass(frozen=True, slots=True)
class Destination:
    """The branch that a change of rows goes to, and extra properties of its snapshot."""

    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)


def branch_to_read(spark: SparkSession, table: Table) -> str | None:
    """The branch to read instead of `main`; None for `main`."""
    branch = _branch(spark, table)
    return branch if branch is not None and branch in table.refs() else None


def destination(
    spark: SparkSession,
    table: Table,
    named: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
) -> Destination:
    """The destination of a change, which may name a branch itself, and have snapshot properties of its own."""
    branch = _branch(spark, table) if named is None else named
    wap_id = _setting(spark, _ID)
    audited = {totals.WAP_ID: wap_id} if wap_id is not None and _is_enabled(table) else {}
    return Destination(branch, {**audited, **(snapshot_properties or {})})


def _branch(spark: SparkSession, table: Table) -> str | None:
    branch = _setting(spark, _BRANCH) if _is_enabled(table) else None
    if branch is None:
        return None
    wap_id = _setting(spark, _ID)
    if wap_id is not None:
        raise errors.InvalidInputError(
            f"{_ID} is {wap_id!r} and {_BRANCH} is {branch!r}, which are mutually exclusive; unset one"
        )
    return branch


def _is_enabled(table: Table) -> bool:
    return bool(props.WAP_ENABLED.of(table.properties))


def _setting(spark: SparkSession, key: str) -> str | None:
    return setting(spark, key, None) or None
