"""Decides how views are created, changed and looked up: a metadata file for each, under names that they share with tables."""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, TypeAlias

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog.definitions import SchemaLike, described_by, property_texts, read_schema
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, parse_namespace, show
from icefloe.metadata import updates as up
from icefloe.schema import Schema

if TYPE_CHECKING:
    from icefloe.catalog.catalog import Catalog

DEFAULT_DIALECT = "spark"
"""The dialect of a query that is given as a bare text."""

_Identifiers: TypeAlias = list[Identifier]
ATTEMPTS = 5
"""How often a change of a view is tried."""
_ENGINE = {"engine-name": "icefloe"}


@dataclass(frozen=True, slots=True)
class View:
    """A view as it was when it was loaded."""

    identifier: Identifier
    metadata: md.ViewMetadata
    metadata_location: str

    def name(self) -> Identifier:
        """The levels of its namespace and its own name."""
        return self.identifier

    def schema(self) -> Schema:
        """The columns of the view."""
        return self.metadata.schema()

    def version(self) -> md.ViewVersion:
        """The current definition."""
        return self.metadata.version()

    def sql_for(self, dialect: str = DEFAULT_DIALECT) -> str | None:
        """The query in that dialect, or in another one if that one has none."""
        representation = self.version().sql_for(dialect)
        return None if representation is None else representation.sql

    @property
    def properties(self) -> Mapping[str, str]:
        """The view's properties."""
        return self.metadata.properties

    def location(self) -> str:
        """The base location of the view's files."""
        return self.metadata.location


@dataclass(frozen=True, slots=True)
class ViewDescription:
    """A view as a user describes it; `Views.create` says what each part may be."""

    identifier: Name
    schema: SchemaLike
    sql: str | Mapping[str, str]
    _: KW_ONLY
    default_namespace: Name | None = None
    default_catalog: str | None = None
    location: str | None = None
    properties: Mapping[str, object] | None = None

    def updates(self, identifier: Identifier, location: str | None) -> list[up.ViewUpdate]:
        """What makes a view of that name what this says."""
        updates: list[up.ViewUpdate] = [] if location is None else [up.SetLocationUpdate(location)]
        if properties := property_texts(self.properties):
            updates.append(up.SetPropertiesUpdate(properties))
        namespace = identifier[:-1] if self.default_namespace is None else parse_namespace(self.default_namespace)
        version = md.ViewVersion(
            version_id=1,
            schema_id=up.LAST_ADDED,
            timestamp_ms=cm.now_ms(),
            representations=self._representations(identifier),
            default_namespace=namespace,
            default_catalog=self.default_catalog,
            summary=_ENGINE,
        )
        schema = up.AddSchemaUpdate(read_schema(self.schema))
        return [*updates, schema, up.AddViewVersionUpdate(version), up.SetCurrentViewVersionUpdate()]

    def _representations(self, identifier: Identifier) -> tuple[md.SQLViewRepresentation, ...]:
        queries: object = {DEFAULT_DIALECT: self.sql} if isinstance(self.sql, str) else self.sql
        if not isinstance(queries, Mapping) or not queries:
            raise errors.InvalidInputError(
                f"a view needs a query, or a query per dialect such as {{'spark': 'SELECT ...'}}, not {self.sql!r:.100}"
            )
        for dialect, query in queries.items():
            if not isinstance(query, str) or not query.strip() or not isinstance(dialect, str) or not dialect:
                raise errors.InvalidInputError(
                    f"the query of view {show(identifier)} for dialect {dialect!r} is {query!r:.100}"
                )
        return tuple(md.SQLViewRepresentation(query, dialect) for dialect, query in queries.items())


class Views:
    """The views of a catalog.

    It is a part of its catalog. The steps at its end are those of a catalog that does not support views; one that does has its own.

    >>> view = catalog.views.create("shop.large", "id bigint", "SELECT id FROM orders WHERE total > 100")
    >>> catalog.views.list("shop")
    [('shop', 'large')]
    """

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog

    @described_by(ViewDescription)
    def create(self, view: ViewDescription) -> View:
        """Create a view.

        Args:
            identifier: its name, which no table has.
            schema: the columns of its query.
            sql: a query of Spark, or one query for each dialect.
            default_namespace: where names in the query are looked up; the view's own namespace by default.
            default_catalog: in which catalog; the view's own by default.
            location: where its metadata goes.
            properties: its properties.

        >>> view = catalog.views.create("shop.large", "id bigint", "SELECT id FROM orders WHERE total > 100")
        >>> view.sql_for("spark")
        'SELECT id FROM orders WHERE total > 100'
        """
        return self._create(view)

    @described_by(ViewDescription)
    def replace(self, view: ViewDescription) -> View:
        """Give a view another definition, and another location if one is given; earlier definitions stay in its history."""
        return self._replace(view)

    @described_by(ViewDescription)
    def create_or_replace(self, view: ViewDescription) -> View:
        """Create the view, or replace the one that has the name."""
        return self._replace(view) if self.exists(view.identifier) else self._create(view)

    def update_properties(
        self, identifier: Name, removals: Collection[str] | None = None, updates: Mapping[str, object] | None = None
    ) -> View:
        """Remove and set properties of a view."""
        if isinstance(removals, str):
            raise errors.InvalidInputError(f"removals must be a set of keys, not the string {removals!r}")
        changes: list[up.ViewUpdate] = []
        if removals:
            changes.append(up.RemovePropertiesUpdate(tuple(sorted(removals))))
        if properties := property_texts(updates):
            changes.append(up.SetPropertiesUpdate(properties))
        return self._change(parse_identifier(identifier, "view"), changes)

    def load(self, identifier: Name) -> View:
        """The view of that name, as it is now; `NoSuchViewError` if there is none."""
        return self._existing(parse_identifier(identifier, "view"))

    def exists(self, identifier: Name) -> bool:
        """Whether there is a view of that name."""
        return self._has(parse_identifier(identifier, "view"))

    def list(self, namespace: Name) -> _Identifiers:
        """The views in a namespace, in order."""
        return sorted(self._names(self._catalog._existing_namespace(namespace)))

    def rename(self, source: Name, target: Name) -> View:
        """Give a view another name, in its namespace or another."""
        old, new = parse_identifier(source, "view"), parse_identifier(target, "view")
        self._catalog._check_name(new)
        view = self._existing(old)
        if old == new:
            return view
        self._catalog._require_namespace(new[:-1])
        self._catalog._check_free(new)
        if not self._move(old, new):
            raise self._missing(old)
        return self._existing(new)

    def drop(self, identifier: Name) -> None:
        """Drop a view; its files stay."""
        parsed = parse_identifier(identifier, "view")
        if not self._remove(parsed):
            raise self._missing(parsed)

    def _create(self, view: ViewDescription) -> View:
        identifier = self._catalog._free_name(view.identifier, "view")
        updates = view.updates(identifier, self._catalog._location_of(identifier, view.location))
        identity = up.AssignUUIDUpdate(str(uuid.uuid4()))
        return self._store_new(identifier, md.apply_view_all(None, [identity, *updates], cm.now_ms()))

    def _replace(self, view: ViewDescription) -> View:
        identifier = parse_identifier(view.identifier, "view")
        location = None if view.location is None else self._catalog._location_of(identifier, view.location)
        return self._change(identifier, view.updates(identifier, location))

    def _change(
        self, identifier: Identifier, updates: Sequence[up.ViewUpdate], check: Callable[[View], None] = lambda _: None
    ) -> View:
        """Change a view, as often as it takes, as long as it passes the check: else others may do what they want meanwhile."""
        for attempt in range(1, ATTEMPTS + 1):
            base = self._existing(identifier)
            check(base)
            changed = md.apply_view_all(base.metadata, updates, cm.now_ms())
            try:
                return base if changed is base.metadata else self._swap(base, changed)
            except errors.CommitFailed:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _existing(self, identifier: Identifier) -> View:
        view = self._find(identifier)
        if view is None:
            raise self._missing(identifier)
        return view

    def _missing(self, identifier: Identifier) -> errors.NoSuchViewError:
        if self._catalog._has_table(identifier):
            return errors.NoSuchViewError(f"{show(identifier)} is a table, not a view")
        return errors.NoSuchViewError(f"no view {show(identifier)}")

    # The steps of a catalog that does not support views

    def _has(self, identifier: Identifier) -> bool:
        return self._find(identifier) is not None

    def _find(self, identifier: Identifier) -> View | None:  # noqa: ARG002 - there are none
        return None

    def _names(self, namespace: Identifier) -> set[Identifier]:  # noqa: ARG002 - there are none
        return set()

    def _store_new(self, identifier: Identifier, view: md.ViewMetadata) -> View:  # noqa: ARG002 - refused
        raise errors.InvalidInputError(
            f"view {show(identifier)} cannot be created: catalog {self._catalog.name!r} does not support views"
        )

    def _swap(self, base: View, changed: md.ViewMetadata) -> View:  # noqa: ARG002 - there is none to change
        """Set another definition if the present one is the base; else CommitFailed."""
        raise self._missing(base.identifier)

    def _move(self, source: Identifier, target: Identifier) -> bool:  # noqa: ARG002 - there are none
        """Rename a view; whether there was one."""
        return False

    def _remove(self, identifier: Identifier) -> bool:  # noqa: ARG002 - there are none
        """Drop a view; whether there was one."""
        return False
