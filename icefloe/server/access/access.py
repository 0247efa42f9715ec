"""Decides how a client gets at the files of a table: with which properties, credentials or signatures, and which requests."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Identifier, show
from icefloe.errors import ForbiddenError, InvalidPropertyError, UnsupportedOperationError
from icefloe.metadata import TableMetadata
from icefloe.rest import RemoteSigning, Surplus
from icefloe.server.access.amazon import Identity, Issued
from icefloe.server.access.places import Place, Territory
from icefloe.server.access.policies_codec import LONGEST, session_policy
from icefloe.server.access.s3_requests_codec import Effect, S3Request, parse_request
from icefloe.server.access.settings_codec import DELEGATIONS, AccessSettings, Mode
from icefloe.server.access.staged_codec import PROPERTY, StagedTables
from icefloe.storage import SignedRequest, SignRequest, StorageCredential

_CREDENTIALS_KEPT = 10_000
_FOR_CLIENTS = ("s3.endpoint", "s3.path-style-access", "s3.force-virtual-addressing", "s3.region", "client.region")
"""Properties of the server's own storage that its clients need, too."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who wants to get at which table, and what the client understands."""

    identifier: Identifier
    metadata: TableMetadata
    principal: str
    may_write: bool
    delegations: frozenset[str] = frozenset()
    is_new: bool = False
    """Whether the table is being created, perhaps only staged."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the client finds the endpoints of the table, relative to the URI of the catalog."""

    credentials: str
    sign: str


def delegations(header: str | None) -> frozenset[str]:
    """What a client understands, by its header `X-Iceberg-Access-Delegation`."""
    return frozenset(part.strip().lower() for part in (header or "").split(",") if part.strip())


class WarehouseAccess:
    """Storage access for the tables of one warehouse; threads may share it."""

    def __init__(self, settings: AccessSettings, properties: Mapping[str, str], territory: Territory) -> None:
        """`properties` are those of the server's own storage."""
        self.settings = settings
        self._properties = properties
        self._endpoint = properties.get("s3.endpoint")
        region = properties.get("s3.region") or properties.get("client.region") or "us-east-1"
        self._territory = territory
        self._identity = Identity(settings, properties, region)
        self._staged_tables = StagedTables(self._identity.secret())
        self._client = {**_client_properties(properties, region), **settings.client}
        self._issued: BoundedCache[tuple[object, ...], tuple[float, Issued]] = BoundedCache(_CREDENTIALS_KEPT)

    def mode(self, asking: Asking) -> Mode:
        """The first mode of the operator that the client understands."""
        for mode in self.settings.modes:
            if mode is Mode.NONE or DELEGATIONS[mode] in asking.delegations:
                return mode
        return Mode.NONE

    def surplus(self, asking: Asking, endpoints: Endpoints) -> Surplus:
        """What an answer with the table says about access to its files."""
        match self.mode(asking):
            case Mode.NONE:
                return Surplus()
            case Mode.STATIC:
                return Surplus(config={**self._client, **self.settings.static})
            case Mode.VENDED:
                return self._vended_surplus(asking, endpoints)
            case Mode.SIGNED:
                signing = {
                    "s3.remote-signing-enabled": "true",
                    "s3.signer": "S3V4RestSigner",
                    "s3.signer.endpoint": endpoints.sign,
                    "signer.endpoint": endpoints.sign,
                }
                return Surplus(
                    config={**self._client, **signing}, signing=self._staged(asking) if asking.is_new else None
                )

    def _staged(self, asking: Asking) -> RemoteSigning:
        token = self._staged_tables.token(asking.identifier, asking.principal, self._places(asking))
        return RemoteSigning({PROPERTY: token})

    def _vended_surplus(self, asking: Asking, endpoints: Endpoints) -> Surplus:
        credentials = self.credentials(asking)
        if not credentials:
            return Surplus()
        refresh = {
            "client.refresh-credentials-enabled": "true",
            "client.refresh-credentials-endpoint": endpoints.credentials,
        }
        # Clients that know nothing of credentials by prefix find them among the properties.
        return Surplus(config={**self._client, **credentials[0].config, **refresh}, credentials=credentials)

    def credentials(self, asking: Asking) -> tuple[StorageCredential, ...]:
        """Credentials for the places of the table: one entry, which is all that some clients expect."""
        modes = [mode for mode in self.settings.modes if mode in (Mode.STATIC, Mode.VENDED)]
        places = self._places(asking) if modes else ()
        if not places:
            return ()
        if modes[0] is Mode.STATIC:
            return (StorageCredential(_common(places), self.settings.static),)
        issued = self._credentials_for(places, asking)
        config = {
            "s3.access-key-id": issued.access_key,
            "s3.secret-access-key": issued.secret_key,
            "s3.session-token": issued.token,
            "s3.session-token-expires-at-ms": str(int(issued.expires_at * 1000)),
        }
        return (StorageCredential(_common(places), config),)

    def sign(self, asking: Asking, request: SignRequest) -> SignedRequest:
        """The request with a signature of the server, if it is about the table's own files and the caller may do it."""
        parsed = self._parsed(request)
        if parsed.effect in (Effect.WRITE, Effect.DELETE) and not asking.may_write:
            raise ForbiddenError(f"files of table {show(asking.identifier)} may be read, but not changed")
        _permit(asking.identifier, self._places(asking), parsed)
        return self._identity.sign(request.method, parsed)

    def sign_staged(self, identifier: Identifier, principal: str, token: str, request: SignRequest) -> SignedRequest:
        """The same for a table that was staged, and is not there yet."""
        parsed = self._parsed(request)
        _permit(identifier, self._staged_tables.places(token, identifier, principal), parsed)
        return self._identity.sign(request.method, parsed)

    def _parsed(self, request: SignRequest) -> S3Request:
        if Mode.SIGNED not in self.settings.modes:
            raise UnsupportedOperationError("this warehouse does not sign requests to its store")
        return parse_request(request, self._endpoint)

    def _places(self, asking: Asking) -> tuple[Place, ...]:
        places = self._territory.places(asking.identifier, asking.metadata)
        return tuple(place for place in places if place.scheme == "s3")

    def _credentials_for(self, places: tuple[Place, ...], asking: Asking) -> Issued:
        """Credentials that were issued less than half of their lifetime ago, or new ones."""
        key = (places, asking.may_write, asking.principal)
        kept = self._issued.find(key)
        if kept is not None and time.time() >= kept[0]:
            self._issued.pop(key)
        return self._issued.load(key, lambda: self._issue(places, asking))[1]

    def _issue(self, places: tuple[Place, ...], asking: Asking) -> tuple[float, Issued]:
        partition = (self.settings.role_arn or "arn:aws:").split(":")[1]
        policy = session_policy(
            places, may_write=asking.may_write, kms_keys=self.settings.kms_keys, partition=partition or "aws"
        )
        if len(policy) > LONGEST:
            raise InvalidPropertyError(
                f"table {show(asking.identifier)} has {len(places)} places, and their policy {len(policy)} characters;"
                f" vended credentials can have {LONGEST}"
            )
        issued = self._identity.assume(policy, asking.principal)
        now = time.time()
        return now + max(0.0, issued.expires_at - now) / 2, issued


def _permit(identifier: Identifier, places: Sequence[Place], request: S3Request) -> None:
    there = [place for place in places if place.bucket == request.bucket]
    for key in request.keys:
        if not any(place.has(key) for place in there):
            raise ForbiddenError(f"the request is not about files of table {show(identifier)}")


def _client_properties(properties: Mapping[str, str], region: str) -> dict[str, str]:
    shown = {key: properties[key] for key in _FOR_CLIENTS if properties.get(key)}
    shown |= {"s3.region": region, "client.region": region}
    if "s3.endpoint" in shown and "s3.force-virtual-addressing" not in shown:
        # Java Iceberg puts the bucket into the host otherwise, where few other stores look for it.
        shown.setdefault("s3.path-style-access", "true")
    return shown


def _common(places: Sequence[Place]) -> str:
    """The longest text that all places begin with."""
    first, last = min(map(str, places)), max(map(str, places))
    length = next(
        (index for index, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    return first[:length]
