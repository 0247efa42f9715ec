"""Decides which table, at which snapshot, a text of a user means: `[catalog.]ns.table[@ref|@id|@time]`, or a location."""

import datetime as dt
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict

from icefloe import errors, metadata as md
from icefloe.catalog.configuration import same_name
from icefloe.catalog.identifiers import Identifier, parse_identifier, show_part
from icefloe.planning import milliseconds

_LOCATION = re.compile(r"[A-Za-z][\w+.\-]*://.*|(?:/|\./|\.\./|~/|\.$|\.\.$).*|.*\.metadata\.json(?:\.gz)?", re.DOTALL)
_METADATA_FILE = (".metadata.json", ".metadata.json.gz")


class At(TypedDict, total=False):
    """A snapshot as the arguments of scans and metadata tables that choose it; none of them is the current one."""

    snapshot_id: int
    ref: str
    as_of: int


@dataclass(frozen=True, slots=True)
class TableName:
    """What a text names: a table of a catalog, or of the one in use, or one by its location; and a snapshot of it."""

    identifier: Identifier = ()
    catalog: str | None = None
    location: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        base = self.location or show_table(self.identifier)
        return base if self.version is None else f"{base}@{self.version}"


def parse_table_name(text: str, catalogs: Collection[str] = ()) -> TableName:
    """The table that a text names; its first part is a catalog if it is one of those given and a namespace follows."""
    if _LOCATION.fullmatch(text):
        location, version = (text, None) if text.endswith(_METADATA_FILE) else _split_version(text, after="/")
        return TableName(location=location, version=version)
    name, version = _split_version(text, after='"`')
    identifier = parse_identifier(name)
    if len(identifier) > 2:
        for catalog in catalogs:
            if same_name(catalog, identifier[0]):
                return TableName(identifier[1:], catalog, version=version)
    return TableName(identifier, version=version)


def _split_version(text: str, after: str) -> tuple[str, str | None]:
    start = max(text.rfind(mark) for mark in after) + 1
    at = text.rfind("@", start)
    if at < 0:
        return text, None
    if at == len(text) - 1:
        raise errors.InvalidInputError(f"{text!r} ends with @; add a branch, tag, snapshot id or time")
    return text[:at], text[at + 1 :]


def show_table(identifier: Identifier) -> str:
    """A name as a text that `parse_table_name` reads back."""
    return ".".join(f'"{part}"' if "@" in part and '"' not in part else show_part(part) for part in identifier)


def choose_version(metadata: md.TableMetadata, version: str | None) -> At:
    """The snapshot that a text after @ means: a branch or tag, else a snapshot id, else a time; UTC without a zone."""
    if version is None:
        return {}
    if version in metadata.refs or version == md.MAIN_BRANCH:
        return {"ref": version}
    if version.isascii() and version.isdigit():
        return {"snapshot_id": metadata.snapshot(int(version)).snapshot_id}
    moment = read_time(version)
    if moment is None:
        known = ", ".join(sorted(metadata.refs)) or "none"
        raise errors.NoSuchSnapshotError(
            f"{version!r} is not a branch or tag ({known}), a snapshot id, or a time such as 2026-11-01T00:00Z"
        )
    metadata.snapshot_as_of(moment)
    return {"as_of": moment}


def read_time(text: str) -> int | None:
    """A time in ISO 8601, UTC if it has no zone, in milliseconds since 1970; None if the text is no time."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return milliseconds(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
