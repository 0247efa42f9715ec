"""Keys in AWS KMS, with Amazon's chain of credentials."""

from collections.abc import Mapping
from typing import Any

import botocore.exceptions
import botocore.session

from icefloe.errors import EncryptionError

_ALGORITHM = "SYMMETRIC_DEFAULT"


class AwsKms:
    """Wraps by `Encrypt` and unwraps by `Decrypt`, as the Java library does; key ids are key ids, ARNs or aliases."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        session = botocore.session.Session(profile=properties.get("client.profile-name"))
        try:
            self._client: Any = session.create_client(
                "kms",
                region_name=properties.get("client.region") or properties.get("s3.region"),
                endpoint_url=properties.get("kms.endpoint"),
            )
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise EncryptionError(
                f"AWS KMS cannot be asked: {error}; check 'client.region', 'client.profile-name' and 'kms.endpoint'"
            ) from None
        self._algorithm = properties.get("kms.encryption-algorithm-spec", _ALGORITHM)

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key as a ciphertext blob."""
        return self._ask("encrypt", key_id, "CiphertextBlob", Plaintext=key)

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key in a ciphertext blob."""
        return self._ask("decrypt", key_id, "Plaintext", CiphertextBlob=wrapped)

    def _ask(self, operation: str, key_id: str, wanted: str, **request: bytes) -> bytes:
        try:
            answer = getattr(self._client, operation)(KeyId=key_id, EncryptionAlgorithm=self._algorithm, **request)
        except botocore.exceptions.ClientError as error:
            problem = error.response.get("Error", {}).get("Code", "an error")
            raise EncryptionError(f"AWS KMS did not {operation} with key {key_id!r}: {problem}") from None
        except botocore.exceptions.BotoCoreError as error:
            raise EncryptionError(f"AWS KMS cannot be asked: {type(error).__name__}") from None
        return bytes(answer[wanted])
