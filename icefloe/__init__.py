"""The Apache Iceberg table format in Python, with its data pipeline on Apache Spark.

Start with `load_catalog` in plain Python, or with `connect` on Spark; the structure of the package is described in
docs/architecture.md. Names are imported on first use, so `import icefloe` alone is cheap.

The public interface is the names in `__all__`, their public methods and what those return, the exceptions of `icefloe.errors` and the types of
`icefloe.schema.types`. Every other module may change in any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefloe.catalog import Catalog, load_catalog
    from icefloe.errors import IcefloeError
    from icefloe.expressions import col
    from icefloe.schema import Schema
    from icefloe.spark.connect import connect
    from icefloe.spark.data_source import register_format
    from icefloe.spark.session import Session
    from icefloe.table import DataScan, Table, Transaction

__all__ = [
    "Catalog",
    "DataScan",
    "IcefloeError",
    "Schema",
    "Session",
    "Table",
    "Transaction",
    "__version__",
    "col",
    "connect",
    "load_catalog",
    "register_format",
]

_HOMES = {
    "Catalog": "icefloe.catalog",
    "DataScan": "icefloe.table",
    "IcefloeError": "icefloe.errors",
    "Schema": "icefloe.schema",
    "Session": "icefloe.spark.session",
    "Table": "icefloe.table",
    "Transaction": "icefloe.table",
    "col": "icefloe.expressions",
    "connect": "icefloe.spark.connect",
    "load_catalog": "icefloe.catalog",
    "register_format": "icefloe.spark.data_source",
}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icefloe' has no attribute {name!r}; available are {', '.join(_HOMES)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
