"""Decides the headers of requests that Amazon's services take: signatures by SigV4 over another kind of authentication."""

import datetime as dt
import hashlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ProfileNotFound
from botocore.session import Session as BotocoreSession

from icefloe.catalog.rest.auth.protocols import AuthSession, OutgoingRequest, Session
from icefloe.errors import InvalidPropertyError, NotAuthorizedError
from icefloe.rest.headers_codec import AUTHORIZATION

_CONTENT_HASH = "x-amz-content-sha256"
_MOVED = "Original-Authorization"
_UNSIGNED = frozenset(("connection", "content-length", "accept-encoding", "host"))
"""What the transport, or a proxy on the way, may change; the host is signed as the URL has it."""
_KEYS = ("access-key-id", "secret-access-key", "session-token")


@dataclass(frozen=True, slots=True)
class SigningSettings:
    """Whose signature, and for which service."""

    service: str
    region: str | None
    profile: str | None = None
    keys: ReadOnlyCredentials | None = field(default=None, repr=False)
    """None leaves it to Amazon's chain of places where credentials are looked for."""

    @staticmethod
    def of(properties: Mapping[str, str]) -> "SigningSettings":
        """What the properties say."""
        return SigningSettings(
            properties.get("rest.signing-name") or "execute-api",
            properties.get("rest.signing-region") or properties.get("client.region"),
            properties.get("client.profile-name"),
            _keys(properties, "rest.") or _keys(properties, "client."),
        )


def _keys(properties: Mapping[str, str], prefix: str) -> ReadOnlyCredentials | None:
    access, secret, token = (properties.get(prefix + key) or None for key in _KEYS)
    if access is None and secret is None:
        return None
    if access is None or secret is None:
        raise InvalidPropertyError(f"{prefix}access-key-id and {prefix}secret-access-key must both be set, or neither")
    return ReadOnlyCredentials(access, secret, token)


class SigV4Session(Session):
    """Signs each request, after another session has had its say: its `Authorization` moves to `Original-Authorization`."""

    __slots__ = ("_chain", "_delegate", "_properties", "_settings")

    def __init__(self, delegate: AuthSession, properties: Mapping[str, str], chain: "_Chain | None" = None) -> None:
        self._delegate = delegate
        self._properties = dict(properties)
        self._settings = SigningSettings.of(properties)
        self._chain = chain or _Chain(self._settings.profile)

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """What is added to the request, and what replaces headers of it, under the names that they have there."""
        keys, region = self._signer()
        before = {**request.headers, **self._delegate.headers(request)}
        moved = {_MOVED if name.lower() == AUTHORIZATION.lower() else name: value for name, value in before.items()}
        signed = signed_headers(
            OutgoingRequest(request.method, request.url, moved, request.body), keys, self._settings.service, region
        )
        own = next((name for name in request.headers if name.lower() == AUTHORIZATION.lower()), AUTHORIZATION)
        added = {own if name == AUTHORIZATION else name: value for name, value in signed.items()}
        return {name: value for name, value in added.items() if request.headers.get(name) != value}

    def for_table(self, config: Mapping[str, str]) -> "SigV4Session":
        """The session of a table: with the delegate's for it, and with keys and service that its configuration names."""
        delegate = self._delegate.for_table(config) if isinstance(self._delegate, Session) else self._delegate
        brought = {key: value for key, value in config.items() if key in _OF_TABLES}
        if delegate is self._delegate and not brought:
            return self
        own = {
            key: value for key, value in self._properties.items() if not (key in _OF_KEYS and brought.keys() & _OF_KEYS)
        }
        return SigV4Session(delegate, {**own, **brought}, self._chain)

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Whether the delegate has something else to show; Amazon's chain renews its keys by itself."""
        return _MOVED in refused and self._delegate.renew({AUTHORIZATION: refused[_MOVED]})

    def close(self) -> None:
        """Close the delegate."""
        self._delegate.close()

    def _signer(self) -> tuple[ReadOnlyCredentials, str]:
        keys, region = self._settings.keys, self._settings.region
        try:
            if keys is None:
                keys = self._chain.keys()
            region = region or os.environ.get("AWS_REGION") or self._chain.region()
        except ProfileNotFound as error:
            raise InvalidPropertyError(f"property 'client.profile-name': {error}") from None
        except BotoCoreError as error:
            # Texts of these errors quote what programs and servers said, which may hold keys.
            raise NotAuthorizedError(f"the AWS credential chain failed: {type(error).__name__}") from None
        if not region:
            raise InvalidPropertyError("SigV4 needs a region; set rest.signing-region or AWS_REGION")
        return keys, region


class _Chain:
    """The places where Amazon's tools look for credentials and a region, looked through once."""

    def __init__(self, profile: str | None) -> None:
        self._lock = threading.Lock()
        self._session = BotocoreSession(profile=profile)

    def keys(self) -> ReadOnlyCredentials:
        """The keys that are good now; those that expire are renewed by botocore."""
        with self._lock:
            credentials = self._session.get_credentials()
        if credentials is None:
            raise NotAuthorizedError(
                "the AWS credential chain has no credentials; set rest.access-key-id and rest.secret-access-key, or AWS_PROFILE,"
                " AWS_ACCESS_KEY_ID or similar"
            )
        return credentials.get_frozen_credentials()

    def region(self) -> str | None:
        """The region, if one is set."""
        with self._lock:
            region: str | None = self._session.get_config_variable("region")
        return region


_OF_KEYS = frozenset(f"rest.{key}" for key in _KEYS)
_OF_TABLES = _OF_KEYS | {"rest.signing-name", "rest.signing-region"}


class _Signer(SigV4Auth):  # type: ignore[misc]  # botocore ships no types
    """Botocore's signer without its log, which quotes tokens."""

    def sign(self, request: AWSRequest, moment: dt.datetime) -> None:
        """Sign the request as of that moment."""
        request.context["timestamp"] = moment.strftime(SIGV4_TIMESTAMP)
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))


def signed_headers(
    request: OutgoingRequest,
    keys: ReadOnlyCredentials,
    service: str,
    region: str,
    moment: dt.datetime | None = None,
) -> dict[str, str]:
    """The headers of a request with the signature of SigV4 among them; all that no one on the way changes are signed."""
    unsigned = {name: value for name, value in request.headers.items() if name.lower() in _UNSIGNED}
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _UNSIGNED}
    headers[_CONTENT_HASH] = hashlib.sha256(request.body).hexdigest()
    url = urlsplit(request.url)
    # The canonical form is made from what the parameters mean, not from how the URL spells them.
    pairs = [pair.partition("=") for pair in url.query.split("&") if pair]
    parameters = [(unquote(name), unquote(value)) for name, _, value in pairs]
    signable = AWSRequest(request.method, urlunsplit((*url[:3], "", "")), headers, data=request.body, params=parameters)
    _Signer(keys, service, region).sign(signable, moment or dt.datetime.now(dt.UTC))
    return {**unsigned, **dict(signable.headers.items())}
