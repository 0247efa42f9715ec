"""How the server uses its own identity at Amazon, or at a store that speaks its protocol: to sign, and to assume a role."""

import re
import secrets
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from icefloe.errors import InvalidPropertyError, NotInstalledError, ServiceUnavailableError
from icefloe.server.access.s3_requests_codec import S3Request
from icefloe.server.access.settings_codec import AccessSettings
from icefloe.storage import SignedRequest

_NOT_IN_SESSION_NAME = re.compile(r"[^\w+=,.@-]", re.ASCII)
_REUSABLE = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Issued:
    """Credentials that a token service gave."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    expires_at: float
    """Seconds since 1970."""


class Identity:
    """The server's own keys, of the configuration or of Amazon's chain; threads may share it."""

    def __init__(self, settings: AccessSettings, properties: Mapping[str, str], region: str) -> None:
        self._settings = settings
        self._keys = _keys({**properties, **settings.identity})
        self._region = region
        self._lock = threading.Lock()
        self._session: Any = None
        self._sts: Any = None

    def secret(self) -> bytes:
        """What only servers with this identity know; without keys in the configuration, this process alone."""
        return secrets.token_bytes(32) if self._keys is None else self._keys[1].encode()

    def sign(self, method: str, request: S3Request) -> SignedRequest:
        """The request with a signature in its headers."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        credentials = Credentials(*self._keys) if self._keys else self._of_chain()
        asked = AWSRequest(method=method, url=request.uri, headers=dict(request.headers))
        signer = S3SigV4Auth(credentials, "s3", self._region)
        signer.payload = lambda _: request.payload
        signer.add_auth(asked)
        headers = {name: [str(value)] for name, value in asked.headers.items()}
        return SignedRequest(request.uri, headers, method in _REUSABLE)

    def assume(self, policy: str, principal: str) -> Issued:
        """Credentials of the role, limited by a policy, in a session that is named after who asked."""
        from botocore.exceptions import BotoCoreError, ClientError

        settings = self._settings
        name = _NOT_IN_SESSION_NAME.sub("-", f"icefloe-{principal}")[:64]
        more = {"ExternalId": settings.external_id} if settings.external_id else {}
        try:
            answer = self._client().assume_role(
                RoleArn=settings.role_arn,
                RoleSessionName=name,
                Policy=policy,
                DurationSeconds=settings.lifetime_seconds,
                **more,
            )
        except (BotoCoreError, ClientError) as error:
            # Its text may name accounts and policies, which are not for clients.
            code = getattr(error, "response", {}).get("Error", {}).get("Code") or type(error).__name__
            raise ServiceUnavailableError(f"credentials cannot be had from the token service: {code}") from None
        return _issued(answer["Credentials"])

    def _of_chain(self) -> Any:
        with self._lock:
            credentials = self._own_session().get_credentials()
        if credentials is None:
            raise ServiceUnavailableError("the server has no identity to sign with; its operator must give it one")
        return credentials.get_frozen_credentials()

    def _client(self) -> Any:
        with self._lock:
            if self._sts is None:
                key, secret, token = self._keys or (None, None, None)
                self._sts = self._own_session().create_client(
                    "sts",
                    region_name=self._region,
                    endpoint_url=self._settings.sts_endpoint,
                    aws_access_key_id=key,
                    aws_secret_access_key=secret,
                    aws_session_token=token,
                )
                weakref.finalize(self, self._sts.close)
            return self._sts

    def _own_session(self) -> Any:
        if self._session is None:
            try:
                from botocore.session import get_session
            except ImportError:
                raise NotInstalledError("vended and signed access need botocore: pip install 'icefloe[aws]'") from None
            self._session = get_session()
        return self._session


def _issued(credentials: Mapping[str, Any]) -> Issued:
    expiration: datetime = credentials["Expiration"]
    return Issued(
        credentials["AccessKeyId"],
        credentials["SecretAccessKey"],
        credentials["SessionToken"],
        expiration.timestamp(),
    )


def _keys(properties: Mapping[str, str]) -> tuple[str, str, str | None] | None:
    key, secret = properties.get("s3.access-key-id"), properties.get("s3.secret-access-key")
    if bool(key) != bool(secret):
        raise InvalidPropertyError("s3.access-key-id and s3.secret-access-key are only useful together")
    return (key, secret, properties.get("s3.session-token")) if key and secret else None
