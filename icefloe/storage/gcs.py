"""How Iceberg's `gcs.*` properties become a connection to a bucket of Google Cloud Storage."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from obstore.store import GCSStore

from icefloe.errors import InvalidPropertyError
from icefloe.storage.buckets import Bucket, ask_again, client_options, retry_options
from icefloe.storage.properties import flag, secrets_of, whole_number
from icefloe.storage.vended import Grant

if TYPE_CHECKING:
    from obstore.store import GCSCredential


def open_bucket(bucket: str, properties: Mapping[str, str], grant: Grant | None = None) -> Bucket:
    """The bucket, configured by these properties, with a token that a catalog vends if there is a grant; nothing is sent yet."""
    config: dict[str, str | bool] = {"bucket": bucket}
    host = properties.get("gcs.service.host")
    if host:
        if not host.startswith(("http://", "https://")):
            raise InvalidPropertyError(f"gcs.service.host {host!r} must start with http:// or https://")
        config["base_url"] = host.rstrip("/")
    if flag(properties, "gcs.no-auth"):
        config["skip_signature"] = True
    provider = _provider(properties, grant)
    client = client_options(bool(host and host.startswith("http:")))

    def open_store(retrying: bool, folder: str | None) -> GCSStore:  # noqa: ARG001 - never asked for a folder here
        return GCSStore(
            config=config,  # type: ignore[arg-type]  # a dict of known keys
            client_options=client,
            retry_config=retry_options(5 if retrying else 0),
            credential_provider=provider,
        )

    return Bucket(
        open_store=open_store,
        secrets=secrets_of(properties),
        known_conditional=not host,
        grant=grant,
        advice="check gcs.oauth2.token or GOOGLE_APPLICATION_CREDENTIALS, or set gcs.no-auth=true for a public bucket",
    )


def _provider(properties: Mapping[str, str], grant: Grant | None) -> "Callable[[], GCSCredential] | None":
    token = properties.get("gcs.oauth2.token")
    if not token:
        return None
    if grant is not None:
        return lambda: {"token": grant.settings().get("gcs.oauth2.token", token), "expires_at": ask_again()}
    expires_ms = whole_number(properties, "gcs.oauth2.token-expires-at", 0)
    expires = datetime.fromtimestamp(expires_ms / 1000, UTC) if expires_ms else None
    return lambda: {"token": token, "expires_at": expires}
