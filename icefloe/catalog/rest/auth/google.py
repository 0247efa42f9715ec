"""Decides the headers of requests that Google's services take: tokens of a service account, a user or the machine itself."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import google.auth
import google.auth.credentials
import google.auth.exceptions
import msgspec
from google.auth import identity_pool
from google.oauth2 import credentials as oauth2_credentials, service_account

from icefloe.catalog.rest.auth.protocols import Answer, OutgoingRequest, Send, Session
from icefloe.errors import IcefloeError, InvalidPropertyError, NotAuthorizedError, ServiceUnavailableError
from icefloe.rest.headers_codec import AUTHORIZATION

_PATH = "gcp.auth.credentials-path"
_DOCUMENT = "gcp.auth.credentials-json"
_SCOPES = "gcp.auth.scopes"
_ALL_OF_CLOUD = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class _GoogleAnswer:
    """An answer under the names that google-auth expects."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class GoogleSession(Session):
    """A token of Google's, which google-auth renews a few minutes before its end."""

    __slots__ = ("_credentials", "_lock", "_properties", "_send")

    def __init__(self, properties: Mapping[str, str], send: Send) -> None:
        if properties.get(_PATH) and properties.get(_DOCUMENT):
            raise InvalidPropertyError(f"only one of {_PATH!r} and {_DOCUMENT!r} may be set")
        self._properties = {key: properties[key] for key in (_PATH, _DOCUMENT, _SCOPES) if properties.get(key)}
        self._send = send
        self._lock = threading.Lock()
        self._credentials: google.auth.credentials.Credentials | None = None

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """The token, and the project that pays if the credentials name one."""
        if request.has(AUTHORIZATION):
            return {}
        added: dict[str, str] = {}
        with self._lock:
            self._asked(lambda: self._loaded().before_request(self._ask, request.method, request.url, added))
        return {AUTHORIZATION if name == AUTHORIZATION.lower() else name: value for name, value in added.items()}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Get another token."""
        with self._lock:
            if self._credentials is None or self._credentials.token is None:
                return False
            if f"Bearer {self._credentials.token}" not in refused.values():
                return True  # another thread has renewed it meanwhile
            try:
                self._asked(lambda: self._loaded().refresh(self._ask))
            except IcefloeError:
                return False
            return True

    def _loaded(self) -> "google.auth.credentials.Credentials":
        if self._credentials is None:
            given = self._properties.get(_SCOPES, _ALL_OF_CLOUD)
            self._credentials = self._new([scope.strip() for scope in given.split(",") if scope.strip()])
        return self._credentials

    def _new(self, scopes: list[str]) -> "google.auth.credentials.Credentials":
        if path := self._properties.get(_PATH):
            return _credentials(_document(Path(path).read_text()), scopes)
        if text := self._properties.get(_DOCUMENT):
            return _credentials(_document(text), scopes)
        return google.auth.default(scopes=scopes, request=self._ask)[0]

    def _ask(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        **_more: object,
    ) -> _GoogleAnswer:
        """The transport of google-auth, by ours."""
        content = body.encode() if isinstance(body, str) else body or b""
        try:
            answer: Answer = self._send(OutgoingRequest(method, url, dict(headers or {}), content))
        except ServiceUnavailableError as error:
            raise google.auth.exceptions.TransportError(str(error)) from None
        return _GoogleAnswer(answer.status, answer.headers, answer.body)

    def _asked(self, call: Callable[[], object]) -> None:
        try:
            call()
        except google.auth.exceptions.GoogleAuthError as error:
            kind = type(error).__name__
            if isinstance(error, google.auth.exceptions.TransportError) or getattr(error, "retryable", False):
                raise ServiceUnavailableError(f"Google tokens are temporarily unavailable: {kind}") from None
            # Texts of these errors quote answers and files, which may hold keys.
            raise NotAuthorizedError(
                f"cannot get a token with the Google credentials: {kind}; check {_PATH}, {_DOCUMENT}, or Application Default Credentials"
            ) from None
        except IcefloeError:
            raise
        except (OSError, ValueError) as error:
            raise InvalidPropertyError(
                f"{_PATH} or {_DOCUMENT} cannot be used: {type(error).__name__}; expected a service account key"
            ) from None


def _credentials(document: dict[str, object], scopes: list[str]) -> "google.auth.credentials.Credentials":
    match document.get("type"):
        case "service_account":
            return service_account.Credentials.from_service_account_info(document, scopes=scopes)
        case "authorized_user":
            return oauth2_credentials.Credentials.from_authorized_user_info(document, scopes=scopes)
        case "external_account":
            return identity_pool.Credentials.from_info(document, scopes=scopes)
        case _:
            raise InvalidPropertyError(
                f"{_PATH} and {_DOCUMENT} accept keys of service accounts, users and external accounts; for others set"
                " GOOGLE_APPLICATION_CREDENTIALS to the file"
            )


def _document(text: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError):
        raise InvalidPropertyError(f"the value of {_PATH} or {_DOCUMENT} is not a JSON object") from None
