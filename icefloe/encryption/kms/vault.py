"""Keys in the transit engine of HashiCorp Vault, or of OpenBao."""

import os
from collections.abc import Mapping
from urllib.parse import quote

from icefloe.encryption.kms import http_json
from icefloe.errors import EncryptionError, InvalidPropertyError

_NAME = "Vault"


class VaultKms:
    """Wraps by `encrypt` and unwraps by `decrypt`; key ids are names of transit keys. What is wrapped is Vault's own text."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        address = properties.get("vault.address") or os.environ.get("VAULT_ADDR")
        self._address = http_json.checked_address("vault.address", address)
        token = properties.get("vault.token") or os.environ.get("VAULT_TOKEN")
        if not token:
            raise InvalidPropertyError("the KMS 'vault' needs 'vault.token', or VAULT_TOKEN in the environment")
        namespace = properties.get("vault.namespace") or os.environ.get("VAULT_NAMESPACE")
        self._headers = {"X-Vault-Token": token} | ({"X-Vault-Namespace": namespace} if namespace else {})
        self._mount = properties.get("vault.transit-mount", "transit").strip("/")

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key as a text like `vault:v1:...`."""
        return self._ask("encrypt", key_id, "ciphertext", plaintext=http_json.to_base64(key)).encode()

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key in such a text."""
        try:
            text = wrapped.decode("ascii")
        except UnicodeDecodeError:
            raise EncryptionError("the wrapped key is not one of Vault's") from None
        return http_json.from_base64(_NAME, self._ask("decrypt", key_id, "plaintext", ciphertext=text))

    def _ask(self, operation: str, key_id: str, wanted: str, **body: str) -> str:
        url = f"{self._address}/v1/{quote(self._mount)}/{operation}/{quote(key_id, safe='')}"
        return http_json.text_of(_NAME, http_json.ask(_NAME, url, self._headers, body), "data", wanted)

    def __repr__(self) -> str:
        return f"VaultKms({self._address!r})"
