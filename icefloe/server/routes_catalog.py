"""The endpoints of the REST catalog protocol that this server has, and what it does at each."""

from icefloe.rest import paths_codec as paths
from icefloe.server import namespace_operations as namespaces, table_operations as tables, view_operations as views
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import TABLE, VIEW, Operation, Replay

LOAD_TABLE = Operation(paths.LOAD_TABLE, tables.load_table, Privilege.READ, TABLE, if_unchanged=tables.if_unchanged)
"""What clients ask for most."""

OPERATIONS = (
    # The hot ones first.
    Operation(paths.TABLE_EXISTS, tables.table_exists, Privilege.LIST, TABLE),
    LOAD_TABLE,
    Operation(paths.UPDATE_TABLE, tables.commit_table, None, TABLE, changes=True, replay=Replay.COMMITTED),
    Operation(paths.DROP_TABLE, tables.drop_table, Privilege.DROP, TABLE, changes=True, replay=Replay.EMPTY),
    Operation(paths.LIST_TABLES, tables.list_tables, Privilege.LIST),
    Operation(paths.CREATE_TABLE, tables.create_table, Privilege.CREATE, TABLE, changes=True, replay=Replay.TABLE),
    Operation(paths.REPORT_METRICS, tables.report_metrics, Privilege.READ, TABLE),
    Operation(paths.REGISTER_TABLE, tables.register_table, Privilege.CREATE, TABLE, changes=True, replay=Replay.TABLE),
    Operation(
        paths.UNREGISTER_TABLE, tables.unregister_table, Privilege.DROP, TABLE, changes=True, replay=Replay.COMMITTED
    ),
    Operation(
        paths.RENAME_TABLE, tables.rename_table, None, TABLE, changes=True, replay=Replay.EMPTY, has_own_words=True
    ),
    Operation(
        paths.COMMIT_TRANSACTION, tables.commit_transaction, None, changes=True, replay=Replay.EMPTY, has_own_words=True
    ),
    Operation(paths.NAMESPACE_EXISTS, namespaces.namespace_exists, Privilege.LIST),
    Operation(paths.LOAD_NAMESPACE, namespaces.load_namespace, Privilege.READ),
    Operation(paths.LIST_NAMESPACES, namespaces.list_namespaces),
    Operation(paths.CREATE_NAMESPACE, namespaces.create_namespace, None, changes=True, replay=Replay.BODY),
    Operation(paths.DROP_NAMESPACE, namespaces.drop_namespace, Privilege.DROP, changes=True, replay=Replay.EMPTY),
    Operation(paths.UPDATE_NAMESPACE, namespaces.update_namespace, Privilege.WRITE, changes=True, replay=Replay.BODY),
    Operation(paths.VIEW_EXISTS, views.view_exists, Privilege.LIST, VIEW),
    Operation(paths.LOAD_VIEW, views.load_view, Privilege.READ, VIEW),
    Operation(paths.UPDATE_VIEW, views.commit_view, Privilege.WRITE, VIEW, changes=True, replay=Replay.VIEW),
    Operation(paths.DROP_VIEW, views.drop_view, Privilege.DROP, VIEW, changes=True, replay=Replay.EMPTY),
    Operation(paths.LIST_VIEWS, views.list_views, Privilege.LIST),
    Operation(paths.CREATE_VIEW, views.create_view, Privilege.CREATE, VIEW, changes=True, replay=Replay.VIEW),
    Operation(paths.REGISTER_VIEW, views.register_view, Privilege.CREATE, VIEW, changes=True, replay=Replay.VIEW),
    Operation(paths.RENAME_VIEW, views.rename_view, None, VIEW, changes=True, replay=Replay.EMPTY, has_own_words=True),
)
