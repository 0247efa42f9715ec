"""How Iceberg's `gcs.*` properties become a connection to a bucket of Google Cloud Storage."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from obstore.store import GCSStore

from icefloe.errors import InvalidPropertyError
from icefloe.storage.objects import Bucket, client_options, retry_options
from icefloe.storage.properties import flag, secrets_of, whole_number

if TYPE_CHECKING:
    from obstore.store import GCSCredential

_PART_SIZE = 16 << 20


def open_bucket(bucket: str, properties: Mapping[str, str]) -> Bucket:
    """The bucket, configured by these properties; nothing is sent yet."""
    config: dict[str, Any] = {"bucket": bucket}
    host = properties.get("gcs.service.host")
    if host:
        if not host.startswith(("http://", "https://")):
            raise InvalidPropertyError(f"gcs.service.host {host!r} must start with http:// or https://")
        config["base_url"] = host.rstrip("/")
    if flag(properties, "gcs.no-auth"):
        config["skip_signature"] = True
    token = properties.get("gcs.oauth2.token")
    provider = _Provider(token, whole_number(properties, "gcs.oauth2.token-expires-at", 0)) if token else None
    client = client_options(
        timedelta(seconds=10), timedelta(seconds=60), allow_http=bool(host and host.startswith("http:")), proxy=None
    )

    def open_store(retrying: bool, folder: str | None) -> GCSStore:  # noqa: ARG001 - never asked for a folder here
        return GCSStore(
            config=config,  # type: ignore[arg-type]  # a dict of known keys
            client_options=client,
            retry_config=retry_options(5, 100, 20_000) if retrying else retry_options(0, 1, 1),
            credential_provider=provider,
        )

    return Bucket(
        open_store=open_store,
        secrets=secrets_of(properties),
        part_size=_PART_SIZE,
        reaches_empty_names=False,
        known_conditional=not host,
        advice="check gcs.oauth2.token or GOOGLE_APPLICATION_CREDENTIALS, or set gcs.no-auth=true for a public bucket",
    )


class _Provider:
    def __init__(self, token: str, expires_at_ms: int) -> None:
        expires = datetime.fromtimestamp(expires_at_ms / 1000, UTC) if expires_at_ms else None
        self._credential: GCSCredential = {"token": token, "expires_at": expires}

    def __call__(self) -> "GCSCredential":
        return self._credential

    def __repr__(self) -> str:
        return "static token"
