"""Decides what is recorded of each decision on access: who, what, on which target, how it was answered, in which request.

A record is one JSON object in one line. It is made of named fields alone, none of which can hold a secret: never of headers,
bodies or query strings.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from icefloe.errors import ForbiddenError, NoSuchObjectError
from icefloe.server.auth.protocols import Authorizer, Principal, Privilege, Target

AUDIT_LOG = logging.getLogger("icefloe.audit")
"""The logger of records: allowed ones at INFO, others at WARNING."""

_PATH_LENGTH = 1000


class Outcome(StrEnum):
    """How a decision ended."""

    ALLOWED = "allowed"
    DENIED = "denied"
    """401 or 403."""
    HIDDEN = "hidden"
    """Denied, and answered as if the target did not exist."""
    LIMITED = "limited"
    """429: too many requests or attempts."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a record tells of the request that it belongs to."""

    id: str
    method: str
    path: str
    address: str


CURRENT_REQUEST: ContextVar[RequestFacts | None] = ContextVar("icefloe_request", default=None)
"""The request that is being answered; threads that work for it see it, too."""

Record = Mapping[str, object]


def log_record(record: Record, outcome: Outcome) -> None:
    """Write a record to the audit log."""
    level = logging.INFO if outcome is Outcome.ALLOWED else logging.WARNING
    if AUDIT_LOG.isEnabledFor(level):
        AUDIT_LOG.log(level, "%s", json.dumps(record), extra={"audit": record})


def write_to_file(path: Path) -> logging.Handler:
    """Let records go to a file of their own, one a line, and nowhere else."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(message)s"))
    AUDIT_LOG.addHandler(handler)
    AUDIT_LOG.setLevel(logging.INFO)
    AUDIT_LOG.propagate = False
    return handler


class Audit:
    """Makes records and hands them on."""

    def __init__(self, write: Callable[[Record, Outcome], None] = log_record) -> None:
        self._write = write

    def decision(self, principal: Principal, privilege: Privilege, target: Target, outcome: Outcome) -> None:
        """Whether a principal may do something with a target."""
        self._record("access", outcome, principal, {"privilege": str(privilege), "target": _shown(target)})

    def listing(self, principal: Principal, target: Target, shown: int, hidden: int) -> None:
        """How many of the objects in a target a principal was shown."""
        details = {"privilege": str(Privilege.LIST), "target": _shown(target), "shown": shown, "hidden": hidden}
        self._record("listing", Outcome.ALLOWED, principal, details)

    def authentication(self, outcome: Outcome, reason: str, principal: Principal | None = None) -> None:
        """Why a request was not let in, or was held back."""
        self._record("authentication", outcome, principal, {"reason": reason})

    def token(self, outcome: Outcome, client: str, reason: str, principal: Principal | None = None) -> None:
        """Whether somebody who says to be `client` got a token."""
        self._record("token", outcome, principal, {"client": client[:200], "reason": reason})

    def _record(self, event: str, outcome: Outcome, principal: Principal | None, details: Mapping[str, object]) -> None:
        facts = CURRENT_REQUEST.get()
        record: dict[str, object] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "outcome": str(outcome),
            "principal": None if principal is None else principal.name,
            "credential": None if principal is None else principal.credential,
            **details,
        }
        if facts is not None:
            path = facts.path[:_PATH_LENGTH]
            record |= {"request": facts.id, "method": facts.method, "path": path, "address": facts.address}
        self._write(record, outcome)


def _shown(target: Target) -> dict[str, object]:
    shown: dict[str, object] = {"kind": str(target.kind)}
    if target.warehouse:
        shown["warehouse"] = target.warehouse
    if target.namespace:
        shown["namespace"] = list(target.namespace)
    if target.name is not None:
        shown["name"] = target.name
    return shown


class AuditedAuthorizer:
    """An authorizer whose decisions are recorded."""

    def __init__(self, inner: Authorizer, audit: Audit) -> None:
        self._inner = inner
        self._audit = audit

    def check(self, principal: Principal, privilege: Privilege, target: Target) -> None:
        """The decision of the inner one, recorded."""
        try:
            self._inner.check(principal, privilege, target)
        except ForbiddenError:
            self._audit.decision(principal, privilege, target, Outcome.DENIED)
            raise
        except NoSuchObjectError:
            self._audit.decision(principal, privilege, target, Outcome.HIDDEN)
            raise
        self._audit.decision(principal, privilege, target, Outcome.ALLOWED)

    def allows(self, principal: Principal, privilege: Privilege, target: Target) -> bool:
        """Handed on: nobody tried anything."""
        return self._inner.allows(principal, privilege, target)

    def visible(self, principal: Principal, targets: Sequence[Target]) -> Sequence[Target]:
        """What the inner one shows; recorded by how much it is."""
        shown = self._inner.visible(principal, targets)
        if targets:
            place = targets[0].parent or Target()
            self._audit.listing(principal, place, len(shown), len(targets) - len(shown))
        return shown

    def renamed(self, source: Target, destination: Target) -> None:
        """Handed on."""
        self._inner.renamed(source, destination)

    def dropped(self, target: Target) -> None:
        """Handed on."""
        self._inner.dropped(target)
