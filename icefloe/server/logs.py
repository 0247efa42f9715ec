"""Decides what the server's log says: a line of JSON for each event, with the id of its request, and no secret."""

import json
import logging
import random
import re
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers

from icefloe.errors import without_credentials
from icefloe.server.auth import CURRENT_REQUEST, shown_headers
from icefloe.server.auth.protocols import Principal

ACCESS = logging.getLogger("icefloe.server.access")
"""A line for each request."""

_ID = re.compile(r"[\w.:-]{1,64}")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": without_credentials(record.getMessage()),
        }
        facts = CURRENT_REQUEST.get()
        if facts is not None:
            line["request"] = facts.id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = without_credentials(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def log_as_json(level: str) -> None:
    """Let everything that this process logs be lines of JSON on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # They tell of steps that are none.
    logging.getLogger("alembic").setLevel(logging.WARNING)


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """The id that the client gave to a request or to its trace, or a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _ID.fullmatch(told := given.decode("ascii", "replace")):
        return told
    parent = headers.get(b"traceparent")
    trace = None if parent is None else _TRACE.fullmatch(parent.decode("ascii", "replace"))
    return new_id() if trace is None else trace[1]


def new_id() -> str:
    """An id for a request: no secret, only different from others."""
    return f"{random.getrandbits(128):032x}"


def log_request(scope: Mapping[str, Any], status: int, seconds: float, slow_seconds: float) -> None:
    """One line for a request; the parts of a slow one are in it."""
    is_slow = seconds >= slow_seconds
    level = logging.WARNING if status >= 500 or is_slow else logging.INFO
    if not ACCESS.isEnabledFor(level):
        return
    state, principal = scope["state"], scope["state"].get("principal")
    fields = {
        "request": state["request_id"],
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(seconds * 1000, 1),
        "principal": principal.name if isinstance(principal, Principal) else None,
        "client": scope["client"][0] if scope.get("client") else None,
    }
    if "problem" in state:
        fields["problem"] = without_credentials(state["problem"])
    if ACCESS.isEnabledFor(logging.DEBUG):
        fields["headers"] = shown_headers(Headers(raw=scope["headers"]))
    if is_slow:
        fields["parts"] = state["watch"].milliseconds()
    message = "%s %s %s in %.1f ms" + (" (slow)" if is_slow else "")
    ACCESS.log(level, message, scope["method"], scope["path"], status, seconds * 1000, extra={"fields": fields})
