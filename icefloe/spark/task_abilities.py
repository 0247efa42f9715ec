"""What tasks can do for this process: whether they have icefloe, and whether manifests are there for them."""

import logging
import sys
from collections.abc import MutableMapping
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from icefloe.manifests import is_encrypted
from icefloe.metadata import TableMetadata
from icefloe.storage import parse_location

logger = logging.getLogger("icefloe.spark")

_HAS_PACKAGE: MutableMapping[SparkContext, bool] = WeakKeyDictionary()
"""Whether executors can import icefloe."""
_IS_LOCAL: MutableMapping[SparkContext, bool] = WeakKeyDictionary()


def reaches_manifests(metadata: TableMetadata) -> bool:
    """Whether tasks may read the manifests of a table, and can: they never get keys of encrypted tables."""
    return not is_encrypted(metadata) and parse_location(metadata.location or "").scheme != "memory"


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run on this machine, in the driver."""
    context = spark.sparkContext
    known = _IS_LOCAL.get(context)
    if known is None:
        known = _IS_LOCAL[context] = str(context.master).startswith("local")
    return known


def tasks_know_us(spark: SparkSession) -> bool:
    """Whether tasks can import icefloe; one of them is asked, once."""
    context = spark.sparkContext
    if context not in _HAS_PACKAGE:
        is_same = is_local(spark) and context.pythonExec == sys.executable
        _HAS_PACKAGE[context] = is_same or _ask_a_task(context)
    return _HAS_PACKAGE[context]


def _ask_a_task(context: SparkContext) -> bool:
    # A function inside of another goes to the task by value, so that icefloe may be missing there.
    def find(_: int) -> bool:
        from importlib.util import find_spec

        return all(find_spec(name) is not None for name in ("icefloe", "pyarrow"))

    try:
        return bool(context.parallelize([0], 1).map(find).first())
    except Exception as error:  # noqa: BLE001  # whatever fails there, manifests can be read here
        logger.warning("tasks cannot read manifests, so this process does: %s", str(error).partition("\n")[0])
        return False
