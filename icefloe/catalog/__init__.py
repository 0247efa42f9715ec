"""Names to tables and the one atomic swap: memory, SQL and file-system catalogs, and those behind a REST server.

Kinds of catalogs are imported when they are used, since databases and HTTP take their time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from icefloe.catalog.catalog import Catalog
from icefloe.catalog.configuration import (
    HOME_FILE,
    PROJECT_FILE,
    Configuration,
    Setting,
    find_configuration,
    same_name,
    variable_of,
)
from icefloe.catalog.definitions import TableDescription
from icefloe.catalog.identifiers import Identifier, parse_identifier, parse_namespace, show, show_part
from icefloe.catalog.importing import MIGRATING, Import, fill, imported_files, in_place_of, stage
from icefloe.catalog.loading import (
    EMBEDDED_CATALOG,
    EMBEDDED_WAREHOUSE,
    catalogs_of_file,
    configured_catalog,
    embedded_catalog,
    load_catalog,
)
from icefloe.catalog.namespaces import PropertiesUpdateSummary
from icefloe.catalog.pointers import RefusedAlongsideError
from icefloe.catalog.redaction import HIDDEN, redacted, redacted_value
from icefloe.catalog.static_tables import load_static_table
from icefloe.catalog.table_names import At, TableName, choose_version, parse_table_name, read_time, show_table
from icefloe.catalog.trust import distrust, is_trusted, trust
from icefloe.catalog.views import View, Views

if TYPE_CHECKING:
    from icefloe.catalog.hadoop import HadoopCatalog
    from icefloe.catalog.memory import MemoryCatalog
    from icefloe.catalog.rest.catalog import RestCatalog
    from icefloe.catalog.serving import ServedCatalog, TableChange
    from icefloe.catalog.sql import SqlCatalog
    from icefloe.catalog.sql_database import Alongside, Database, TakenError
    from icefloe.rest.dropped_codec import DroppedTable

_HOMES = {
    "Alongside": "icefloe.catalog.sql_database",
    "Database": "icefloe.catalog.sql_database",
    "DroppedTable": "icefloe.rest.dropped_codec",
    "HadoopCatalog": "icefloe.catalog.hadoop",
    "MemoryCatalog": "icefloe.catalog.memory",
    "RestCatalog": "icefloe.catalog.rest.catalog",
    "ServedCatalog": "icefloe.catalog.serving",
    "SqlCatalog": "icefloe.catalog.sql",
    "TableChange": "icefloe.catalog.serving",
    "TakenError": "icefloe.catalog.sql_database",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
