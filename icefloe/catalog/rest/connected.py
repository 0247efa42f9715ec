"""What a catalog has of its server while it is connected."""

import os
from functools import partial

from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.report_queue import ReportQueue
from icefloe.catalog.rest.namespaces import RestNamespaces
from icefloe.catalog.rest.outcomes import asked
from icefloe.catalog.rest.session import RestSession
from icefloe.catalog.rest.tables import RestTables
from icefloe.catalog.table_files import storage_properties
from icefloe.encryption import Keyring
from icefloe.rest import Context, paths
from icefloe.storage import Storage


class Connected:
    """The connection of one process, and what is asked over it."""

    def __init__(self, session: RestSession, keyring: Keyring | None = None) -> None:
        self.process = os.getpid()
        self.session = session
        self.tables = RestTables(session)
        self.namespaces = RestNamespaces(session)
        # Not a method of this: whoever lets a catalog go must not wait for the garbage collector.
        self.reports: ReportQueue[tuple[Identifier, bytes]] = ReportQueue(partial(_report, session))
        self.storage = Storage(storage_properties(session.properties), keyring=keyring)

    def close(self) -> None:
        """Close all connections, and send what waits before."""
        self.reports.close()
        self.session.close()


def _report(session: RestSession, report: tuple[Identifier, bytes]) -> None:
    identifier, body = report
    *namespace, name = identifier
    asked(
        session.request(
            paths.REPORT_METRICS,
            Context.TABLE,
            f"a report of table {show(identifier)}",
            tuple(namespace),
            body=body,
            names={"table": name},
        )
    )
