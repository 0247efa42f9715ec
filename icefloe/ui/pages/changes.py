"""The page that compares two snapshots: columns, files and rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import Response

from icefloe import errors, metadata as md
from icefloe.catalog import choose_version
from icefloe.planning import choose_snapshot
from icefloe.progress import Listener, Progress
from icefloe.table import ColumnChange
from icefloe.ui.asking import Page, TablePage
from icefloe.ui.reading import FirstRows, first_rows

_ROWS = 200
_FILES = 200
_CHANGE = "_change_type"
BEGINNING = "beginning"


@dataclass(frozen=True)
class Difference:
    """The difference between two snapshots, as far as it is shown."""

    columns: Sequence[ColumnChange]
    added: "Side"
    removed: "Side"
    rows: FirstRows | None
    why_no_rows: str | None

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return 0 if self.rows is None else self.rows.nbytes


@dataclass(frozen=True)
class Side:
    """Files that only one of the two snapshots has: totals and the first files."""

    files: int
    rows: int
    bytes: int
    first: Sequence[dict[str, Any]]

    @staticmethod
    def of(files: pa.Table) -> "Side":
        """Summarize a table of files."""
        data = files.filter(pc.equal(files.column("content"), 0))
        return Side(
            files.num_rows,
            int(pc.sum(data.column("record_count")).as_py() or 0),
            int(pc.sum(files.column("file_size_in_bytes")).as_py() or 0),
            files.slice(0, _FILES).to_pylist(),
        )


def changes(page: Page) -> Response:
    """Compare two snapshots; by default the current one with its parent."""
    subject = TablePage.of(page, "changes")
    metadata = subject.metadata
    after = _chosen(metadata, page.query("to") or md.MAIN_BRANCH)
    before = _chosen(metadata, page.query("from") or _parent(metadata, after))
    where = page.query("where")
    shared: dict[str, Any] = {
        "before": before,
        "after": after,
        "from_text": page.query("from") or _parent(metadata, after),
        "to_text": page.query("to") or md.MAIN_BRANCH,
        "where": where,
        "choices": _choices(metadata),
    }

    def work(listener: Listener) -> Difference:
        return _difference(subject, before, after, where, listener)

    key = tuple(None if each is None else each.snapshot_id for each in (before, after))
    job = subject.ask("changes", "Comparing snapshots", work, key, where)

    def make(result: Difference) -> dict[str, Any]:
        files = [("added", row) for row in result.added.first] + [("removed", row) for row in result.removed.first]
        return {"result": result, "files": files, "most_files": _FILES, "change": _CHANGE}

    return subject.render_job("changes.html", job, make, **shared)


def _difference(
    subject: TablePage, before: md.Snapshot | None, after: md.Snapshot | None, where: str, listener: Listener
) -> Difference:
    ids = [None if each is None else each.snapshot_id for each in (before, after)]
    diff = subject.table.diff(*ids)
    listener(Progress("files added", 0, 3))
    added = Side.of(diff.added_files())
    listener(Progress("files removed", 1, 3))
    removed = Side.of(diff.removed_files())
    listener(Progress("rows", 2, 3))
    rows, why = None, None
    try:
        subject.page.site.check_rows()
        rows = first_rows(diff.rows(where or None), _ROWS)
    except errors.InvalidInputError:
        raise
    except errors.IcefloeError as error:
        why = str(error)
    return Difference(diff.columns, added, removed, rows, why)


def _chosen(metadata: md.TableMetadata, text: str) -> md.Snapshot | None:
    if text == BEGINNING:
        return None
    if text == md.MAIN_BRANCH and metadata.current_snapshot_id is None:
        return None
    at = choose_version(metadata, text)
    return choose_snapshot(metadata, at.get("snapshot_id"), at.get("ref"), at.get("as_of"))


def _parent(metadata: md.TableMetadata, snapshot: md.Snapshot | None) -> str:
    parent = None if snapshot is None else snapshot.parent_snapshot_id
    return str(parent) if parent in metadata.snapshots_by_id else BEGINNING


def _choices(metadata: md.TableMetadata) -> list[tuple[str, str]]:
    """Return refs and the latest snapshots as suggestions."""
    from icefloe.shown import minute

    named = [(name, "tag" if ref.is_tag else "branch") for name, ref in metadata.refs.items()]
    newest = sorted(metadata.snapshots, key=lambda each: each.timestamp_ms, reverse=True)[:50]
    return [
        *named,
        *((str(each.snapshot_id), f"{minute(each.timestamp_ms)} {each.operation or ''}") for each in newest),
        (BEGINNING, "before the first commit"),
    ]
