"""Decides what happens when a request with an Idempotency-Key comes again: it is answered from the record, never done twice.

The record is written in the transaction of the change itself, so that there is one if, and only if, the change happened. Two
requests of one key at the same time both begin; the database lets one of them end.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from icefloe.catalog import Database, RefusedAlongsideError
from icefloe.commit import now_ms
from icefloe.errors import CommitStateUnknown, InvalidInputError, LocationNotFoundError, StorageError
from icefloe.rest.errors_codec import Problem, UnprocessableError, problem_of
from icefloe.rest.tables_codec import decode_own_name
from icefloe.server import table_operations, view_operations
from icefloe.server.calls import NOTHING, Answer, Call, Replay
from icefloe.server.tables import ANSWERS

_KEY = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DONE = 0
_FINAL = (400, 404, 406, 409, 422)
"""Refusals that are told again; others may end differently the next time."""


class ToldBeforeError(Exception):
    """The request was refused before, in these words."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Idempotency:
    """The answers of one warehouse that are remembered."""

    database: Database
    lifetime: timedelta

    def run(self, key: str, call: Call, work: Callable[[], Answer]) -> Answer:
        """Do the work, unless a request of the same key was done before: then its answer."""
        if _KEY.fullmatch(key) is None:
            raise InvalidInputError(f"the Idempotency-Key {key!r:.60} is not a UUID")
        key, fingerprint = key.lower(), _fingerprint(call)
        if (answer := self._told(key, fingerprint, call)) is not None:
            return answer
        call.notes["answer"] = lambda connection, at: self._record(connection, key, fingerprint, call, at)
        try:
            return work()
        except CommitStateUnknown:
            raise
        except Exception as error:
            # Another request of this key may have been faster, and be the reason of the error.
            try:
                answer = self._told(key, fingerprint, call)
            except StorageError:
                raise error from None
            if answer is not None:
                return answer
            self._record_refusal(key, fingerprint, error)
            raise

    def forget(self) -> None:
        """Delete what is older than the lifetime."""
        oldest = now_ms() - int(self.lifetime.total_seconds() * 1000)
        self.database.write(lambda c: c.execute(sa.delete(ANSWERS).where(ANSWERS.c.created_at_ms < oldest)))

    def _told(self, key: str, fingerprint: str, call: Call) -> Answer | None:
        rows = self.database.read(sa.select(ANSWERS).where(ANSWERS.c.idempotency_key == key))
        if not rows:
            return None
        row = rows[0]
        if row.fingerprint != fingerprint:
            raise UnprocessableError("this Idempotency-Key was used for another request; each needs its own")
        if row.status != _DONE:
            raise ToldBeforeError(Problem(row.status, row.location or "", row.body or ""))
        return replayed(call, Replay(row.replay), row.location, row.body)

    def _record(self, connection: Connection, key: str, fingerprint: str, call: Call, location: str | None) -> None:
        replay = call.operation.replay
        assert replay is not None, "only operations that can be replayed get here"
        body = None if call.replay_body is None else call.replay_body.decode("utf-8")
        _insert(connection, key, fingerprint, replay.value, _DONE, location or call.replay_location, body)

    def _record_refusal(self, key: str, fingerprint: str, error: BaseException) -> None:
        problem = problem_of(error)
        if problem.status not in _FINAL:
            return
        told = ("refused", problem.status, problem.error_type, problem.message)
        try:
            self.database.write(lambda c: _insert(c, key, fingerprint, *told))
        except (RefusedAlongsideError, StorageError, CommitStateUnknown):
            # The refusal stands; if the request comes again, it is looked at again.
            return


def _insert(
    connection: Connection, key: str, fingerprint: str, replay: str, status: int, location: str | None, body: str | None
) -> None:
    try:
        connection.execute(
            sa.insert(ANSWERS).values(
                idempotency_key=key,
                fingerprint=fingerprint,
                replay=replay,
                status=status,
                location=location,
                body=body,
                created_at_ms=now_ms(),
            )
        )
    except IntegrityError:
        raise RefusedAlongsideError from None


def replayed(call: Call, replay: Replay, location: str | None, body: str | None) -> Answer:
    """The answer to a change that was made before."""
    if not call.name and replay in (Replay.TABLE, Replay.VIEW):
        call.name = decode_own_name(call.body)
    match replay:
        case Replay.EMPTY:
            return NOTHING
        case Replay.BODY:
            return Answer((body or "").encode())
        case Replay.TABLE:
            return table_operations.loaded_at(call, str(location))
        case Replay.COMMITTED:
            return _committed(call, str(location))
        case Replay.VIEW:
            return view_operations.loaded_at(call, str(location))


def _committed(call: Call, location: str) -> Answer:
    """The answer to a commit; if its metadata file has gone with time, the table as it is."""
    try:
        return table_operations.committed_at(call, location)
    except LocationNotFoundError as error:
        newest = call.served.table_location(call.identifier)
        if newest in (None, location):
            raise CommitStateUnknown(f"the commit happened, and the table is gone since: {error}") from error
        return table_operations.committed_at(call, str(newest))


def _fingerprint(call: Call) -> str:
    """What makes two requests the same: who asks for what."""
    digest = hashlib.sha256()
    names = (call.principal.name, str(call.operation.endpoint), call.warehouse.name, *call.namespace, call.name)
    for part in (*names, repr(sorted(call.query.items()))):
        digest.update(f"{len(part)}:{part}".encode())
    digest.update(call.body)
    return digest.hexdigest()
