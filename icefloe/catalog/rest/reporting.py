"""Decides which reports of scans and commits go to the server."""

from typing import TYPE_CHECKING, Any

from icefloe.catalog.identifiers import Identifier, show
from icefloe.commit import CommitReport
from icefloe.planning import Reporter, ScanReport
from icefloe.rest import encode_commit_report, encode_scan_report

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog


class RestReporter:
    """Hands each report of a table to the reporter of its catalog, and sends it to the server."""

    def __init__(self, catalog: "RestCatalog", identifier: Identifier, inner: Reporter) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._inner = inner

    def report(self, report: Any) -> None:
        """Take a report."""
        self._inner.report(report)
        body = None
        match report:
            case ScanReport():
                body = encode_scan_report(report, show(self._identifier))
            case CommitReport():
                body = encode_commit_report(report)
        if body is not None:
            self._catalog._send_report(self._identifier, body)
