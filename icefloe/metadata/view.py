"""What a view is at one moment: its versions, each with a query per SQL dialect, and the log of which was current (view spec)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefloe.errors import InvalidMetadataError, UnsupportedVersionError
from icefloe.metadata.table import by_id
from icefloe.schema import Schema

VIEW_FORMAT_VERSION = 1
"""The one version of the view format."""


@dataclass(frozen=True, slots=True)
class SQLViewRepresentation:
    """The view as a query in one dialect of SQL."""

    sql: str
    dialect: str


@dataclass(frozen=True, slots=True)
class OtherViewRepresentation:
    """An unknown representation of the view, kept as it is."""

    representation_type: str
    content: Mapping[str, object] = field(default_factory=dict, hash=False)


ViewRepresentation = SQLViewRepresentation | OtherViewRepresentation


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """One definition of a view; it never changes. Names in the query are looked up in the default catalog and namespace.

    `default_catalog` None means the view's own catalog.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[str, ...] = ()
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        dialects = self.dialects
        for dialect in dialects:
            if dialects.count(dialect) > 1:
                # The words of Java's, which its clients look for.
                raise InvalidMetadataError(
                    f"Invalid view version: Cannot add multiple queries for dialect {dialect}; version {self.version_id} has them"
                )

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects of the queries, in lower case."""
        return tuple(
            query.dialect.lower() for query in self.representations if isinstance(query, SQLViewRepresentation)
        )

    def sql_for(self, dialect: str) -> SQLViewRepresentation | None:
        """The query in that dialect, ignoring case; the first query if there is none."""
        queries = [query for query in self.representations if isinstance(query, SQLViewRepresentation)]
        matching = [query for query in queries if query.dialect.lower() == dialect.lower()]
        return next(iter(matching or queries), None)

    def behaves_like(self, other: "ViewVersion") -> bool:
        """Whether the versions are the same except for their ids and times."""
        return self == replace(other, version_id=self.version_id, timestamp_ms=self.timestamp_ms)


@dataclass(frozen=True, slots=True)
class ViewVersionLogEntry:
    """From this time on, the version was the current one."""

    version_id: int
    timestamp_ms: int


@dataclass(frozen=True)
class ViewMetadata:
    """One state of a view. A change creates a new one: see `metadata.apply_view`."""

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewVersionLogEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    format_version: int = VIEW_FORMAT_VERSION

    def __post_init__(self) -> None:
        check_view_format_version(self.format_version)

    def version(self, version_id: int | None = None) -> ViewVersion:
        """The current version, or the one of that id."""
        versions = {version.version_id: version for version in self.versions}
        return by_id(versions, self.current_version_id if version_id is None else version_id, "view version")

    def schema(self, version_id: int | None = None) -> Schema:
        """The schema of the current version, or of the one of that id."""
        schemas = {schema.schema_id: schema for schema in self.schemas}
        return by_id(schemas, self.version(version_id).schema_id, "view schema")


def check_view_format_version(version: int) -> None:
    """Fail unless this version of the view format is known."""
    if version != VIEW_FORMAT_VERSION:
        raise UnsupportedVersionError(
            f"view format version {version} is not supported; icefloe knows {VIEW_FORMAT_VERSION}"
        )
