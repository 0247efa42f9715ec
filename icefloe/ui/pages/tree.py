"""The metadata tree page: metadata file, manifest list, manifests, files; each level is read on demand."""

from typing import Any

import pyarrow as pa
from starlette.responses import Response

from icefloe import errors
from icefloe.ui.asking import Page, TablePage, pager
from icefloe.ui.partitions import counted_fields
from icefloe.ui.trees import ManifestEntries, entries_of, files_in, manifest_rows, manifests_of

_ROWS = 50
_LOGGED = 10
_MOST_ENTRIES = 100_000_000


def tree(page: Page) -> Response:
    """Show the tree of a snapshot, with the entries of the open manifest."""
    subject = TablePage.of(page, "tree")
    first, opened = page.number("from"), page.query("manifest")
    log = list(subject.metadata.metadata_log)
    context: dict[str, Any] = {
        "log": [(entry.timestamp_ms, entry.metadata_file) for entry in log[: -_LOGGED - 1 : -1]],
        "logged": len(log),
        "snapshot": subject.snapshot,
    }
    if subject.snapshot is None:
        return subject.render("tree.html", manifests=[], total=0, files=0, pager=None, opened=None, **context)
    job = subject.ask("tree", "Reading the manifest list", lambda _: manifests_of(subject.table, subject.at))
    open_job = _open(subject, opened) if opened else None
    if job.done.is_set() and job.error is None and open_job is not None and not open_job.done.is_set():
        return subject.render("waiting.html", job=open_job)

    def make(manifests: pa.Table) -> dict[str, Any]:
        return {
            "manifests": manifest_rows(manifests, first, _ROWS),
            "total": manifests.num_rows,
            "files": files_in(manifests),
            "pager": pager(first, _ROWS, manifests.num_rows, lambda start: subject.link("tree", **{"from": start})),
            "opened": None if open_job is None else _opened(subject, opened, first, open_job),
        }

    return subject.render_job("tree.html", job, make, first=first, **context)


def _open(subject: TablePage, path: str) -> Any:
    offset = subject.page.number("entry", most=_MOST_ENTRIES)
    counted = counted_fields(subject.metadata)
    snapshot = subject.snapshot
    assert snapshot is not None, "a table without snapshots has no manifests"

    def read(_: object) -> ManifestEntries:
        return entries_of(subject.table, snapshot, path, offset, _ROWS, counted)

    return subject.ask("entries", "Reading a manifest", read, path, offset)


def _opened(subject: TablePage, path: str, first: int, job: Any) -> dict[str, Any]:
    """Return the open manifest for the template."""
    if job.error is not None:
        raise job.error if isinstance(job.error, errors.IcefloeError) else errors.StateError(job.message)
    offset = subject.page.number("entry", most=_MOST_ENTRIES)
    entries: ManifestEntries = job.result
    return {
        "path": path,
        "rows": entries.rows,
        "total": entries.total,
        "pager": pager(
            offset,
            _ROWS,
            entries.total,
            lambda start: subject.link("tree", manifest=path, entry=start, **{"from": first}),
        ),
    }
