"""Decides what a running server is made of, and carries out one call after another, whatever the way it came."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial

from icefloe import errors
from icefloe.catalog import Catalog, Database
from icefloe.rest.config_codec import PREFIX, CatalogConfig
from icefloe.rest.headers_codec import IDEMPOTENCY_KEY
from icefloe.rest.paths_codec import Endpoint
from icefloe.server import migrations
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import Answer, Call, Operation
from icefloe.server.file_access import WarehouseFiles, unavailable
from icefloe.server.holds import Holds
from icefloe.server.idempotency import Idempotency
from icefloe.server.settings import ServerSettings
from icefloe.server.warehouses import Warehouse, Warehouses
from icefloe.server.webhook import Webhook, record_event
from icefloe.server.words import retold

LOG = logging.getLogger("icefloe.server")


class Server:
    """Warehouses, and how calls to them are carried out."""

    def __init__(self, catalogs: Mapping[str, Catalog], settings: ServerSettings) -> None:
        self.settings = settings
        self.warehouses = Warehouses(catalogs, settings.default_warehouse, settings.cache_bytes)
        self._endpoints: dict[str, frozenset[Endpoint]] = {}
        self._idempotency = {
            warehouse.name: Idempotency(database, settings.idempotency_key_lifetime)
            for warehouse in self.warehouses.all
            if (database := warehouse.served.database) is not None
        }

        self._holds = {
            name: Holds(self.warehouses.named(name), each.database, settings.undrop_hold)
            for name, each in self._idempotency.items()
        }

    def offer(self, operations: Iterable[Operation], files: WarehouseFiles) -> None:
        """Announce operations, those of each warehouse that its catalog can do."""
        offered = [each for each in operations if not (each.changes and self.settings.read_only)]
        for warehouse in self.warehouses.all:
            missing = unavailable(warehouse.served, files.modes(warehouse.name))
            own = {each.endpoint for each in offered if warehouse.served.takes_changes or not each.changes}
            self._endpoints[warehouse.name] = frozenset(own - missing)

    def prepare(self) -> None:
        """Bring the server's own tables up to date, in every database."""
        for database in self.databases():
            migrations.migrate(database)

    def databases(self) -> Iterator[Database]:
        """The databases of all warehouses, each once."""
        by_uri = {
            database.uri: database
            for warehouse in self.warehouses.all
            if (database := warehouse.served.database) is not None
        }
        yield from by_uri.values()

    def config(self, warehouse: Warehouse) -> CatalogConfig:
        """What clients of a warehouse are told at first."""
        keyed = self._idempotency.get(warehouse.name)
        return CatalogConfig(
            overrides={PREFIX: warehouse.prefix},
            endpoints=self._endpoints.get(warehouse.name, frozenset()),
            idempotency_key_lifetime=None if keyed is None else keyed.lifetime,
        )

    def run(self, call: Call) -> Answer:
        """Carry out a call: its privilege, what its key says, and the operation."""
        self.check(call)
        return self.carry_out(call)

    def check(self, call: Call) -> None:
        """Fail unless the caller may ask for this, and the server does it."""
        operation = call.operation
        call.holds = self._holds.get(call.warehouse.name)
        if operation.changes and self.settings.read_only:
            raise errors.ForbiddenError("this server only reads: changes are refused")
        if operation.privilege is None:
            # What it needs is known when its body is read, which nobody is told about who may not see the warehouse.
            call.check(Privilege.LIST, ())
        else:
            noun = operation.noun if call.name else None
            call.check(operation.privilege, call.identifier if call.name else call.namespace, noun)
        if operation.changes and not call.served.takes_changes:
            raise errors.UnsupportedOperationError(
                f"warehouse {call.warehouse.name!r} is one of another server; what it has is changed there"
            )

    def carry_out(self, call: Call) -> Answer:
        """Carry out a call that was checked: what its key says, and the operation."""
        operation = call.operation
        key = call.headers.get(IDEMPOTENCY_KEY.lower()) if operation.replay is not None else None
        idempotency = self._idempotency.get(call.warehouse.name)
        if key is None or idempotency is None:
            return self._told(call)
        return idempotency.run(key, call, lambda: self._told(call))

    def _told(self, call: Call) -> Answer:
        has_notes = call.operation.changes and call.served.database is not None
        if has_notes and self.settings.webhook is not None:
            call.notes["event"] = partial(record_event, call)
        try:
            with call.served.alongside(call.note) if has_notes else nullcontext():
                return call.operation.run(call)
        except errors.IcefloeError as error:
            told = retold(error, call)
            if told is error:
                raise
            raise told from error

    def check_ready(self) -> None:
        """Fail unless every database answers, and has the tables that this version needs, or a newer one."""
        for database in self.databases():
            if not migrations.is_current(database):
                raise errors.ServiceUnavailableError(f"{database} lacks tables that this version needs")

    def deliver(self) -> int:
        """Let the webhook have the events that wait for it; how many it took."""
        if self.settings.webhook is None:
            return 0
        secret = self.settings.webhook_secret
        return sum(Webhook(database, self.settings.webhook, secret).deliver() for database in self.databases())

    def tidy(self) -> None:
        """Delete what is no longer needed; called from time to time."""
        for name, idempotency in self._idempotency.items():
            try:
                idempotency.forget()
                self._holds[name].purge_old()
            except errors.IcefloeError as error:
                LOG.warning("old answers and dropped tables of %s stay behind: %s", name, error)

    def close(self) -> None:
        """Close all catalogs."""
        self.warehouses.close()
