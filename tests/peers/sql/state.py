"""What a table or view is after a step, read from its metadata file alone, in a form in which two engines' tables can be compared.

Neither engine is asked: a file of JSON is read, so what one of them says about itself cannot hide what it wrote.
"""

import gzip
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.sql.normal import Rows

CATALOG = "lake"
"""The catalog that statements name, on both sides."""
OTHER = "other"
"""What each calls the catalog of the other."""
ENGINES_OWN = (
    "owner",
    "write.parquet.compression-codec",
    "create_engine_version",
    "engine_version",
    "spark.query-column-names",
)
"""Properties that an engine adds by itself, and that say nothing of the table."""
COUNTS = tuple(
    f"{change}-{what}"
    for change in ("added", "deleted", "removed", "total")
    for what in (
        "records",
        "data-files",
        "delete-files",
        "position-deletes",
        "equality-deletes",
        "position-delete-files",
        "equality-delete-files",
        "dvs",
    )
)
"""The counts in a snapshot's summary; sizes and what engines say of themselves are left out."""


CONSEQUENCES = ("current", "log", "counts", "lineage", "refs.main")
"""Parts that differ wherever histories do."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a snapshot."""

    all: Mapping[str, int]

    def same_rows(self, other: "Counts") -> bool:
        """Whether both say the same of rows; how many files they are in may depend on the engine.

        Where a change deletes all rows of a file, we drop the file, and Java may write deletes for it.
        """
        return self.same_net(other) and self._of("added-records") == other._of("added-records")

    def same_net(self, other: "Counts") -> bool:
        """Whether both have as many rows before and after, which holds even if rows lie in other files, so that others are copied."""
        return self._net() == other._net()

    def _net(self) -> tuple[int, int]:
        gone = self._of("deleted-records") + self._of("added-position-deletes") - self._of("removed-position-deletes")
        return self._of("added-records") - gone, self._of("total-records") - self._of("total-position-deletes")

    def _of(self, key: str) -> int:
        return self.all.get(key, 0)

    def __repr__(self) -> str:
        return repr(dict(self.all))


@dataclass(frozen=True)
class Entry:
    """A table or view that a catalog has, by its newest metadata file."""

    kind: str
    location: str


@dataclass(frozen=True)
class State:
    """A table or view after a step; `parts` are compared one by one."""

    location: str
    parts: Mapping[str, Any]
    snapshot_ids: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    """When each of the snapshots was made, in milliseconds."""
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The file as it is."""
    rows: Rows | str | None = None
    """What the engine reads from it, or why it cannot."""

    def differences(self, other: "State") -> list[tuple[str, str]]:
        """The parts in which another one is not the same, each with both values; parts of parts by their names, as `refs.b`."""
        mine, its = {**self.parts, "rows": self.rows}, {**other.parts, "rows": other.rows}
        found: list[tuple[str, str]] = []
        for key in {**mine, **its}:
            one, two = mine.get(key), its.get(key)
            if key == "counts" and isinstance(one, Mapping) and isinstance(two, Mapping):
                found += _count_differences(one, two)
            elif isinstance(one, Mapping) and isinstance(two, Mapping):
                inner = {name: (one.get(name), two.get(name)) for name in {**one, **two}}
                found += [(f"{key}.{name}", _shown(*both)) for name, both in inner.items() if not _same(key, *both)]
            elif not _same(key, one, two):
                found.append((key, _shown(one, two)))
        if self.parts.get("counts") != other.parts.get("counts"):
            # Rows get their ids file by file, so other files may mean other ids.
            found = [(part, shown) for part, shown in found if not part.startswith("lineage")]
        if any(part == "history" for part, _ in found):
            found = [(part, shown) for part, shown in found if not part.startswith(CONSEQUENCES)]
        return found


def _same(key: str, one: Any, two: Any) -> bool:
    if key == "rows" and isinstance(one, str) and isinstance(two, str):
        return True
    return bool(one == two)


def _count_differences(mine: Mapping[str, Counts], its: Mapping[str, Counts]) -> list[tuple[str, str]]:
    found = []
    same_files = True
    for place in {**mine, **its}:
        one, two = mine.get(place, Counts({})), its.get(place, Counts({}))
        if not (one.same_rows(two) if same_files else one.same_net(two)):
            found.append((f"counts.{place}", f"{one} / {two}"))
        same_files = same_files and one == two
    return found


def _shown(mine: Any, its: Any) -> str:
    if isinstance(mine, Rows) and isinstance(its, Rows):
        if mine.columns != its.columns:
            return f"{mine.columns} / {its.columns}"
        ours = [row for row in mine.values if row not in its.values]
        theirs = [row for row in its.values if row not in mine.values]
        return f"{ours or mine.values!r} / {theirs or its.values!r}"
    return f"{mine!r} / {its!r}"


def entries(database: Path, namespace: str) -> dict[str, Entry]:
    """The tables and views of a namespace, straight from the catalog's database."""
    query = (
        "SELECT table_name, metadata_location, iceberg_type FROM iceberg_tables"
        " WHERE catalog_name = ? AND table_namespace = ?"
    )
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        found = connection.execute(query, (CATALOG, namespace)).fetchall()
    return {str(name): Entry(str(kind or "TABLE").lower(), str(place)) for name, place, kind in found}


def lend(database: Path, namespace: str, name: str) -> None:
    """Let another catalog on the same database, which asks for its own name in each row, find a table."""
    statement = (
        "INSERT OR REPLACE INTO iceberg_tables"
        " (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type)"
        " SELECT ?, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
        " FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
    )
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        connection.execute(statement, (OTHER, CATALOG, namespace, name))
        connection.commit()


def state_of(entry: Entry, seen: Sequence[int]) -> State:
    """What a metadata file says; snapshots are known by the place at which they were first seen, as ids are random.

    Snapshots that change nothing are left out: Java commits one where a statement finds no rows to change, and we do not.
    """
    metadata = _load(entry.location)
    if entry.kind == "view":
        return State(entry.location, _view(metadata), metadata=metadata)
    snapshots = metadata.get("snapshots", [])
    kept = [each for each in snapshots if _changes(each["summary"])]
    places = {each: f"s{place}" for place, each in enumerate(_in_order(seen, kept), 1)}
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in snapshots}

    def place(snapshot_id: int | None) -> str | None:
        while snapshot_id in parents and snapshot_id not in places:
            snapshot_id = parents[snapshot_id]
        return None if snapshot_id in (None, -1) else places.get(snapshot_id, "gone")

    ids = tuple(each["snapshot-id"] for each in kept)
    times = tuple(each["timestamp-ms"] for each in kept)
    return State(entry.location, _table(metadata, kept, place), ids, times, metadata)


def _in_order(seen: Sequence[int], snapshots: Sequence[Mapping[str, Any]]) -> list[int]:
    return list(dict.fromkeys([*seen, *(each["snapshot-id"] for each in snapshots)]))


def _changes(summary: Mapping[str, str]) -> bool:
    return any(int(summary.get(key, 0)) for key in COUNTS if not key.startswith("total"))


def _load(location: str) -> dict[str, Any]:
    raw = Path(location.removeprefix("file://").removeprefix("file:")).read_bytes()
    return dict(json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw))


def _table(
    metadata: Mapping[str, Any], snapshots: Sequence[Mapping[str, Any]], place: Callable[[int | None], str | None]
) -> dict[str, Any]:
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    names = _names(schema)
    spec = next(each for each in metadata["partition-specs"] if each["spec-id"] == metadata["default-spec-id"])
    order = next(each for each in metadata["sort-orders"] if each["order-id"] == metadata["default-sort-order-id"])
    current = place(metadata.get("current-snapshot-id"))
    written = metadata.get("refs", {}).get("main", {})
    main = (
        {} if current is None else {"main": _ref({"type": "branch", **written, "snapshot-id": None}, lambda _: current)}
    )
    log = [place(each["snapshot-id"]) for each in metadata.get("snapshot-log", [])]
    return {
        "version": metadata["format-version"],
        "schema": {
            "fields": _fields(schema),
            "identifiers": sorted(names[each] for each in schema.get("identifier-field-ids", [])),
            "last-column-id": metadata["last-column-id"],
            "versions": len(metadata["schemas"]),
        },
        "spec": [
            (each["name"], each["transform"], names.get(each["source-id"]), each["field-id"]) for each in spec["fields"]
        ],
        "specs": len(metadata["partition-specs"]),
        "order": [
            (each["transform"], names.get(each["source-id"]), each["direction"], each["null-order"])
            for each in order["fields"]
        ],
        "properties": {key: value for key, value in metadata["properties"].items() if key not in ENGINES_OWN},
        "history": [
            (place(each["snapshot-id"]), each["summary"]["operation"], place(each.get("parent-snapshot-id")))
            for each in snapshots
        ],
        "current": current,
        "log": [each for before, each in zip([None, *log], log, strict=False) if each not in (None, before)],
        "counts": {str(place(each["snapshot-id"])): Counts(_counts(each["summary"])) for each in snapshots},
        "lineage": {
            "next-row-id": metadata.get("next-row-id"),
            **{
                str(place(each["snapshot-id"])): (each.get("first-row-id"), each.get("added-rows"))
                for each in snapshots
            },
        },
        # Main need not be written, as the current snapshot says it.
        "refs": {name: _ref(ref, place) for name, ref in metadata.get("refs", {}).items() if name != "main"} | main,
        "statistics": (len(metadata.get("statistics", [])), len(metadata.get("partition-statistics", []))),
    }


def _view(metadata: Mapping[str, Any]) -> dict[str, Any]:
    version = next(each for each in metadata["versions"] if each["version-id"] == metadata["current-version-id"])
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == version["schema-id"])
    return {
        "schema": [(each["name"], _type(each["type"]), each.get("doc")) for each in schema["fields"]],
        "sql": [" ".join(each["sql"].split()) for each in version["representations"]],
        "versions": len(metadata["versions"]),
        "properties": {key: value for key, value in metadata.get("properties", {}).items() if key not in ENGINES_OWN},
    }


def _counts(summary: Mapping[str, str]) -> dict[str, int]:
    # A count of zero may be written or left out.
    return {key: int(summary[key]) for key in COUNTS if int(summary.get(key, 0))}


def _ref(ref: Mapping[str, Any], place: Callable[[int | None], str | None]) -> tuple[Any, ...]:
    kept = sorted((key, value) for key, value in ref.items() if key not in ("snapshot-id", "type"))
    return (ref["type"], place(ref["snapshot-id"]), *kept)


def _names(kind: Mapping[str, Any], prefix: str = "") -> dict[int, str]:
    found: dict[int, str] = {}
    for each in kind["fields"]:
        found[each["id"]] = prefix + each["name"]
        if isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            found |= _names(each["type"], f"{prefix}{each['name']}.")
    return found


def _fields(kind: Mapping[str, Any]) -> list[Any]:
    return [
        {key: _type(value) if key == "type" else value for key, value in sorted(each.items())}
        for each in kind["fields"]
    ]


def _type(kind: Any) -> Any:
    match kind:
        case {"type": "struct"}:
            return {"struct": _fields(kind)}
        case {"type": "list" | "map"}:
            return {key: _type(value) for key, value in sorted(kind.items())}
        case str():
            return kind.replace(" ", "")
        case _:
            return kind
