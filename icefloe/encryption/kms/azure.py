"""Keys in Azure Key Vault, with Azure's chain of credentials."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential

from icefloe.encryption.kms import http_json
from icefloe.errors import EncryptionError

_NAME = "Azure Key Vault"
_SCOPE = "https://vault.azure.net/.default"
_VERSION = "7.4"
_ALGORITHM = "RSA-OAEP-256"


class AzureKms:
    """Wraps by `wrapkey` and unwraps by `unwrapkey`; key ids are names of keys of the vault, with a version or without."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._url = http_json.checked_address("azure.keyvault.url", properties.get("azure.keyvault.url"))
        self._algorithm = properties.get("azure.keyvault.key-wrap-algorithm", _ALGORITHM)
        self._credential: Any = DefaultAzureCredential()

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key, encrypted by the key of the vault."""
        return self._ask("wrapkey", key_id, key)

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key that was wrapped so."""
        return self._ask("unwrapkey", key_id, wrapped)

    def _ask(self, operation: str, key_id: str, value: bytes) -> bytes:
        try:
            token = self._credential.get_token(_SCOPE).token
        except AzureError as error:
            raise EncryptionError(f"{_NAME} cannot be asked without credentials: {type(error).__name__}") from None
        # Without a version the newest one is used, whose place stays empty.
        name = quote(key_id) if "/" in key_id else f"{quote(key_id)}/"
        url = f"{self._url}/keys/{name}/{operation}?api-version={_VERSION}"
        body = {"alg": self._algorithm, "value": http_json.to_base64_url(value)}
        answer = http_json.ask(_NAME, url, {"Authorization": f"Bearer {token}"}, body)
        return http_json.from_base64_url(_NAME, http_json.text_of(_NAME, answer, "value"))
