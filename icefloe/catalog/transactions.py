"""Decides how several tables of a catalog are changed in one commit: all of them, or none."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from icefloe import commit as cm, errors
from icefloe.catalog.definitions import TableDescription, described_by
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, show
from icefloe.metadata import updates as up
from icefloe.table import Table, Transaction

if TYPE_CHECKING:
    from icefloe.catalog.catalog import Catalog


class TableTransaction(Transaction):
    """The changes of one table in a transaction of its catalog, which alone commits them."""

    def try_commit(self) -> cm.Outcome:
        """Refused: the transaction of the catalog commits."""
        raise errors.InvalidInputError(
            f"{self._committer.name} is committed together with the other tables of its transaction: commit that, or leave its block"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: the block of the catalog's transaction ends it."""


class CatalogTransaction:
    """Changes of several tables that are committed together, all or none; no table is touched before.

    Leaving the `with` block commits; leaving it by an error discards everything.

    >>> sales = catalog.create_table("shop.sales", "id bigint")
    >>> with catalog.transaction() as tx:
    ...     deleted = tx.table("shop.orders").delete("id = 1")
    ...     added = tx.table("shop.sales").append(pa.table({"id": [1]}))
    >>> sales.refresh().scan().count()
    1
    """

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._members: dict[Identifier, TableTransaction] = {}
        self._is_open = True

    def table(self, identifier: Name) -> Transaction:
        """The transaction of one table, as it is when it is first asked for; what is added to it is committed with the rest."""
        self._check_open()
        parsed = parse_identifier(identifier)
        if parsed not in self._members:
            self._members[parsed] = TableTransaction(self._catalog.load_table(parsed))
        return self._members[parsed]

    @described_by(TableDescription)
    def create_table(self, table: TableDescription) -> Transaction:
        """The transaction of a table that the commit creates, with all that is added to it; arguments as of the catalog's."""
        self._check_open()
        parsed = parse_identifier(table.identifier)
        if parsed in self._members:
            raise errors.InvalidInputError(f"table {show(parsed)} is already part of the transaction")
        member = TableTransaction(self._catalog._stage_create(table)._table)
        # It says nothing that the staged metadata lacks, but there is something to commit.
        member.apply_updates(up.AssignUUIDUpdate(str(member.table_metadata.table_uuid)))
        self._members[parsed] = member
        return member

    def commit(self) -> dict[Identifier, Table]:
        """Commit the changes of all tables, or fail as a whole; the tables as they are then."""
        self._check_open()
        self._is_open = False
        members = list(self._members.values())
        if not members:
            return {}
        outcomes = cm.commit_together(members, self._catalog._commit_tables)
        name = ", ".join(show((self._catalog.name, *identifier)) for identifier in self._members)
        # The worst of them is what the user must know.
        for kind in (cm.Unknown, cm.Rejected):
            for outcome in outcomes:
                if isinstance(outcome, kind):
                    cm.result_of(outcome, name)
        for member, outcome in zip(members, outcomes, strict=True):
            member._handle.state = cm.result_of(outcome, name).state
        return {identifier: member._table for identifier, member in self._members.items()}

    def abandon(self) -> None:
        """Give it up: nothing was committed, so that its files can go."""
        if self._is_open:
            self._is_open = False
            for member in self._members.values():
                member.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if self._is_open:
                self.commit()
        elif issubclass(kind, Exception):
            self.abandon()

    def _check_open(self) -> None:
        if not self._is_open:
            raise errors.InvalidInputError("the transaction has ended; start another one")
