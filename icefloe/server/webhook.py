"""Decides how events reach a webhook: each at least once, as they were written in the transactions of their changes.

An event stays in the database until the webhook has taken it. Several servers deliver side by side: who sets the time of the
next attempt delivers this one.
"""

import logging
import time
from dataclasses import dataclass, field

import httpx2 as httpx
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from icefloe.catalog import Database
from icefloe.commit import now_ms
from icefloe.server.calls import Call
from icefloe.server.events_codec import MEDIA_TYPE, SIGNATURE, TIMESTAMP, event_of, signature
from icefloe.server.tables import EVENTS

LOG = logging.getLogger("icefloe.server")

_BATCH = 100
_TIMEOUT_SECONDS = 10.0
_LEASE_MS = 30_000
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 3_600_000
_ATTEMPTS = 24
_NEVER = 2**62
"""The time of the next attempt of an event that is given up; it stays for people to look at."""


def record_event(call: Call, connection: Connection, location: str | None) -> None:
    """Write an event down, in the transaction of its change."""
    event = event_of(call, location)
    if event is None:
        return
    number, body = event
    row = {"id": number, "warehouse": call.warehouse.name, "body": body.decode("utf-8"), "attempts": 0}
    times = {"next_attempt_at_ms": now_ms(), "created_at_ms": now_ms()}
    connection.execute(sa.insert(EVENTS).values({**row, **times}))


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the events of a database go."""

    database: Database
    url: str
    secret: str | None = field(default=None, repr=False)

    def deliver(self) -> int:
        """Deliver what is due; how many the webhook took."""
        due = sa.select(EVENTS).where(EVENTS.c.next_attempt_at_ms <= now_ms()).order_by(EVENTS.c.created_at_ms)
        taken = 0
        with httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client:
            for row in self.database.read(due.limit(_BATCH)):
                if self._claimed(row):
                    taken += self._deliver(client, row)
        return taken

    def _claimed(self, row: sa.Row[tuple[object, ...]]) -> bool:
        """Whether this server delivers the event; if it ends meanwhile, another one does later."""
        statement = (
            sa.update(EVENTS)
            .where(EVENTS.c.id == row.id, EVENTS.c.next_attempt_at_ms == row.next_attempt_at_ms)
            .values(next_attempt_at_ms=now_ms() + _LEASE_MS)
        )
        return bool(self.database.write(lambda connection: connection.execute(statement).rowcount) == 1)

    def _deliver(self, client: httpx.Client, row: sa.Row[tuple[object, ...]]) -> bool:
        problem = self._sent(client, row.body.encode("utf-8"))
        if problem is None:
            gone = sa.delete(EVENTS).where(EVENTS.c.id == row.id)
            self.database.write(lambda connection: connection.execute(gone))
            return True
        attempts = row.attempts + 1
        wait = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 2 ** min(attempts - 1, 20))
        if attempts >= _ATTEMPTS:
            LOG.error("event %s is given up after %s attempts: %s", row.id, attempts, problem)
        later = {"attempts": attempts, "next_attempt_at_ms": _NEVER if attempts >= _ATTEMPTS else now_ms() + wait}
        statement = sa.update(EVENTS).where(EVENTS.c.id == row.id).values(later)
        self.database.write(lambda connection: connection.execute(statement))
        return False

    def _sent(self, client: httpx.Client, body: bytes) -> str | None:
        """Why the webhook did not take an event; None if it did."""
        timestamp = str(int(time.time()))
        headers = {"Content-Type": MEDIA_TYPE, TIMESTAMP: timestamp}
        if self.secret is not None:
            headers[SIGNATURE] = signature(self.secret, timestamp, body)
        try:
            answer = client.post(self.url, content=body, headers=headers)
        except httpx.HTTPError as error:
            return type(error).__name__
        return None if answer.is_success else f"status {answer.status_code}"
