"""How key services that speak JSON over HTTP are asked: one request, and errors that hold neither tokens nor keys."""

from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

import httpx2 as httpx

from icefloe.errors import EncryptionError, InvalidPropertyError, ServiceUnavailableError

_TIMEOUT = 30.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PASSING = (429, 500, 502, 503, 504)


def checked_address(key: str, text: str | None) -> str:
    """The address of a service, without a slash at its end; only this machine is asked without TLS."""
    url = httpx.URL(text or "")
    if url.scheme != "https" and not (url.scheme == "http" and url.host in _LOOPBACK):
        raise InvalidPropertyError(f"{key!r} must be an https URL, as keys go there")
    if url.userinfo:
        raise InvalidPropertyError(f"{key!r} holds a user or password; leave them out")
    return str(url).rstrip("/")


def ask(service: str, url: str, headers: Mapping[str, str], body: Mapping[str, str]) -> Mapping[str, object]:
    """The JSON object that the service answers with."""
    try:
        answer = httpx.post(url, json=dict(body), headers=dict(headers), timeout=_TIMEOUT)
    except httpx.HTTPError as error:
        raise ServiceUnavailableError(f"{service} cannot be asked: {type(error).__name__}") from None
    if answer.status_code in _PASSING:
        raise ServiceUnavailableError(f"{service} answered {answer.status_code}; it may do so for a while only")
    if answer.status_code != 200:
        raise EncryptionError(f"{service} refused, with status {answer.status_code}")
    try:
        content = answer.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise EncryptionError(f"{service} did not answer with a JSON object")
    return content


def text_of(service: str, answer: Mapping[str, object], *path: str) -> str:
    """The text at a path of an answer."""
    value: object = answer
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, str):
        raise EncryptionError(f"{service} answered without {'.'.join(path)}")
    return value


def to_base64(data: bytes) -> str:
    """Bytes as text."""
    return b64encode(data).decode()


def from_base64(service: str, text: str) -> bytes:
    """Text as bytes."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise EncryptionError(f"{service} answered with what is not Base64") from None


def to_base64_url(data: bytes) -> str:
    """Bytes as text for URLs, without padding."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def from_base64_url(service: str, text: str) -> bytes:
    """The same back."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise EncryptionError(f"{service} answered with what is not Base64") from None
