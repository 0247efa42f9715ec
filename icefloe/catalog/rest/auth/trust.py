"""Decides which properties a server may not change, although its configuration overrides those of the client.

A catalog server sees tokens that are meant for it. It does not see the secret that gets them from another server, nor may it choose
code to import, files to read, a proxy, or a connection without encryption.
"""

import logging
from collections.abc import Mapping

from icefloe.catalog.rest.auth.settings import CREDENTIAL, ENDPOINT
from icefloe.catalog.rest.auth.urls import is_web_url, shown_url
from icefloe.errors import InvalidPropertyError

LOG = logging.getLogger("icefloe.catalog.rest")

_OWN = frozenset((CREDENTIAL, "rest.sigv4-enabled", "client.profile-name", "metrics-reporter-impl"))
_OWN_PREFIXES = ("rest.auth.", "rest.client.proxy.", "rest.client.tls.", "gcp.auth.", "ssl.", "openlineage.")


def trusted_properties(given: Mapping[str, str], merged: Mapping[str, str]) -> dict[str, str]:
    """The merged properties, in which those that say who the client is, and to whom, are the user's own.

    Args:
        given: what the user said.
        merged: the same with the server's defaults and overrides.
    """
    names = {key for key in merged if _is_own(key)} | {ENDPOINT if given.get(ENDPOINT) else CREDENTIAL}
    ignored = sorted(key for key in names if merged.get(key) != given.get(key))
    if ignored:
        LOG.warning("the server's configuration of %s is ignored: only the user may set that", ", ".join(ignored))
    trusted = {key: value for key, value in merged.items() if key not in names}
    trusted.update((key, value) for key, value in given.items() if key in names or _is_own(key))
    for key in ("uri", ENDPOINT):
        _refuse_plain_text(key, given.get("uri", ""), given.get(key), trusted.get(key, ""))
    return trusted


def _is_own(key: str) -> bool:
    return key in _OWN or key.startswith(_OWN_PREFIXES)


def _refuse_plain_text(key: str, uri: str, given: str | None, trusted: str) -> None:
    """Fail if the server moves a client that spoke TLS to a place without it."""
    if trusted == given or not is_web_url(trusted):
        return
    if uri.lower().startswith("https:") and not trusted.lower().startswith("https:"):
        raise InvalidPropertyError(
            f"the server of {shown_url(uri)} sets {key!r} to {shown_url(trusted)}, where credentials would go unencrypted;"
            f" set {key!r} yourself if this is intended"
        )
