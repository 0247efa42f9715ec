"""Which snapshot a scan reads, and under which schema."""

import datetime as dt

from icefloe.errors import InvalidInputError
from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefloe.schema import Schema

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def choose_snapshot(
    metadata: TableMetadata, snapshot_id: int | None, ref: str | None, as_of: int | dt.datetime | None
) -> Snapshot | None:
    """The snapshot that is asked for, by at most one of id, ref and time; the current one otherwise.

    None is an empty table, or an empty `main`.
    """
    given = {"snapshot id": snapshot_id, "ref": ref, "time": as_of}
    named = [what for what, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidInputError(f"a scan reads one snapshot, but a {' and a '.join(named)} are given; give one of them")
    if snapshot_id is not None:
        return metadata.snapshot(snapshot_id)
    if as_of is not None:
        return metadata.snapshot_as_of(milliseconds(as_of))
    return metadata.snapshot_of_ref(ref)


def schema_of_scan(metadata: TableMetadata, snapshot: Snapshot | None, ref: str | None, is_past: bool) -> Schema:
    """The schema of the rows: the table's own, but in time travel (by id, time or tag) that of the snapshot."""
    if ref is not None and ref != MAIN_BRANCH and ref in metadata.refs:
        is_past = metadata.refs[ref].is_tag
    if not is_past or snapshot is None or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema(snapshot.schema_id)


def milliseconds(as_of: int | dt.datetime) -> int:
    """A moment as users give it, in milliseconds since 1970."""
    if isinstance(as_of, dt.datetime):
        if as_of.tzinfo is None:
            raise InvalidInputError(f"the time {as_of.isoformat()} has no zone; give one, such as UTC")
        return (as_of - _EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise InvalidInputError(f"{as_of!r} is no time; give milliseconds since 1970, or a datetime")
    return as_of
