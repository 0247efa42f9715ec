"""The page as a part of a server: the server says who looks, and the page what a browser keeps to be let in again."""

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
    """Pages below a path of a server."""

    app: ASGIApp
    open_paths: frozenset[str]
    """What is answered to anybody: the form for a token, and what it needs to look good."""
    close: Callable[[], None]

    def credential(self, headers: Mapping[str, str]) -> str | None:
        """What the browser of a request keeps; names of headers are in lower case."""
        cookies = cookie_parser(headers.get("cookie", ""))
        return cookies.get(cookie_of(headers.get("host", "")))


def mount(prefix: str, catalogs: Mapping[str, Catalog], gate: Gate, *, is_secure: bool) -> Mounted:
    """Pages that only read, and only metadata; changes go the way of the protocol, where the server records them."""
    site = Site(catalogs, shows_rows=False)
    app = create_app(site, gate, hosts=None, is_secure=is_secure)
    return Mounted(app, frozenset(f"{prefix}{path}" for path in OPEN_PATHS), site.jobs.close)
