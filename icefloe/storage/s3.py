"""How Iceberg's `s3.*` properties, the environment and profile files become a connection to a bucket."""

import configparser
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from obstore.store import S3Store

from icefloe.errors import InvalidPropertyError
from icefloe.storage.buckets import PART_SIZE, Bucket, ask_again, client_options, retry_options
from icefloe.storage.properties import first_of, flag, seconds, secrets_of, shown, whole_number
from icefloe.storage.signing import signs_remotely
from icefloe.storage.vended import Grant

if TYPE_CHECKING:
    from obstore.store import S3Credential

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_OWN_IDENTITY_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
SMALLEST_PART = 5 << 20  # S3 refuses smaller ones


def open_bucket(bucket: str, properties: Mapping[str, str], grant: Grant | None = None) -> Bucket:
    """The bucket, configured by these properties, with keys that a catalog vends if there is a grant; nothing is sent yet."""
    _refuse_unsupported(properties)
    profile = _profile(properties)
    keys = _static_keys(properties, profile)
    address = address_of(bucket, properties, profile.get("region"))
    base, region = address.url, address.region
    config: dict[str, str | bool] = {"bucket": bucket, "region": region, "virtual_hosted_style_request": True}
    config.update(encryption(properties))
    config["skip_signature"] = bool(flag(properties, "s3.anonymous"))
    retries = retry_options(
        whole_number(properties, "s3.retry.num-retries", 5),
        whole_number(properties, "s3.retry.min-wait-ms", 100, 1),
        whole_number(properties, "s3.retry.max-wait-ms", 20_000, 1),
    )
    client = client_options(
        base.startswith("http:"),
        seconds(properties, "s3.connect-timeout", 10),
        seconds(properties, "s3.request-timeout", 60),
        properties.get("s3.proxy-uri"),
    )

    provider = None if keys is None else _provider(keys, grant)

    def open_store(retrying: bool, folder: str | None) -> S3Store:
        # The store joins this URL and the key by a slash, so a folder in it may hold names that a key may not.
        url = f"{base}/{quote(folder, safe='/-_.~')}" if folder is not None else base
        return S3Store(
            config={**config, "aws_endpoint_url_s3": url, "disable_bulk_delete": folder is not None},  # type: ignore[arg-type]  # a dict of known keys
            client_options=client,
            retry_config=retries if retrying else retry_options(0),
            # Static keys go in as a provider: as plain settings they would mix with a session token of the environment.
            credential_provider=provider,
        )

    return Bucket(
        open_store=open_store,
        secrets=secrets_of(
            properties, *(keys["access_key_id"], keys["secret_access_key"], keys["token"]) if keys else ()
        ),
        part_size=whole_number(properties, "s3.multipart.part-size-bytes", PART_SIZE, SMALLEST_PART),
        reaches_empty_names=True,
        known_conditional=address.is_amazon,
        grant=grant,
        advice="check s3.access-key-id, s3.secret-access-key, s3.session-token and s3.region, or the AWS_* variables, "
        "or set s3.anonymous=true for a public bucket",
    )


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bucket answers."""

    url: str
    region: str
    is_amazon: bool
    """Whether it is Amazon's own, which honours If-None-Match; other stores are probed."""


def address_of(bucket: str, properties: Mapping[str, str], region: str | None = None) -> Address:
    """Where a bucket answers, by properties and environment, or else in the region that is given."""
    endpoint = _endpoint(properties)
    named = first_of(properties, "s3.region", "client.region") or _variable("AWS_REGION", "AWS_DEFAULT_REGION")
    region = named or region or "us-east-1"
    is_amazon = endpoint is None or bool(re.match(r"https://[^/]*\.amazonaws\.com(\.cn)?(/|$)", endpoint))
    return Address(_bucket_url(bucket, endpoint, region, properties), region, is_amazon)


def _refuse_unsupported(properties: Mapping[str, str]) -> None:
    if signs_remotely(properties):
        raise InvalidPropertyError(
            "remote signing (s3.remote-signing-enabled, s3.signer) needs a REST catalog that signs; "
            "ask the catalog for vended credentials, or set s3.access-key-id and s3.secret-access-key"
        )
    role = first_of(properties, "s3.role-arn", "client.role-arn", "client.assume-role.arn")
    if role and "AWS_WEB_IDENTITY_TOKEN_FILE" not in os.environ:
        raise InvalidPropertyError(
            "assuming a role by property (s3.role-arn, client.role-arn, client.assume-role.arn) is not supported; "
            "assume it outside and pass s3.access-key-id, s3.secret-access-key and s3.session-token"
        )


def _static_keys(properties: Mapping[str, str], profile: Mapping[str, str]) -> "S3Credential | None":
    for prefix in ("s3", "client"):
        key, secret = properties.get(f"{prefix}.access-key-id"), properties.get(f"{prefix}.secret-access-key")
        if bool(key) != bool(secret):
            raise InvalidPropertyError(
                f"{prefix}.access-key-id and {prefix}.secret-access-key are only useful together"
            )
        if key and secret:
            return _credential(key, secret, properties.get(f"{prefix}.session-token") or None)
    key, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    return _credential(key, secret, profile.get("aws_session_token")) if key and secret else None


def _provider(keys: "S3Credential", grant: Grant | None) -> "Callable[[], S3Credential]":
    if grant is None:
        return lambda: keys
    return lambda: {**(_static_keys(grant.settings(), {}) or keys), "expires_at": ask_again()}


def _credential(key: str, secret: str, token: str | None) -> "S3Credential":
    return {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}


def _profile(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings of the named profile, or of the default one if nothing else provides an identity."""
    named = first_of(properties, "s3.profile-name", "client.profile-name")
    if named is None and (
        properties.get("s3.access-key-id")
        or flag(properties, "s3.anonymous")
        or any(variable in os.environ for variable in _OWN_IDENTITY_VARIABLES)
    ):
        return {}
    name = named or os.environ.get("AWS_PROFILE", "default")
    settings: dict[str, str] = {}
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(Path(os.environ.get(variable, default)).expanduser(), encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError) as error:
            raise InvalidPropertyError(
                f"the AWS profile file {variable} cannot be read: {type(error).__name__}"
            ) from None
        if parser.has_section(section):
            settings.update(parser[section])
    if named and "aws_access_key_id" not in settings:
        raise InvalidPropertyError(
            f"the AWS profile {named!r} has no aws_access_key_id; only static keys are supported"
        )
    return settings


def _endpoint(properties: Mapping[str, str]) -> str | None:
    endpoint = properties.get("s3.endpoint") or _variable(*_ENDPOINT_VARIABLES)
    if endpoint and not re.match(r"https?://[^/]", endpoint):
        raise InvalidPropertyError(
            f"s3.endpoint {shown('s3.endpoint', endpoint)!r} must start with http:// or https://"
        )
    return endpoint.rstrip("/") if endpoint else None


def _bucket_url(bucket: str, endpoint: str | None, region: str, properties: Mapping[str, str]) -> str:
    """The URL of the bucket; as in PyIceberg, a given endpoint gets the bucket in the path by default."""
    path_style = flag(properties, "s3.path-style-access")
    if flag(properties, "s3.force-virtual-addressing"):
        path_style = False
    if endpoint is None:
        suffix = ".cn" if region.startswith("cn-") else ""
        endpoint = f"https://s3.{region}.amazonaws.com{suffix}"
        # A dot in the name would not fit the certificate.
        path_style = path_style or "." in bucket
    elif path_style is None:
        path_style = True
    if path_style:
        return f"{endpoint}/{bucket}"
    scheme, host = endpoint.split("://", 1)
    return f"{scheme}://{bucket}.{host}"


def encryption(properties: Mapping[str, str]) -> dict[str, str | bool]:
    """How the store is to encrypt what is written, as obstore names it."""
    kind = first_of(properties, "s3.server-side-encryption", "s3.sse.type")
    # Java says s3, kms, dsse-kms, custom and none; PyIceberg says what S3 says.
    kind = {"s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse", "custom": "sse-c", "none": None}.get(
        kind or "none", kind
    )
    if kind is None:
        return {}
    config: dict[str, str | bool] = {"server_side_encryption": kind}
    key = first_of(properties, "s3.sse-kms-key-id", "s3.sse.key")
    if key:
        config["sse_customer_key_base64" if kind == "sse-c" else "sse_kms_key_id"] = key
    return config


def _variable(*names: str) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
