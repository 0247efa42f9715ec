"""Reading storage settings from properties, and which of their values may be shown.

The keys are Iceberg's own. A value is shown only when its key is on an allow-list, so that a setting
that nobody thought of counts as a secret.
"""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from icefloe.errors import InvalidPropertyError

HIDDEN = "***"
"""The replacement for a value that must not be shown."""

SHOWN_KEYS = frozenset(
    {
        "s3.endpoint",
        "s3.region",
        "client.region",
        "s3.path-style-access",
        "s3.force-virtual-addressing",
        "s3.anonymous",
        "s3.profile-name",
        "client.profile-name",
        "s3.connect-timeout",
        "s3.request-timeout",
        "s3.retry.num-retries",
        "s3.retry.min-wait-ms",
        "s3.retry.max-wait-ms",
        "s3.multipart.part-size-bytes",
        "s3.remote-signing-enabled",
        "s3.session-token-expires-at-ms",
        "s3.server-side-encryption",
        "s3.sse.type",
        "gcs.project-id",
        "gcs.service.host",
        "gcs.no-auth",
        "gcs.oauth2.token-expires-at",
        "adls.account-name",
        "adls.account-host",
        "adls.blob-storage-authority",
        "adls.blob-storage-scheme",
        "adls.dfs-storage-authority",
        "adls.dfs-storage-scheme",
        "adls.anon",
        "adls.tenant-id",
        "hdfs.host",
        "hdfs.port",
        "hdfs.user",
        "read.limits.file-bytes",
        "read.limits.metadata-bytes",
        "read.limits.expansion",
    }
)
"""Keys whose values hold no credential."""

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_USER_INFO = re.compile(r"://[^/@\s]+@")
_QUERY = re.compile(r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>]*")
_AUTHORIZATION = re.compile(r"(?i)(Signature=|Bearer\s+|SharedKey\s+\S+?:|sig=)[^\s,;&\"'<>]+")
_SECRET_VARIABLE = re.compile(r"^(AWS|AZURE|GOOGLE)_.*(KEY|SECRET|TOKEN|SAS|CREDENTIAL)")


def checked_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """A copy of the properties, with scalars as text; anything else is refused."""
    checked: dict[str, str] = {}
    for key, value in (properties or {}).items():
        if isinstance(value, bool):
            checked[key] = str(value).lower()
        elif isinstance(value, str | int | float):
            checked[key] = str(value)
        elif value is not None:
            raise InvalidPropertyError(f"property {key!r} has a value of type {type(value).__name__}; text is expected")
    return checked


def first_of(properties: Mapping[str, str], *keys: str) -> str | None:
    """The value of the first key that is not empty, or None."""
    return next((properties[key] for key in keys if properties.get(key)), None)


def flag(properties: Mapping[str, str], key: str) -> bool | None:
    """A boolean setting, or None if it is not set."""
    text = properties.get(key)
    if not text:
        return None
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise InvalidPropertyError(f"property {key} = {shown(key, text)!r}; true or false is expected")


def whole_number(properties: Mapping[str, str], key: str, default: int, minimum: int = 0) -> int:
    """An integer setting that is not below the minimum."""
    text = properties.get(key)
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        number = minimum - 1
    if number < minimum:
        raise InvalidPropertyError(f"property {key} = {shown(key, text)!r}; an integer >= {minimum} is expected")
    return number


def seconds(properties: Mapping[str, str], key: str, default: float) -> timedelta:
    """A duration setting, in seconds."""
    text = properties.get(key)
    try:
        number = float(text) if text else default
    except ValueError:
        number = -1.0
    if not 0 < number < 1e7:
        raise InvalidPropertyError(f"property {key} = {shown(key, text or '')!r}; seconds, above 0, are expected")
    return timedelta(seconds=number)


def shown(key: str, value: str) -> str:
    """The value if its key may be shown, without user and password of a URL; else three stars."""
    return _USER_INFO.sub(f"://{HIDDEN}@", value) if key in SHOWN_KEYS else HIDDEN


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as they may be printed."""
    return {key: shown(key, value) for key, value in properties.items()}


def secrets_of(properties: Mapping[str, str], *more: str | None) -> tuple[str, ...]:
    """Every value that must not appear in a message: hidden properties and credentials of the environment."""
    secrets = {value for key, value in properties.items() if key not in SHOWN_KEYS}
    secrets.update(value for name, value in os.environ.items() if _SECRET_VARIABLE.match(name))
    secrets.update(value for value in more if value)
    # Shorter ones would garble every message and protect nothing.
    return tuple(sorted((value for value in secrets if len(value) >= 4), key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, without queries and users of URLs, and without signatures."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _QUERY.sub(r"\1", text)
    text = _USER_INFO.sub(f"://{HIDDEN}@", text)
    return _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
