"""Decides how the web page is a part of a server: who looks is who calls, and sees what grants let them see.

The page is another door, which this one does not import: its module is found by its entry point.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icefloe.catalog import Catalog, Identifier
from icefloe.errors import IcefloeError, NotAuthorizedError, NotInstalledError
from icefloe.server.auth import Access
from icefloe.server.auth.audit import Outcome
from icefloe.server.auth.authenticators import ANONYMOUS
from icefloe.server.auth.protocols import Authorizer, Kind, Principal, Privilege, Target

PREFIX = "/ui"
GROUP = "icefloe.pages"
"""Entry points of this group are modules with `mount(prefix, catalogs, gate, is_secure)`."""
_OWN = "icefloe.ui.mount"


class MountedPages(Protocol):
    """What `mount` gives."""

    app: ASGIApp
    open_paths: frozenset[str]
    close: Callable[[], None]

    def credential(self, headers: Mapping[str, str]) -> str | None:
        """What the browser of a request keeps."""
        ...


@dataclass(frozen=True, slots=True)
class GrantedVisitor:
    """A principal as pages ask about it."""

    principal: Principal
    authorizer: Authorizer

    @property
    def name(self) -> str | None:
        """The principal's name, if it has shown who it is."""
        return None if self.principal == ANONYMOUS else self.principal.name

    def sees_catalog(self, catalog: str) -> bool:
        """Whether the warehouse may be listed."""
        return bool(self.authorizer.visible(self.principal, [Target(catalog)]))

    def visible(self, catalog: str, names: Sequence[Identifier], noun: str) -> Sequence[Identifier]:
        """Those of the names that may be listed."""
        targets = {_target(catalog, name, noun): name for name in names}
        return [targets[target] for target in self.authorizer.visible(self.principal, list(targets))]

    def may_read(self, catalog: str, name: Identifier, noun: str) -> bool:
        """Whether it may be read."""
        return self.authorizer.allows(self.principal, Privilege.READ, _target(catalog, name, noun))

    def check_read(self, catalog: str, name: Identifier, noun: str) -> None:
        """Fail unless it may be read, as the protocol fails."""
        self.authorizer.check(self.principal, Privilege.READ, _target(catalog, name, noun))


def _target(catalog: str, name: Identifier, noun: str) -> Target:
    if noun == Kind.NAMESPACE:
        return Target(catalog, name)
    return Target(catalog, name[:-1], name[-1], Kind(noun))


@dataclass(frozen=True, slots=True)
class ServerGate:
    """Lets in whom the server's own access control lets in."""

    access: Access

    def visitor(self, scope: Mapping[str, object], credential: str | None) -> GrantedVisitor | None:  # noqa: ARG002 - the protocol's
        """The principal that the middleware found."""
        state = scope.get("state")
        principal = state.get("principal") if isinstance(state, Mapping) else None
        return GrantedVisitor(principal, self.access.authorizer) if isinstance(principal, Principal) else None

    def accepts(self, credential: str) -> bool:
        """Whether a token is one of a principal."""
        try:
            self.access.authenticator.authenticate({"authorization": f"Bearer {credential}"})
        except NotAuthorizedError as error:
            self.access.audit.authentication(Outcome.DENIED, str(error))
            return False
        except IcefloeError:
            # Who it is cannot be looked up for now.
            return False
        return True


def mounted_pages(catalogs: Mapping[str, Catalog], access: Access, *, is_secure: bool) -> MountedPages:
    """The pages of these catalogs."""
    places = {point.name: point.value for point in entry_points(group=GROUP)}
    try:
        module = import_module(places.get("ui", _OWN))
    except ModuleNotFoundError as error:
        if (error.name or "icefloe").startswith("icefloe"):
            raise
        raise NotInstalledError(f"the web page needs the package {error.name!r}: pip install 'icefloe[ui]'") from error
    mounted: MountedPages = module.mount(PREFIX, catalogs, ServerGate(access), is_secure=is_secure)
    return mounted


def page_routes(pages: MountedPages) -> list[BaseRoute]:
    """The pages at their path."""

    async def with_slash(_: Request) -> Response:
        return RedirectResponse(f"{PREFIX}/", 303)

    return [Route(PREFIX, with_slash, methods=["GET"]), Mount(PREFIX, app=pages.app)]


class PageCredentials:
    """Browsers keep a token as a cookie of the pages alone: there, and nowhere else, it counts as `Authorization`."""

    def __init__(self, app: ASGIApp, pages: MountedPages) -> None:
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not _is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["operation"] = f"{scope['method']} {PREFIX}"
        headers = Headers(scope=scope)
        credential = self._pages.credential(headers)
        if credential is not None and "authorization" not in headers:
            bearer = (b"authorization", f"Bearer {credential}".encode("latin-1", "replace"))
            scope["headers"] = [*scope["headers"], bearer]
        is_refused = False

        async def answer(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 401 and not _is_login(scope["path"]):
                is_refused = True
                here = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
                after = here if scope["method"] == "GET" else f"{PREFIX}/"
                place = f"{PREFIX}/login?next={quote(after, safe='')}".encode()
                fields = [(b"location", place), (b"content-length", b"0"), (b"cache-control", b"no-store")]
                await send({"type": "http.response.start", "status": 303, "headers": fields})
                await send({"type": "http.response.body", "body": b""})
            elif not is_refused:
                await send(message)

        await self._app(scope, receive, answer)


def _is_page(path: str) -> bool:
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _is_login(path: str) -> bool:
    return path == f"{PREFIX}/login"
