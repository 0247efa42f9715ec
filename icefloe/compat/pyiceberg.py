"""Puts icefloe in the place of PyIceberg for scripts that import it: `import icefloe.compat.pyiceberg` before all else.

`from pyiceberg.catalog import load_catalog` then gives our catalogs, with PyIceberg's words where they differ. The real
package must not be imported before, and cannot be after. What is not here is an `ImportError` with its name.
"""

import sys
from types import ModuleType

import icefloe
from icefloe import errors, expressions as ex, metadata as md, partitioning as pt, properties as props
from icefloe.catalog import Catalog, HadoopCatalog, MemoryCatalog, RestCatalog, SqlCatalog, View
from icefloe.compat import pyiceberg_tables as tables
from icefloe.inspect import Inspect
from icefloe.partitioning import transforms
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, types
from icefloe.table import Transaction

_ROOT = "pyiceberg"


def install() -> None:
    """Let `pyiceberg` and its modules be these."""
    known = sys.modules.get(_ROOT)
    if known is not None:
        if getattr(known, "__icefloe__", False):
            return
        raise errors.StateError(
            "PyIceberg itself is already imported; import icefloe.compat.pyiceberg before anything that imports pyiceberg"
        )
    for name, content in _modules().items():
        module = ModuleType(name, f"icefloe in the place of {name}.")
        vars(module).update(content, __icefloe__=True, __path__=[])
        sys.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)


def _modules() -> dict[str, dict[str, object]]:
    """Every module with its names; those above come before those below."""
    kinds = {kind.__name__: alias for kind, alias in tables.CATALOGS.items()}
    literal: dict[str, object] = {"literal": lambda value: value}
    return {
        _ROOT: {"__version__": f"icefloe {icefloe.__version__}"},
        f"{_ROOT}.catalog": {"load_catalog": tables.load_catalog, "Catalog": Catalog},
        f"{_ROOT}.catalog.sql": {"SqlCatalog": kinds[SqlCatalog.__name__]},
        f"{_ROOT}.catalog.rest": {"RestCatalog": kinds[RestCatalog.__name__]},
        f"{_ROOT}.catalog.hadoop": {"HadoopCatalog": kinds[HadoopCatalog.__name__]},
        f"{_ROOT}.catalog.memory": {"InMemoryCatalog": kinds[MemoryCatalog.__name__]},
        f"{_ROOT}.schema": {"Schema": Schema},
        f"{_ROOT}.types": _public(types),
        f"{_ROOT}.transforms": _public(transforms),
        f"{_ROOT}.partitioning": {
            "PartitionSpec": pt.PartitionSpec,
            "PartitionField": pt.PartitionField,
            "UNPARTITIONED_PARTITION_SPEC": pt.UNPARTITIONED,
        },
        f"{_ROOT}.expressions": {**_public(ex), **literal},
        f"{_ROOT}.expressions.literals": literal,
        f"{_ROOT}.table": {
            "Table": tables.CompatTable,
            "StaticTable": tables.StaticTable,
            "DataScan": tables.CompatScan,
            "Transaction": Transaction,
            "FileScanTask": FileScanTask,
            "TableProperties": _table_properties(),
            "UpsertResult": tables.UpsertResult,
        },
        f"{_ROOT}.table.upsert_util": {"UpsertResult": tables.UpsertResult},
        f"{_ROOT}.table.metadata": {"TableMetadata": md.TableMetadata},
        f"{_ROOT}.table.inspect": {"InspectTable": Inspect},
        f"{_ROOT}.table.refs": {"SnapshotRef": md.SnapshotRef},
        f"{_ROOT}.table.snapshots": {"Snapshot": md.Snapshot},
        f"{_ROOT}.table.statistics": {"StatisticsFile": md.StatisticsFile},
        f"{_ROOT}.table.sorting": {
            "SortOrder": pt.SortOrder,
            "SortField": pt.SortField,
            "SortDirection": pt.SortDirection,
            "NullOrder": pt.NullOrder,
            "UNSORTED_SORT_ORDER": pt.UNSORTED,
        },
        f"{_ROOT}.exceptions": _exceptions(),
        f"{_ROOT}.view": {"View": View},
        f"{_ROOT}.io": {"FileIO": tables.FileIO},
    }


def _public(room: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(room).items() if name[0].isupper()}


def _table_properties() -> type:
    """Keys of properties, by the names of PyIceberg's constants."""
    keys = {
        "FORMAT_VERSION": props.FORMAT_VERSION,
        "WRITE_TARGET_FILE_SIZE_BYTES": props.WRITE_TARGET_FILE_SIZE_BYTES.key,
        "PARQUET_COMPRESSION": props.PARQUET_COMPRESSION.key,
        "PARQUET_COMPRESSION_LEVEL": props.PARQUET_COMPRESSION_LEVEL.key,
        "PARQUET_ROW_GROUP_SIZE_BYTES": props.PARQUET_ROW_GROUP_SIZE_BYTES.key,
        "PARQUET_PAGE_SIZE_BYTES": props.PARQUET_PAGE_SIZE_BYTES.key,
        "PARQUET_DICT_SIZE_BYTES": props.PARQUET_DICT_SIZE_BYTES.key,
        "DEFAULT_WRITE_METRICS_MODE": props.METRICS_DEFAULT_MODE.key,
        "DEFAULT_NAME_MAPPING": props.NAME_MAPPING.key,
        "DELETE_MODE": props.DELETE_MODE.key,
        "COMMIT_NUM_RETRIES": props.COMMIT_NUM_RETRIES.key,
        "MANIFEST_MERGE_ENABLED": props.MANIFEST_MERGE_ENABLED.key,
        "MANIFEST_TARGET_SIZE_BYTES": props.MANIFEST_TARGET_SIZE_BYTES.key,
        "MANIFEST_MIN_MERGE_COUNT": props.MANIFEST_MIN_COUNT_TO_MERGE.key,
        "METADATA_PREVIOUS_VERSIONS_MAX": props.METADATA_PREVIOUS_VERSIONS_MAX.key,
        "METADATA_DELETE_AFTER_COMMIT_ENABLED": props.METADATA_DELETE_AFTER_COMMIT.key,
        "MAX_SNAPSHOT_AGE_MS": props.MAX_SNAPSHOT_AGE_MS.key,
        "MIN_SNAPSHOTS_TO_KEEP": props.MIN_SNAPSHOTS_TO_KEEP.key,
        "WRITE_DATA_PATH": props.DATA_PATH.key,
        "WRITE_METADATA_PATH": props.METADATA_PATH.key,
        "OBJECT_STORE_ENABLED": props.OBJECT_STORAGE_ENABLED.key,
    }
    return type("TableProperties", (), {**keys, "__doc__": "The keys of properties of tables."})


def _exceptions() -> dict[str, object]:
    """Our errors by PyIceberg's names."""
    return {
        "TableAlreadyExistsError": errors.TableAlreadyExistsError,
        "NamespaceAlreadyExistsError": errors.NamespaceAlreadyExistsError,
        "ViewAlreadyExistsError": errors.ViewAlreadyExistsError,
        "NamespaceNotEmptyError": errors.NamespaceNotEmptyError,
        "NoSuchTableError": errors.NoSuchTableError,
        "NoSuchIcebergTableError": errors.NoSuchTableError,
        "NoSuchNamespaceError": errors.NoSuchNamespaceError,
        "NoSuchViewError": errors.NoSuchViewError,
        "NoSuchIdentifierError": errors.NoSuchObjectError,
        "ValidationError": errors.InvalidInputError,
        "ValidationException": errors.ValidationError,
        "ResolveError": errors.InvalidSchemaError,
        "NotInstalledError": errors.NotInstalledError,
        "CommitFailedException": errors.CommitFailed,
        "CommitStateUnknownException": errors.CommitStateUnknown,
        "UnauthorizedError": errors.NotAuthorizedError,
        "ForbiddenError": errors.ForbiddenError,
        "ServiceUnavailableError": errors.ServiceUnavailableError,
        "RESTError": errors.IcefloeError,
    }


install()
