"""How far a stream has read a table, and the text of that in Spark's checkpoints: Java's, with fields that Java ignores."""

import json
from dataclasses import dataclass

from icefloe.errors import InvalidInputError
from icefloe.metadata import TableMetadata

NOTHING = -1
"""In place of a snapshot id: none."""

_VERSION = 1
_OLD_FORM = "snapshot-id"
"""The only key of offsets that earlier releases wrote: the snapshot, which is read as a whole."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Everything up to a file of a snapshot is read.

    A stream may begin with all rows of a snapshot, a full load, and goes on with what later snapshots add.
    """

    snapshot_id: int
    """NOTHING where a stream began while the table had no snapshot."""
    position: int
    """How many data files are read: of those that the snapshot added, or in a full load of all that it holds."""
    is_full_load: bool = False
    is_complete: bool = False
    """Whether nothing of the snapshot is left, so that the stream goes on even if it has expired."""
    started_after: int | None = None
    """The snapshot after which the stream began; NOTHING is before the first one of the table. None: not known."""
    table_uuid: str | None = None

    def to_text(self) -> str:
        """The text; equal offsets have equal texts, by which Spark compares them."""
        document: dict[str, object] = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            # Java's offset of a table without snapshots.
            "position": NOTHING if self.snapshot_id == NOTHING else self.position,
            "scan_all_files": self.is_full_load,
            "complete": self.is_complete,
        }
        if self.started_after is not None:
            document["started_after"] = self.started_after
        if self.table_uuid is not None:
            document["table_uuid"] = self.table_uuid
        return json.dumps(document, separators=(",", ":"))

    def check_table(self, metadata: TableMetadata, name: str) -> None:
        """Fail if the offset is of another table that had the name."""
        if self.table_uuid is not None and self.table_uuid != metadata.table_uuid:
            raise InvalidInputError(
                f"the checkpoint is of a table with UUID {self.table_uuid}, and {name} is another one now,"
                f" {metadata.table_uuid}; start the query with a new checkpoint"
            )


def offset_from_text(text: str) -> Offset | None:
    """The offset that a text says, of ours, of Java's, or of an earlier release; None if nothing was read yet."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise TypeError("it is not an object")
        if _OLD_FORM in document:
            snapshot_id = _number(document, _OLD_FORM)
            return None if snapshot_id == NOTHING else Offset(snapshot_id, 0, is_complete=True)
        version, snapshot_id = _number(document, "version"), _number(document, "snapshot_id")
        if version != _VERSION:
            raise ValueError(f"version {version} is not known")
        if snapshot_id == NOTHING and document.get("complete") is not True:
            return None
        return Offset(
            snapshot_id,
            max(_number(document, "position"), 0),
            document.get("scan_all_files") is True,
            document.get("complete") is True,
            _number(document, "started_after") if "started_after" in document else None,
            document["table_uuid"] if isinstance(document.get("table_uuid"), str) else None,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"the offset {text!r:.200} of the checkpoint cannot be read: {error}") from error


def _number(document: dict[str, object], key: str) -> int:
    value = document[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{key} is {value!r}, not a whole number")
    return value
