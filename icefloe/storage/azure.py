"""How Iceberg's `adls.*` properties become a connection to a container of an Azure storage account."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from obstore.store import AzureStore

from icefloe.errors import InvalidPropertyError
from icefloe.storage.buckets import Bucket, ask_again, client_options, retry_options
from icefloe.storage.properties import first_of, flag, secrets_of
from icefloe.storage.vended import Grant

if TYPE_CHECKING:
    from obstore.store import AzureSASToken

_CREDENTIAL_TYPES = {
    "account_key": "access_key",
    "sas_key": "sas_token",
    "token": "bearer_token",
    "client_secret": "client_secret",
}
"""The credential type that every setting stands for, in order of precedence."""


def open_container(authority: str, properties: Mapping[str, str], grant: Grant | None = None) -> Bucket:
    """The container that `container@host`, or `container` alone, names, with tokens that a catalog vends if there is a grant;
    nothing is sent yet."""
    container, _, host = authority.rpartition("@") if "@" in authority else (authority, "", "")
    connection = _connection_string(first_of(properties, f"adls.connection-string.{host}", "adls.connection-string"))
    named = (
        first_of(properties, "adls.account-name", "adls.auth.shared-key.account.name")
        or connection.get("AccountName")
        or ""
    )
    account = host.split(".", 1)[0] or named
    if not account:
        raise InvalidPropertyError(
            f"no storage account for container {container!r}; set adls.account-name, "
            "or write the location as abfss://container@account.dfs.core.windows.net/path"
        )
    config: dict[str, str | bool] = {"container_name": container, "account_name": account}
    config.update(_credentials(account, host, named, properties, connection))
    endpoint = _endpoint(account, host, properties, connection)
    if endpoint:
        config["endpoint"] = endpoint
    client = client_options(bool(endpoint and endpoint.startswith("http:")))
    provider = _provider(account, host, properties, grant)
    if provider is not None:
        config = {key: value for key, value in config.items() if key not in ("sas_key", "credential_type")}

    def open_store(retrying: bool, folder: str | None) -> AzureStore:  # noqa: ARG001 - never asked for a folder here
        return AzureStore(
            config=config,  # type: ignore[arg-type]  # a dict of known keys
            client_options=client,
            retry_config=retry_options(5 if retrying else 0),
            credential_provider=provider,
        )

    return Bucket(
        open_store=open_store,
        secrets=secrets_of(properties, *connection.values()),
        known_conditional=endpoint is None or ".core." in endpoint,
        grant=grant,
        advice="check adls.account-key, adls.sas-token, adls.token or adls.tenant-id with adls.client-id and "
        "adls.client-secret, or the AZURE_* variables",
    )


def _provider(
    account: str, host: str, properties: Mapping[str, str], grant: Grant | None
) -> "Callable[[], AzureSASToken] | None":
    """The newest token that a catalog vended for the account; None if it vended none."""
    token = _own_token(account, host, properties)
    if grant is None or token is None:
        return None
    return lambda: {
        "sas_token": (_own_token(account, host, grant.settings()) or token).removeprefix("?"),
        "expires_at": ask_again(),
    }


def _own_token(account: str, host: str, properties: Mapping[str, str]) -> str | None:
    return first_of(properties, f"adls.sas-token.{host}", f"adls.sas-token.{account}")


def _credentials(
    account: str, host: str, named: str, properties: Mapping[str, str], connection: Mapping[str, str]
) -> dict[str, str | bool]:
    if flag(properties, "adls.anon"):
        return {"skip_signature": True}
    key = first_of(properties, "adls.account-key", "adls.auth.shared-key.account.key") or connection.get("AccountKey")
    own_token = _own_token(account, host, properties)
    sas = own_token or properties.get("adls.sas-token") or connection.get("SharedAccessSignature")
    if (key or sas) and not own_token and named and named != account:
        raise InvalidPropertyError(
            f"the key in adls.* belongs to the account {named!r}, but the location is in {account!r}; "
            f"set adls.sas-token.{host} for it"
        )
    settings = {
        "account_key": None if own_token else key,
        "sas_key": sas.removeprefix("?") if sas else None,
        "tenant_id": properties.get("adls.tenant-id"),
        "client_id": properties.get("adls.client-id"),
        "client_secret": properties.get("adls.client-secret"),
        "token": properties.get("adls.token"),
    }
    config: dict[str, str | bool] = {name: value for name, value in settings.items() if value}
    credential_type = next((value for name, value in _CREDENTIAL_TYPES.items() if name in config), None)
    # Explicit, so that a credential of the environment does not override it.
    return {**config, "credential_type": credential_type} if credential_type else config


def _endpoint(account: str, host: str, properties: Mapping[str, str], connection: Mapping[str, str]) -> str | None:
    scheme = properties.get("adls.blob-storage-scheme") or "https"
    if scheme not in ("http", "https"):
        raise InvalidPropertyError(f"adls.blob-storage-scheme {scheme!r}; http or https is expected")
    if connection.get("BlobEndpoint"):
        return connection["BlobEndpoint"].rstrip("/")
    if properties.get("adls.account-host"):
        return f"{scheme}://{properties['adls.account-host']}"
    authority = properties.get("adls.blob-storage-authority")
    if authority:
        # As pyarrow: `.suffix` follows the account, `host:port` is an emulator with the account as path.
        return f"{scheme}://{account}{authority}" if authority.startswith(".") else f"{scheme}://{authority}/{account}"
    blob_host = host.replace(".dfs.", ".blob.", 1)
    return f"https://{blob_host}" if "." in blob_host and not blob_host.endswith(".blob.core.windows.net") else None


def _connection_string(text: str | None) -> dict[str, str]:
    parts = [part.partition("=") for part in (text or "").split(";") if part]
    return {name: value for name, _, value in parts}
