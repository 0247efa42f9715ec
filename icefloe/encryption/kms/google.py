"""Keys in Google Cloud KMS, with Google's chain of credentials."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import google.auth
import google.auth.exceptions
import httpx2 as httpx
from google.oauth2 import service_account

from icefloe.encryption.kms import http_json
from icefloe.errors import EncryptionError

_NAME = "Google Cloud KMS"
_ENDPOINT = "https://cloudkms.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloudkms"


class GoogleKms:
    """Wraps by `encrypt` and unwraps by `decrypt`; key ids are resource names, `projects/.../cryptoKeys/...`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._endpoint = http_json.checked_address("gcp.kms.endpoint", properties.get("gcp.kms.endpoint") or _ENDPOINT)
        self._path = properties.get("gcp.auth.credentials-path")
        self._credentials: Any = None

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key as a ciphertext of the service."""
        return self._ask("encrypt", key_id, "ciphertext", plaintext=http_json.to_base64(key))

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key in such a ciphertext."""
        return self._ask("decrypt", key_id, "plaintext", ciphertext=http_json.to_base64(wrapped))

    def _ask(self, operation: str, key_id: str, wanted: str, **body: str) -> bytes:
        url = f"{self._endpoint}/v1/{quote(key_id)}:{operation}"
        headers: dict[str, str] = {}
        try:
            self._loaded().before_request(_send, "POST", url, headers)
        except google.auth.exceptions.GoogleAuthError as error:
            raise EncryptionError(f"{_NAME} cannot be asked without credentials: {type(error).__name__}") from None
        answer = http_json.ask(_NAME, url, headers, body)
        return http_json.from_base64(_NAME, http_json.text_of(_NAME, answer, wanted))

    def _loaded(self) -> Any:
        if self._credentials is None and self._path:
            self._credentials = service_account.Credentials.from_service_account_file(self._path, scopes=[_SCOPE])
        elif self._credentials is None:
            self._credentials, _ = google.auth.default(scopes=[_SCOPE])
        return self._credentials


class _Answer:
    """An answer under the names that google-auth expects."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status, self.headers, self.data = answer.status_code, answer.headers, answer.content


def _send(
    url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: Any = None, **_: Any
) -> _Answer:
    """One request of google-auth's, for a token."""
    try:
        return _Answer(httpx.request(method, url, content=body, headers=headers, timeout=timeout or 30.0))
    except httpx.HTTPError as error:
        raise google.auth.exceptions.TransportError(type(error).__name__) from None
