"""Decides which storage the files of a table are in, by what the server says: settings, credentials that expire, signatures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from icefloe import properties as props, rest
from icefloe.catalog import table_files
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.outcomes import Request, asked
from icefloe.rest import paths
from icefloe.storage import SignedRequest, SignRequest, Storage, StorageCredential, VendedCredentials, parse_location

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog

_REFRESH_ENDPOINTS = (
    "client.refresh-credentials-endpoint",
    "gcs.oauth2.refresh-credentials-endpoint",
    "adls.refresh-credentials-endpoint",
)
_EXPIRING = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.")
_REMOTE_SIGNING = "s3.remote-signing-enabled"
_SIGNER_URIS = ("signer.uri", "s3.signer.uri")
_SIGNER_ENDPOINTS = ("signer.endpoint", "s3.signer.endpoint")


@dataclass(frozen=True, slots=True)
class Refresh:
    """Asks the server for new credentials of a table. A pickle of it does so from another process."""

    catalog: "RestCatalog"
    identifier: Identifier
    config: Mapping[str, str] = field(repr=False)
    plan_id: str | None = None
    """The plan of a scan that they are for."""

    def __reduce__(self) -> tuple[type["Refresh"], tuple[object, ...]]:
        return Refresh, (self.catalog._without_keys(), self.identifier, self.config, self.plan_id)

    def __call__(self) -> Sequence[StorageCredential]:
        """The newest credentials, from where the server says that they are to be had."""
        tables, client = self.catalog._tables, self.catalog._client(self.config)
        session, about = tables.session, f"the credentials of table {show(self.identifier)}"
        *namespace, name = self.identifier
        query = None if self.plan_id is None else {wire.PLAN_ID: self.plan_id}
        endpoint = _first(self.config, _REFRESH_ENDPOINTS)
        if endpoint is not None:
            sent_by, method = client or session.client, paths.TABLE_CREDENTIALS.method
            request = Request(lambda: sent_by.request(method, endpoint, query=query), rest.Context.TABLE, about)
        elif session.has(paths.TABLE_CREDENTIALS):
            request = session.request(
                paths.TABLE_CREDENTIALS,
                rest.Context.TABLE,
                about,
                tuple(namespace),
                query=query,
                client=client,
                names={"table": name},
            )
        else:
            return vended_credentials(tables.load(self.identifier, client=client, is_new=True))
        return rest.decode_credentials(asked(request).body)


@dataclass(frozen=True, slots=True)
class Signer:
    """Asks the server to sign requests to the store of a table. A pickle of it does so from another process."""

    catalog: "RestCatalog"
    identifier: Identifier
    config: Mapping[str, str] = field(repr=False)
    signing: rest.RemoteSigning

    def __reduce__(self) -> tuple[type["Signer"], tuple[object, ...]]:
        return Signer, (self.catalog._without_keys(), self.identifier, self.config, self.signing)

    def __call__(self, request: SignRequest) -> SignedRequest:
        """The request with its signature."""
        session, client = self.catalog._tables.session, self.catalog._client(self.config)
        body = rest.encode_sign_request(request, self.signing.properties)
        *namespace, name = self.identifier
        path = self._own_endpoint() or session.address(paths.SIGN_REQUEST, tuple(namespace), table=name)
        sent_by = client or session.client
        passed_on = {key: ", ".join(values) for key, values in self.signing.headers.items()}
        answer = asked(
            Request(
                # It changes nothing, so that it may be sent twice.
                lambda: sent_by.request(paths.SIGN_REQUEST.method, path, body=body, headers=passed_on, idempotent=True),
                rest.Context.TABLE,
                f"a signature for table {show(self.identifier)}",
            )
        )
        return rest.decode_signed_request(answer.body, answer.headers.get(rest.headers.CACHE_CONTROL.lower()))

    def _own_endpoint(self) -> str | None:
        """Where older servers sign."""
        endpoint, uri = _first(self.config, _SIGNER_ENDPOINTS), _first(self.config, _SIGNER_URIS)
        if endpoint is None or uri is None:
            return endpoint
        return urljoin(f"{uri.rstrip('/')}/", endpoint.lstrip("/"))


def table_storage(
    catalog: "RestCatalog", identifier: Identifier, table: rest.LoadedTable, plan_id: str | None = None
) -> Storage:
    """The storage of a table, or of a plan; what the server says of it wins over the properties of the catalog."""
    config, signing = table.surplus.config, table.surplus.signing
    properties = table_files.storage_properties({**catalog._merged, **config})
    vended, refresh, sign = vended_credentials(table), None, None
    if _is_refreshed(config):
        refresh = Refresh(catalog, identifier, config, plan_id)
    if signing is not None or props.property_as_bool(properties, _REMOTE_SIGNING, False):
        properties.setdefault(_REMOTE_SIGNING, "true")
        sign = Signer(catalog, identifier, config, signing or rest.RemoteSigning())
    # The KMS is the user's choice alone: a server could name any code, or send keys anywhere.
    return Storage(properties, VendedCredentials(vended, refresh) if vended else None, sign, catalog._keyring)


def vended_credentials(table: rest.LoadedTable) -> list[StorageCredential]:
    """The credentials that came with a table: apart, or, from older servers, in its configuration."""
    if apart := table.surplus.credentials:
        return list(apart)
    config = table_files.storage_properties(table.surplus.config)
    if not any(key.startswith(_EXPIRING) for key in config) or table.metadata.location is None:
        return []
    return [StorageCredential(parse_location(table.metadata.location).scheme, config)]


def _is_refreshed(config: Mapping[str, str]) -> bool:
    keys = (endpoint.replace("-endpoint", "-enabled") for endpoint in _REFRESH_ENDPOINTS)
    return all(props.property_as_bool(config, key, True) for key in keys)


def _first(config: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((config[key] for key in keys if config.get(key)), None)
