"""Which parts of a URL may be shown, and how a path of a server becomes a URL."""

import re
from collections.abc import Mapping

from icefloe.errors import InvalidPropertyError

HIDDEN = "***"
_SCHEMES = ("http", "https")


def shown_url(url: str) -> str:
    """A URL without what may be secret in it: user, password, query and fragment.

    All that stands before an `@` counts as user and password, since passwords are not always encoded as they should be.
    """
    scheme, _, rest = url.partition("://")
    head, _, tail = re.sub("[?#]", "?", rest).partition("?")
    if "@" in tail and "@" not in head:
        head = HIDDEN
    return f"{scheme}://{head.rpartition('@')[2]}"


def is_web_url(text: str) -> bool:
    """Whether it is a whole URL, not a path below one."""
    return text.partition("://")[0].lower() in _SCHEMES and "://" in text


def resolved_url(properties: Mapping[str, str], path: str) -> str:
    """A path below the URI of the catalog as a URL; a whole URL stays as it is."""
    if is_web_url(path):
        return path
    uri = properties.get("uri", "")
    if not is_web_url(uri):
        raise InvalidPropertyError(f"property 'uri' must be the http or https URL of a REST catalog, not {uri!r}")
    return f"{uri.rstrip('/')}/{path.lstrip('/')}"
