"""Decides how a SQL database keeps names: in the tables of the Java library's JDBC catalog, which PyIceberg shares.

Version 1 of their layout has a column that tells views from tables; a database of version 0 is used as it is, without views,
unless `schema_version` (PyIceberg) or `jdbc.schema-version` (Java) asks for version 1. A namespace is there when it has
properties or when something is in it, or in a namespace in it. It is kept with dots between its parts, as the others have
it; a dot in a part, which they cannot keep, is kept as `%2E`, and a percent sign that could be taken for one so as `%25`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.engine.reflection import Inspector

from icefloe import errors, properties as props
from icefloe.catalog.identifiers import Identifier, check_length, show
from icefloe.catalog.namespaces import EXISTS
from icefloe.catalog.pointers import TABLE, VIEW, Pointer, PointerCatalog, Pointers, PointerSwap
from icefloe.catalog.seals import Seal
from icefloe.catalog.sql_database import Database, TakenError
from icefloe.catalog.sql_seals import COLUMNS as SEAL_COLUMNS, SEALS, SqlSeals, seal_in

NAME_LENGTH = 255
"""The longest name of a catalog, a namespace with its dots, a table, or a property."""
TEXT_LENGTH = 1000
"""The longest metadata location or property value."""

_SCHEMA = sa.MetaData()
_POINTERS = sa.Table(
    "iceberg_tables",
    _SCHEMA,
    sa.Column("catalog_name", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("table_namespace", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("table_name", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("metadata_location", sa.String(TEXT_LENGTH), nullable=True),
    sa.Column("previous_metadata_location", sa.String(TEXT_LENGTH), nullable=True),
    sa.Column("iceberg_type", sa.String(5), nullable=True),
)
_NAMESPACES = sa.Table(
    "iceberg_namespace_properties",
    _SCHEMA,
    sa.Column("catalog_name", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("namespace", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("property_key", sa.String(NAME_LENGTH), nullable=False, primary_key=True),
    sa.Column("property_value", sa.String(TEXT_LENGTH), nullable=True),
)

_LISTED = (
    sa.func.unnest(sa.text("CAST(:namespaces AS text[])"), sa.text("CAST(:names AS text[])"))
    .table_valued("namespace", "name")
    .render_derived(name="listed")
)
"""Names in PostgreSQL: however many there are, the text of the question is the same."""
_IS_NAMED = sa.and_(
    _POINTERS.c.catalog_name == sa.bindparam("named_catalog"),
    _POINTERS.c.table_namespace == sa.bindparam("named_namespace"),
    _POINTERS.c.table_name == sa.bindparam("named_table"),
)


def _listed(pointer: sa.Select[Any]) -> sa.Select[Any]:
    """The pointer of each name of a list, found by the index, one by one.

    Given a join, PostgreSQL may read all tables of the catalog for a few of them; what has an offset it does not make one of.
    """
    is_named = sa.and_(_POINTERS.c.table_namespace == _LISTED.c.namespace, _POINTERS.c.table_name == _LISTED.c.name)
    one = pointer.where(is_named).offset(sa.literal_column("0")).lateral("pointer")
    return sa.select(_LISTED.c.namespace, _LISTED.c.name, *one.c).select_from(_LISTED.join(one, sa.true()))


class SqlPointers(Pointers):
    """Pointers as rows of a table that tables and views share; a database of version 0 has tables alone."""

    def __init__(
        self, catalog: str, noun: str, database: Database, tells_views: bool, seals: SqlSeals | None = None
    ) -> None:
        """`seals` are those of tables, of which views have none."""
        super().__init__(catalog, noun)
        self._database = database
        self._tells_views = tells_views
        self._seals = seals
        # Made once: to put a statement together takes longer than to run it.
        expected: sa.BindParameter[str] = sa.bindparam("swapped_from")
        location: sa.BindParameter[str] = sa.bindparam("swapped_to")
        self._is_meant = sa.and_(_IS_NAMED, self._is_of_noun())
        self._finding = sa.select(_POINTERS.c.metadata_location).where(self._is_meant)
        shared = ("catalog_name", "table_namespace", "table_name")
        with_seals = _POINTERS.outerjoin(SEALS, sa.and_(*(_POINTERS.c[name] == SEALS.c[name] for name in shared)))
        self._locating = (
            sa.select(_POINTERS.c.metadata_location, *SEAL_COLUMNS).select_from(with_seals).where(self._is_meant)
        )
        is_located = sa.and_(
            _POINTERS.c.catalog_name == catalog, self._is_of_noun(), _POINTERS.c.metadata_location.is_not(None)
        )
        located = sa.select(
            *(_POINTERS.c[each] for each in ("table_namespace", "table_name", "metadata_location"))
        ).where(is_located)
        names = sa.tuple_(_POINTERS.c.table_namespace, _POINTERS.c.table_name)
        named = located.where(names.in_(sa.bindparam("names", expanding=True)))
        self._finding_all, self._locating_all = named, named.add_columns(*SEAL_COLUMNS).select_from(with_seals)
        pointer = sa.select(_POINTERS.c.metadata_location).where(is_located)
        self._finding_listed = _listed(pointer)
        self._locating_listed = _listed(pointer.add_columns(*SEAL_COLUMNS).select_from(with_seals))
        self._swapping = (
            sa.update(_POINTERS)
            .where(self._is_meant, _POINTERS.c.metadata_location == expected)
            .values(metadata_location=location, previous_metadata_location=expected)
        )

    def _is_of_noun(self) -> sa.ColumnElement[bool]:
        if not self._tells_views:
            return sa.true() if self._noun == TABLE else sa.false()
        is_of_noun = _POINTERS.c.iceberg_type == self._noun.upper()
        # Rows from before the column was added have nothing in it.
        return is_of_noun if self._noun == VIEW else sa.or_(is_of_noun, _POINTERS.c.iceberg_type.is_(None))

    def _name_values(self, identifier: Identifier) -> dict[str, str]:
        """What the parameters of `_IS_NAMED` are for a name."""
        return {
            "named_catalog": self._catalog,
            "named_namespace": _namespace_text(identifier[:-1]),
            "named_table": identifier[-1],
        }

    def find(self, identifier: Identifier) -> str | None:
        rows = self._database.read(self._finding, self._name_values(identifier))
        if rows and rows[0][0] is None:
            raise errors.StateError(f"{show(identifier)} has no metadata location in {self._database}")
        return rows[0][0] if rows else None

    def located(self, identifier: Identifier) -> Pointer | None:
        if self._seals is None or not self._seals.is_there:
            return super().located(identifier)
        rows = self._database.read(self._locating, self._name_values(identifier))
        if rows and rows[0].metadata_location is None:
            raise errors.StateError(f"{show(identifier)} has no metadata location in {self._database}")
        return Pointer(rows[0].metadata_location, seal_in(rows[0])) if rows else None

    def located_all(self, identifiers: Collection[Identifier]) -> dict[Identifier, Pointer]:
        """The same for several names, by one query; those that have no location are left out."""
        names = {(_namespace_text(identifier[:-1]), identifier[-1]): identifier for identifier in identifiers}
        is_sealed = self._seals is not None and self._seals.is_there
        listed = {"namespaces": [namespace for namespace, _ in names], "names": [name for _, name in names]}
        quick = self._database.read_by_driver(self._locating_listed if is_sealed else self._finding_listed, listed)
        if quick is not None:
            # The columns of the seal come last; all of them are there, or none.
            return {names[row[:2]]: Pointer(row[2], Seal(*row[3:]) if any(row[3:]) else None) for row in quick}
        rows = self._database.read(self._locating_all if is_sealed else self._finding_all, {"names": list(names)})
        return {
            names[row.table_namespace, row.table_name]: Pointer(
                row.metadata_location, seal_in(row) if is_sealed else None
            )
            for row in rows
        }

    def check_kept(self) -> None:
        if self._noun == VIEW and not self._tells_views:
            raise errors.InvalidInputError(
                f"{self._database} does not support views: its tables have version 0; pass schema_version='v1' to upgrade them"
            )

    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        try:
            with self._database.writing() as connection:
                self._insert(connection, identifier, location, seal)
                self._database.changed(connection, location)
        except TakenError:
            return False
        return True

    def _insert(self, connection: Connection, identifier: Identifier, location: str, seal: Seal | None) -> None:
        row = {
            "catalog_name": self._catalog,
            "table_namespace": _namespace_text(identifier[:-1]),
            "table_name": identifier[-1],
            "metadata_location": check_length(location, TEXT_LENGTH, "metadata location"),
            "previous_metadata_location": None,
        }
        if self._tells_views:
            row["iceberg_type"] = self._noun.upper()
        connection.execute(sa.insert(_POINTERS).values(row))
        if self._seals is not None and seal is None:
            # One may be left of a table that another program dropped.
            self._seals.forget(connection, _seal_name(identifier))
        self._keep(connection, identifier, seal)

    def _keep(self, connection: Connection, identifier: Identifier, seal: Seal | None) -> None:
        if self._seals is not None and seal is not None:
            self._seals.keep(connection, _seal_name(identifier), seal)

    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        values = self._swap_values(PointerSwap(identifier, expected, location))
        with self._database.writing() as connection:
            is_changed = self._change_one(connection, self._swapping, values)
            if is_changed:
                self._keep(connection, identifier, seal)
                self._database.changed(connection, location)
        return is_changed

    def _swap_values(self, swap: PointerSwap) -> dict[str, str]:
        location = check_length(swap.location, TEXT_LENGTH, "metadata location")
        return {**self._name_values(swap.identifier), "swapped_from": str(swap.expected), "swapped_to": location}

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        try:
            with self._database.writing() as connection:
                # In one order for all writers: else two of them could wait for each other.
                for each in sorted(swaps, key=lambda swap: swap.identifier):
                    if each.expected is None:
                        self._insert(connection, each.identifier, each.location, each.seal)
                        continue
                    if not self._change_one(connection, self._swapping, self._swap_values(each)):
                        raise TakenError(show(each.identifier))
                    self._keep(connection, each.identifier, each.seal)
                self._database.changed(connection)
        except TakenError:
            return False
        return True

    def remove(self, identifier: Identifier, expected: str | None = None) -> bool:
        statement = sa.delete(_POINTERS).where(self._is_meant)
        if expected is not None:
            statement = statement.where(_POINTERS.c.metadata_location == expected)
        return self._changed_one(statement, self._name_values(identifier), identifier)

    def move(self, source: Identifier, target: Identifier) -> bool:
        name = {"table_namespace": _namespace_text(target[:-1]), "table_name": target[-1]}
        try:
            moving = sa.update(_POINTERS).where(self._is_meant).values(name)
            return self._changed_one(moving, self._name_values(source), source, target)
        except TakenError:
            raise errors.TableAlreadyExistsError(
                f"{show(target)} already exists in catalog {self._catalog!r}"
            ) from None

    def names(self, namespace: Identifier) -> set[Identifier]:
        rows = self._database.read(
            sa.select(_POINTERS.c.table_name).where(
                _POINTERS.c.catalog_name == self._catalog,
                _POINTERS.c.table_namespace == _namespace_text(namespace),
                self._is_of_noun(),
            )
        )
        return {(*namespace, row[0]) for row in rows}

    def all(self) -> list[tuple[Identifier, str]]:
        """Every name with its location, by one query."""
        columns = (_POINTERS.c.table_namespace, _POINTERS.c.table_name, _POINTERS.c.metadata_location)
        of_noun = sa.and_(_POINTERS.c.catalog_name == self._catalog, self._is_of_noun())
        rows = self._database.read(sa.select(*columns).where(of_noun))
        return [((*_namespace_parts(namespace), name), location) for namespace, name, location in rows if location]

    def _changed_one(
        self,
        statement: sa.Update | sa.Delete,
        values: Mapping[str, str],
        source: Identifier,
        target: Identifier | None = None,
    ) -> bool:
        """Whether a change of names, in a transaction of its own, met the one row that it was meant for."""
        with self._database.writing() as connection:
            is_changed = self._change_one(connection, statement, values)
            if is_changed:
                if self._seals is not None and target is None:
                    self._seals.forget(connection, _seal_name(source))
                elif self._seals is not None and target is not None:
                    self._seals.move(connection, _seal_name(source), _seal_name(target))
                self._database.changed(connection)
        return is_changed

    def _change_one(self, connection: Connection, statement: sa.Update | sa.Delete, values: Mapping[str, str]) -> bool:
        rows = connection.execute(statement, values).rowcount
        if rows not in (0, 1):
            # This rolls the transaction back.
            raise errors.StateError(f"{self._database} has {rows} rows with the same name; nothing was changed")
        return bool(rows == 1)


class SqlCatalog(PointerCatalog):
    """A catalog in a database of SQLite or PostgreSQL."""

    _table_pointers: SqlPointers

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        check_length(name, NAME_LENGTH, "catalog name")
        self._database = Database(name, properties.get("uri"))
        super().__init__(name, properties)
        tells_views = self._prepare()
        seals = SqlSeals(self._database, name)
        if self._may_create:
            seals.create()
        self._table_pointers = SqlPointers(name, TABLE, self._database, tells_views, seals)
        self._view_pointers = SqlPointers(name, VIEW, self._database, tells_views)

    def close(self) -> None:
        """Close the connections; the catalog opens new ones if it is used again."""
        self._database.close()

    def _prepare(self) -> bool:
        """Create the tables if they are missing; whether they tell views from tables."""
        columns = self._columns()
        if columns is None:
            if not self._may_create:
                raise errors.StateError(f"{self._database} has no catalog tables, and creating them is disabled")
            try:
                self._database.create_tables(_SCHEMA)
            except (errors.StorageError, TakenError):
                # Another program may have created them at the same moment.
                if self._columns() is None:
                    raise
            columns = self._columns() or frozenset()
        if "iceberg_type" in columns:
            return True
        key = "schema_version" if "schema_version" in self._properties else "jdbc.schema-version"
        if props.property_as_choice(self._properties, key, "v0", ("v0", "v1")) == "v0":
            return False
        self._database.write(
            lambda c: c.execute(sa.text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"))
        )
        return True

    @property
    def _may_create(self) -> bool:
        """Whether the database may get tables that it lacks."""
        switches = ("init_catalog_tables", "jdbc.init-catalog-tables")
        return all(props.property_as_bool(self._properties, key, True) for key in switches)

    def _columns(self) -> frozenset[str] | None:
        """The columns of the table of pointers; None unless both tables exist."""

        def look(inspector: Inspector) -> frozenset[str] | None:
            if not inspector.has_table(_POINTERS.name) or not inspector.has_table(_NAMESPACES.name):
                return None
            return frozenset(column["name"].lower() for column in inspector.get_columns(_POINTERS.name))

        return self._database.inspect(look)

    def _metadata_locations(self) -> Iterator[tuple[Identifier, str]]:
        return iter(self._table_pointers.all())

    # Namespaces

    def _check_name(self, identifier: Identifier) -> None:
        for part in identifier:
            check_length(part, NAME_LENGTH, "name")
        # The last part of a table's name may hold dots; that the namespace is checked without it is seen to by callers.
        _namespace_text(identifier[:-1])

    def _namespace_exists(self, namespace: Identifier) -> bool:
        return bool(self._namespace_texts(_namespace_text(namespace), limit=1))

    def _namespace_texts(self, parent: str, limit: int | None = None) -> set[str]:
        """The namespaces that have properties or hold something: the parent and those in it, or all for an empty one."""
        texts = set()
        for table, column in ((_NAMESPACES, _NAMESPACES.c.namespace), (_POINTERS, _POINTERS.c.table_namespace)):
            query = sa.select(column).where(table.c.catalog_name == self._name).distinct()
            if parent:
                # Not LIKE, which in SQLite takes capitals for small letters.
                inside = sa.func.substr(column, 1, len(parent) + 1) == f"{parent}."
                query = query.where(sa.or_(column == parent, inside))
            texts |= {row[0] for row in self._database.read(query.limit(limit))}
        return texts

    def _child_namespaces(self, parent: Identifier) -> set[Identifier]:
        depth = len(parent) + 1
        names = (_namespace_parts(text) for text in self._namespace_texts(_namespace_text(parent)) if text)
        return {name[:depth] for name in names if len(name) >= depth}

    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None:
        rows = self._property_rows(namespace, {**properties, EXISTS: "true"})
        try:
            with self._database.writing() as connection:
                connection.execute(sa.insert(_NAMESPACES), rows)
                self._database.changed(connection)
        except TakenError:
            raise self._namespace_taken(namespace) from None

    def _drop_namespace(self, namespace: Identifier) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.delete(_NAMESPACES).where(self._is_namespace(namespace)))
            self._database.changed(connection)

    def _load_namespace(self, namespace: Identifier) -> dict[str, str]:
        rows = self._database.read(self._properties_query(namespace))
        return {key: value or "" for key, value in rows if key != EXISTS}

    def _change_namespace(
        self, namespace: Identifier, removals: frozenset[str], updates: dict[str, str]
    ) -> dict[str, str]:
        written = {**updates, EXISTS: "true"}
        rows = self._property_rows(namespace, written)
        with self._database.writing() as connection:
            before = {key: value or "" for key, value in connection.execute(self._properties_query(namespace))}
            connection.execute(
                sa.delete(_NAMESPACES).where(
                    self._is_namespace(namespace), _NAMESPACES.c.property_key.in_([*removals, *written])
                )
            )
            connection.execute(sa.insert(_NAMESPACES), rows)
            self._database.changed(connection)
        return before

    def _properties_query(self, namespace: Identifier) -> sa.Select[Any]:
        return sa.select(_NAMESPACES.c.property_key, _NAMESPACES.c.property_value).where(self._is_namespace(namespace))

    def _is_namespace(self, namespace: Identifier) -> sa.ColumnElement[bool]:
        return sa.and_(_NAMESPACES.c.catalog_name == self._name, _NAMESPACES.c.namespace == _namespace_text(namespace))

    def _property_rows(self, namespace: Identifier, properties: dict[str, str]) -> list[dict[str, str]]:
        for key, value in properties.items():
            if "\x00" in key + value:
                raise errors.InvalidPropertyError(
                    f"property {key[:40]!r} of namespace {show(namespace)} contains a NUL character, which databases do not allow"
                )
            if len(key) > NAME_LENGTH or len(value) > TEXT_LENGTH:
                raise errors.InvalidPropertyError(
                    f"property {key[:40]!r} of namespace {show(namespace)} has a key of {len(key)} and a value of"
                    f" {len(value)} characters; this catalog allows at most {NAME_LENGTH} and {TEXT_LENGTH}"
                )
        name = {"catalog_name": self._name, "namespace": _namespace_text(namespace)}
        return [{**name, "property_key": key, "property_value": value} for key, value in properties.items()]

    def __reduce__(self) -> tuple[type["SqlCatalog"], tuple[str, dict[str, str]]]:
        # Absolute, since the other process may be in another folder.
        locations = {"uri": self._database.uri} | ({} if self._warehouse is None else {"warehouse": self._warehouse})
        return SqlCatalog, (self._name, {**self._properties, **locations})

    def __repr__(self) -> str:
        return f"SqlCatalog({self._name!r}, uri={str(self._database)!r}, warehouse={self._warehouse!r})"


def _seal_name(identifier: Identifier) -> tuple[str, str]:
    """A table as its seal is kept under."""
    return _namespace_text(identifier[:-1]), identifier[-1]


_ESCAPED = re.compile(r"\.|%(?=2E|25)")
_ESCAPES = re.compile(r"%(2E|25)")


def _namespace_text(namespace: Identifier) -> str:
    """A namespace as it is kept: with dots between its parts."""
    parts = (_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", part) for part in namespace)
    return check_length(".".join(parts), NAME_LENGTH, "namespace")


def _namespace_parts(text: str) -> Identifier:
    """The parts of a namespace that is kept so."""
    return tuple(_ESCAPES.sub(lambda match: chr(int(match[1], 16)), part) for part in text.split("."))
