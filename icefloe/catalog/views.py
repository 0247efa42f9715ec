"""Decides how views are created, changed and found: a metadata file for each, under names that they share with tables."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from icefloe.catalog.clock import now_ms
from icefloe.catalog.definitions import SchemaLike, read_schema
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, parse_namespace, show
from icefloe.catalog.namespaces import checked_namespace_properties
from icefloe.errors import CommitFailed, InvalidInputError, NoSuchViewError
from icefloe.metadata import SQLViewRepresentation, ViewMetadata, ViewVersion, apply_view_all, updates as up
from icefloe.schema import Schema

DEFAULT_DIALECT = "spark"
"""The dialect of a query that is given as a bare text."""

_ATTEMPTS = 5
_ENGINE = {"engine-name": "icefloe"}


@dataclass(frozen=True, slots=True)
class View:
    """A view as it was when it was loaded."""

    identifier: Identifier
    metadata: ViewMetadata
    metadata_location: str

    def name(self) -> Identifier:
        """The levels of its namespace and its own name."""
        return self.identifier

    def schema(self) -> Schema:
        """The columns of the view."""
        return self.metadata.schema()

    def version(self) -> ViewVersion:
        """The current definition."""
        return self.metadata.version()

    def sql_for(self, dialect: str = DEFAULT_DIALECT) -> str | None:
        """The query in that dialect; in another one if there is none in it."""
        found = self.version().sql_for(dialect)
        return None if found is None else found.sql

    @property
    def properties(self) -> Mapping[str, str]:
        """The view's properties."""
        return self.metadata.properties

    def location(self) -> str:
        """The base location of the view's files."""
        return self.metadata.location


class ViewOperations(ABC):
    """What a user can ask a catalog about views."""

    @abstractmethod
    def _check_name(self, identifier: Identifier) -> None:
        """Fail if the catalog cannot keep the name."""

    @abstractmethod
    def _check_free(self, identifier: Identifier) -> None:
        """Fail if the name is in use."""

    @abstractmethod
    def _free_name(self, identifier: Name, what: str = "table") -> Identifier: ...

    @abstractmethod
    def _require_namespace(self, namespace: Identifier) -> None: ...

    @abstractmethod
    def _existing_namespace(self, namespace: Name) -> Identifier: ...

    @abstractmethod
    def _default_location(self, identifier: Identifier) -> str: ...

    @abstractmethod
    def _given_location(self, identifier: Identifier, location: str) -> str: ...

    @abstractmethod
    def _has_table(self, identifier: Identifier) -> bool: ...

    @abstractmethod
    def _has_view(self, identifier: Identifier) -> bool: ...

    @abstractmethod
    def _view_names(self, namespace: Identifier) -> set[Identifier]: ...

    @abstractmethod
    def _find_view(self, identifier: Identifier) -> View | None: ...

    @abstractmethod
    def _create_view(self, identifier: Identifier, view: ViewMetadata) -> View: ...

    @abstractmethod
    def _swap_view(self, base: View, changed: ViewMetadata) -> View:
        """Set another definition if the present one is the base; else CommitFailed."""

    @abstractmethod
    def _rename_view(self, source: Identifier, target: Identifier) -> bool: ...

    @abstractmethod
    def _drop_view(self, identifier: Identifier) -> bool: ...

    def create_view(
        self,
        identifier: Name,
        schema: SchemaLike,
        sql: str | Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> View:
        """Create a view.

        Args:
            identifier: its name, which no table has.
            schema: the columns that its query gives.
            sql: a query of Spark, or one query for each dialect.
            default_namespace: where names in the query are looked up; the view's own namespace if it is not given.
            default_catalog: in which catalog; the view's own if it is not given.
            location: where its metadata goes.
            properties: its properties.

        >>> view = catalog.create_view("shop.large", "id bigint", "SELECT id FROM orders WHERE total > 100")
        >>> view.sql_for("spark")
        'SELECT id FROM orders WHERE total > 100'
        """
        wanted = self._free_name(identifier, "view")
        place = self._default_location(wanted) if location is None else self._given_location(wanted, location)
        settings = checked_namespace_properties(properties)
        updates: list[up.ViewUpdate] = [up.AssignUUIDUpdate(str(uuid.uuid4())), up.SetLocationUpdate(place)]
        if settings:
            updates.append(up.SetPropertiesUpdate(settings))
        updates += _definition(wanted, schema, sql, default_namespace, default_catalog)
        return self._create_view(wanted, apply_view_all(None, updates, now_ms()))

    def replace_view(
        self,
        identifier: Name,
        schema: SchemaLike,
        sql: str | Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> View:
        """Give a view another definition; the ones before stay in its history."""
        wanted = parse_identifier(identifier, "view")
        updates = _definition(wanted, schema, sql, default_namespace, default_catalog)
        if settings := checked_namespace_properties(properties):
            updates.append(up.SetPropertiesUpdate(settings))
        return self._change_view(wanted, updates)

    def create_or_replace_view(
        self,
        identifier: Name,
        schema: SchemaLike,
        sql: str | Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> View:
        """Create the view, or replace the one that has the name."""
        change = self.replace_view if self.view_exists(identifier) else self.create_view
        return change(
            identifier,
            schema,
            sql,
            default_namespace=default_namespace,
            default_catalog=default_catalog,
            properties=properties,
        )

    def update_view_properties(
        self, identifier: Name, removals: Collection[str] | None = None, updates: Mapping[str, object] | None = None
    ) -> View:
        """Remove and set properties of a view."""
        if isinstance(removals, str):
            raise InvalidInputError(f"removals are a set of keys, not the text {removals!r}")
        changes: list[up.ViewUpdate] = []
        if removals:
            changes.append(up.RemovePropertiesUpdate(tuple(sorted(removals))))
        if settings := checked_namespace_properties(updates):
            changes.append(up.SetPropertiesUpdate(settings))
        return self._change_view(parse_identifier(identifier, "view"), changes)

    def load_view(self, identifier: Name) -> View:
        """The view of that name, as it is now."""
        return self._existing_view(parse_identifier(identifier, "view"))

    def view_exists(self, identifier: Name) -> bool:
        """Whether there is a view of that name."""
        return self._has_view(parse_identifier(identifier, "view"))

    def list_views(self, namespace: Name) -> list[Identifier]:
        """The views in a namespace, in order."""
        return sorted(self._view_names(self._existing_namespace(namespace)))

    def rename_view(self, source: Name, target: Name) -> View:
        """Give a view another name, in its namespace or another."""
        old, new = parse_identifier(source, "view"), parse_identifier(target, "view")
        self._check_name(new)
        view = self._existing_view(old)
        if old == new:
            return view
        self._require_namespace(new[:-1])
        self._check_free(new)
        if not self._rename_view(old, new):
            raise self._no_view(old)
        return self._existing_view(new)

    def drop_view(self, identifier: Name) -> None:
        """Drop a view; its files stay."""
        wanted = parse_identifier(identifier, "view")
        if not self._drop_view(wanted):
            raise self._no_view(wanted)

    def _change_view(self, identifier: Identifier, updates: Sequence[up.ViewUpdate]) -> View:
        """Change a view, as often as it takes: what is asked for does not depend on what others did meanwhile."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._commit_view(self._existing_view(identifier), updates)
            except CommitFailed:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _commit_view(self, base: View, updates: Sequence[up.ViewUpdate]) -> View:
        changed = apply_view_all(base.metadata, updates, now_ms())
        return base if changed is base.metadata else self._swap_view(base, changed)

    def _existing_view(self, identifier: Identifier) -> View:
        view = self._find_view(identifier)
        if view is None:
            raise self._no_view(identifier)
        return view

    def _no_view(self, identifier: Identifier) -> NoSuchViewError:
        if self._has_table(identifier):
            return NoSuchViewError(f"{show(identifier)} is a table, not a view")
        return NoSuchViewError(f"no view {show(identifier)}")


def _definition(
    identifier: Identifier,
    schema: SchemaLike,
    sql: str | Mapping[str, str],
    default_namespace: Name | None,
    default_catalog: str | None,
) -> list[up.ViewUpdate]:
    queries: object = {DEFAULT_DIALECT: sql} if isinstance(sql, str) else sql
    if not isinstance(queries, Mapping) or not queries:
        raise InvalidInputError(
            f"a view needs a query, or one for each dialect like {{'spark': 'SELECT ...'}}, not {sql!r:.100}"
        )
    for dialect, query in queries.items():
        if not isinstance(query, str) or not query.strip() or not isinstance(dialect, str) or not dialect:
            raise InvalidInputError(f"the query of view {show(identifier)} for dialect {dialect!r} is {query!r:.100}")
    version = ViewVersion(
        version_id=1,
        schema_id=up.LAST_ADDED,
        timestamp_ms=now_ms(),
        representations=tuple(SQLViewRepresentation(query, dialect) for dialect, query in queries.items()),
        default_namespace=identifier[:-1] if default_namespace is None else parse_namespace(default_namespace),
        default_catalog=default_catalog,
        summary=_ENGINE,
    )
    return [up.AddSchemaUpdate(read_schema(schema)), up.AddViewVersionUpdate(version), up.SetCurrentViewVersionUpdate()]
