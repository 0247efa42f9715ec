"""How a planner asks the server of one table: its endpoints, in the name of the table's user, and the storage of a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest.outcomes import asked
from icefloe.catalog.rest.table_storage import table_storage
from icefloe.rest import Context, LoadedTable, paths
from icefloe.storage import Storage, StorageCredential

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog


@dataclass(frozen=True, slots=True)
class TablePlanServer:
    """The server of one table, for plans of its scans. A pickle of it asks from another process."""

    catalog: "RestCatalog"
    identifier: Identifier
    table: LoadedTable = field(repr=False)
    """Without its history."""

    @staticmethod
    def of(catalog: "RestCatalog", identifier: Identifier, table: LoadedTable) -> "TablePlanServer":
        """The server of a table as it was loaded."""
        return TablePlanServer(catalog, identifier, replace(table, metadata=table.metadata.without_history()))

    @property
    def about(self) -> str:
        """The table, for messages."""
        return f"table {show(self.identifier)}"

    @property
    def config(self) -> Mapping[str, str]:
        """What the server set for the table."""
        return self.table.surplus.config

    def has(self, endpoint: paths.Endpoint) -> bool:
        """Whether the server has the endpoint."""
        return self.catalog._tables.session.has(endpoint)

    def ask(self, endpoint: paths.Endpoint, body: bytes | None = None, **names: str) -> bytes:
        """The body of a good answer; any other is an error."""
        *namespace, name = self.identifier
        request = self.catalog._tables.session.request(
            endpoint,
            Context.PLAN,
            self.about,
            tuple(namespace),
            body=body,
            client=self.catalog._client(self.config),
            names={"table": name, **names},
        )
        return asked(request).body

    def storage(self, credentials: Sequence[StorageCredential], plan_id: str | None) -> Storage:
        """The storage of the table with credentials that are for the files of a plan."""
        surplus = replace(self.table.surplus, credentials=tuple(credentials))
        return table_storage(self.catalog, self.identifier, replace(self.table, surplus=surplus), plan_id)
