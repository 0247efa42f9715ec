"""Decides what clients are told about access to the files of a table, and answers their requests for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe import errors
from icefloe.catalog import Catalog, Identifier, ServedCatalog
from icefloe.metadata import TableMetadata
from icefloe.rest import paths_codec as paths
from icefloe.rest.credentials_codec import cache_control, decode_sign_request, encode_signed_request
from icefloe.rest.dropped_codec import LIST_DROPPED, UNDROP
from icefloe.rest.headers_codec import ACCESS_DELEGATION, NOT_STORED
from icefloe.rest.tables_codec import Surplus, encode_credentials
from icefloe.server.access import (
    STAGED_TABLE,
    AccessSettings,
    Asking,
    Endpoints,
    Mode,
    Territory,
    WarehouseAccess,
    access_settings,
    delegations,
)
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import TABLE, Answer, Call, Operation
from icefloe.server.table_operations import pointer


@dataclass(frozen=True, slots=True)
class WarehouseFiles:
    """Access to the files of all warehouses; those that nothing is said about leave it to their clients."""

    by_warehouse: Mapping[str, WarehouseAccess]

    def surplus(self, call: Call, identifier: Identifier, metadata: TableMetadata) -> Surplus:
        """What an answer with a table says about access to its files."""
        access = self.by_warehouse.get(call.warehouse.name)
        if access is None:
            return Surplus()
        namespace, prefix = identifier[:-1], call.warehouse.prefix
        endpoints = Endpoints(
            paths.TABLE_CREDENTIALS.address(prefix, namespace, table=identifier[-1]),
            paths.SIGN_REQUEST.address(prefix, namespace, table=identifier[-1]),
        )
        return access.surplus(_asking(call, identifier, metadata), endpoints)

    def modes(self, warehouse: str) -> tuple[Mode, ...]:
        """How clients of a warehouse may get at files."""
        access = self.by_warehouse.get(warehouse)
        return () if access is None else access.settings.modes

    def operations(self) -> tuple[Operation, ...]:
        """What a server does that gives access."""
        return (
            Operation(paths.TABLE_CREDENTIALS, self._load_credentials, Privilege.READ, TABLE),
            Operation(paths.SIGN_REQUEST, self._sign, None, TABLE),
        )

    def _load_credentials(self, call: Call) -> Answer:
        return Answer(encode_credentials(self._access(call).credentials(self._asked(call))), caching=NOT_STORED)

    def _sign(self, call: Call) -> Answer:
        request, properties = decode_sign_request(call.body)
        token = properties.get(STAGED_TABLE)
        # Whoever may not create there is not told whether there is such a table.
        may_create = token is not None and call.allows(Privilege.CREATE, call.namespace)
        if token is not None and may_create and call.served.table_location(call.identifier) is None:
            call.check(Privilege.CREATE, call.namespace)
            signed = self._access(call).sign_staged(call.identifier, call.principal.name, token, request)
        else:
            call.check(Privilege.READ, call.identifier, TABLE)
            signed = self._access(call).sign(self._asked(call), request)
        return Answer(encode_signed_request(signed), caching=cache_control(signed))

    def _access(self, call: Call) -> WarehouseAccess:
        access = self.by_warehouse.get(call.warehouse.name)
        if access is None:
            raise errors.UnsupportedOperationError(
                f"warehouse {call.warehouse.name!r} does not provide access to files; clients must have their own credentials"
            )
        return access

    def _asked(self, call: Call) -> Asking:
        return _asking(call, call.identifier, call.warehouse.state_at(pointer(call)).metadata)


def _asking(call: Call, identifier: Identifier, metadata: TableMetadata) -> Asking:
    understood = delegations(call.headers.get(ACCESS_DELEGATION.lower()))
    is_new = call.operation.endpoint == paths.CREATE_TABLE
    return Asking(identifier, metadata, call.principal.name, _may_write(call, identifier), understood, is_new)


def _may_write(call: Call, identifier: Identifier) -> bool:
    """Whether the caller may change files of the table; whoever may create a table may write its first ones."""
    if call.settings.read_only:
        return False
    if call.allows(Privilege.WRITE, identifier, TABLE):
        return True
    return call.operation.endpoint == paths.CREATE_TABLE and call.allows(Privilege.CREATE, identifier[:-1])


def unavailable(served: ServedCatalog, modes: tuple[Mode, ...]) -> frozenset[paths.Endpoint]:
    """What cannot be done in a warehouse, and is not announced."""
    missing: set[paths.Endpoint] = set()
    if not served.changes_several:
        missing |= {paths.COMMIT_TRANSACTION}
    if not served.keeps_views:
        missing |= paths.VIEW_ENDPOINTS
    if not {Mode.STATIC, Mode.VENDED} & set(modes):
        missing |= {paths.TABLE_CREDENTIALS}
    if Mode.SIGNED not in modes:
        missing |= {paths.SIGN_REQUEST}
    if served.database is None:
        missing |= {LIST_DROPPED, UNDROP}
    return frozenset(missing)


def files_of(content: Mapping[str, object], catalogs: Mapping[str, Catalog]) -> WarehouseFiles:
    """Access as the tables `[access.NAME]` of a configuration say."""
    sections = content.get("access", {})
    if not isinstance(sections, Mapping):
        raise errors.InvalidPropertyError("`access` of the configuration is not a table like [access.lake]")
    by_warehouse = {}
    for name, section in sections.items():
        if name not in catalogs or not isinstance(section, Mapping):
            raise errors.InvalidPropertyError(f"[access.{name}] is for no catalog; known are {', '.join(catalogs)}")
        by_warehouse[name] = access_to(catalogs[name], access_settings(section, f"access.{name}"))
    return WarehouseFiles(by_warehouse)


def access_to(catalog: Catalog, settings: AccessSettings) -> WarehouseAccess:
    """Access to the files of one catalog."""
    served = ServedCatalog(catalog)
    territory = Territory(served.namespace_folder, served.table_location, served.namespace_exists, settings.locations)
    return WarehouseAccess(settings, dict(catalog.storage.properties), territory)
