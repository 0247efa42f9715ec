"""The web page mounted in a server: the server authenticates visitors, the page manages the browser's credential cookie."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import cookie_parser
from starlette.types import ASGIApp

from icefloe.catalog import Catalog
from icefloe.ui.app import OPEN_PATHS, cookie_of, create_app
from icefloe.ui.site import Site
from icefloe.ui.visitors import Gate


@dataclass(frozen=True)
class Mounted:
    """Pages under a path of a server."""

    app: ASGIApp
    open_paths: frozenset[str]
    """Paths that need no sign-in: the login form and static files."""
    close: Callable[[], None]

    def credential(self, headers: Mapping[str, str]) -> str | None:
        """Return the credential cookie of a request; header names are lower case."""
        cookies = cookie_parser(headers.get("cookie", ""))
        return cookies.get(cookie_of(headers.get("host", "")))


def mount(prefix: str, catalogs: Mapping[str, Catalog], gate: Gate, *, is_secure: bool) -> Mounted:
    """Mount read-only pages that show only metadata; changes go through the REST protocol, where the server audits them."""
    site = Site(catalogs, shows_rows=False)
    app = create_app(site, gate, hosts=None, is_secure=is_secure)
    return Mounted(app, frozenset(f"{prefix}{path}" for path in OPEN_PATHS), site.jobs.close)
