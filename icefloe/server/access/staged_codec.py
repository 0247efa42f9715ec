"""Decides how a server recognizes the places of a table that it only staged, of which its catalog knows nothing yet.

The client passes back what came with the table, unchanged, in each request to sign; it is bound to the table's name and to who
asked for it, and it counts only as long as there is no such table.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Sequence

import msgspec

from icefloe.catalog import Identifier, show
from icefloe.errors import ForbiddenError
from icefloe.server.access.places import Place

PROPERTY = "icefloe.staged-table"
"""The property of `remote-signing-config` that holds it."""

_LIFETIME_SECONDS = 86_400


class _StagedWire(msgspec.Struct, array_like=True):
    identifier: list[str]
    principal: str
    places: list[tuple[str, str]]
    expires_at: float


class StagedTables:
    """Writes and reads what stands for the places of staged tables; servers with the same secret understand each other."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(b"icefloe staged tables\0" + secret).digest()

    def token(self, identifier: Identifier, principal: str, places: Sequence[Place]) -> str:
        """A text that stands for the places."""
        pairs = [(place.bucket, place.prefix) for place in places]
        body = msgspec.json.encode(_StagedWire(list(identifier), principal, pairs, time.time() + _LIFETIME_SECONDS))
        return base64.urlsafe_b64encode(self._seal(body) + body).decode()

    def places(self, token: str, identifier: Identifier, principal: str) -> tuple[Place, ...]:
        """The places that a token of this table and principal stands for."""
        try:
            sealed = base64.urlsafe_b64decode(token.encode("ascii"))
            seal, body = sealed[:32], sealed[32:]
            is_ours = hmac.compare_digest(seal, self._seal(body))
            wire = msgspec.json.decode(body, type=_StagedWire) if is_ours else None
        except (UnicodeError, binascii.Error, msgspec.MsgspecError):
            wire = None
        is_about = wire is not None and (tuple(wire.identifier), wire.principal) == (identifier, principal)
        if wire is None or not is_about or time.time() >= wire.expires_at:
            raise ForbiddenError(
                f"table {show(identifier)} was not staged by this server for the caller, or too long ago"
            )
        return tuple(Place(bucket, prefix) for bucket, prefix in wire.places)

    def _seal(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")
