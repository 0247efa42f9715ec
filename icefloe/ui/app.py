"""Routes, request handling and error pages: the application that both `icefloe ui` and the server serve."""

import logging
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from icefloe import errors
from icefloe.ui.asking import COOKIE, THEME, Page, render_bare, told
from icefloe.ui.gate import FormKeys, Hardened, is_own_origin
from icefloe.ui.pages import browse, care, changes, columns, contents, history, overview, query, rows, tree
from icefloe.ui.site import Site
from icefloe.ui.visitors import Gate

LOG = logging.getLogger("icefloe.ui")
Handler = Callable[[Page], Response]

_TABLE = "/t/{catalog}/{namespace}/{table}"
_FORM_BYTES = 64 << 10
_STATIC = {"icefloe.css": "text/css", "icefloe.js": "text/javascript", "icefloe.svg": "image/svg+xml"}
OPEN_PATHS = ("/login", *(f"/static/{name}" for name in _STATIC))
"""Paths that need no sign-in."""

_READ: dict[str, Handler] = {
    "/": browse.home,
    "/search": browse.search,
    "/about": browse.about,
    "/jobs": care.jobs,
    "/jobs/{number:int}": care.job,
    "/c/{catalog}": browse.catalog,
    "/c/{catalog}/{namespace}": browse.namespace,
    "/v/{catalog}/{namespace}/{view}": browse.view,
    _TABLE: overview.overview,
    f"{_TABLE}/columns": columns.columns,
    f"{_TABLE}/snapshots": history.snapshots,
    f"{_TABLE}/files": contents.files,
    f"{_TABLE}/partitions": contents.partitions,
    f"{_TABLE}/metadata": contents.metadata,
    f"{_TABLE}/tree": tree.tree,
    f"{_TABLE}/data": rows.data,
    f"{_TABLE}/query": query.query,
    f"{_TABLE}/changes": changes.changes,
    f"{_TABLE}/health": care.health,
    f"{_TABLE}/storage": care.storage,
    f"{_TABLE}/verify": care.verify,
    f"{_TABLE}/properties": overview.properties,
    f"{_TABLE}/run/{{step}}": care.plan,
}
_POSTED: dict[str, Handler] = {
    f"{_TABLE}/verify": care.start_verify,
    f"{_TABLE}/health": care.check_again,
}
_WRITING: dict[str, Handler] = {
    f"{_TABLE}/run/{{step}}": care.start_step,
    f"{_TABLE}/rollback": history.rollback,
    f"{_TABLE}/tag": history.tag,
}
"""Paths that change tables; they exist only if the site is writable."""


def create_app(site: Site, gate: Gate, *, hosts: frozenset[str] | None, is_secure: bool = False) -> Starlette:
    """Create the application; `hosts` are the allowed host names, None if the mounting server checks them."""
    pages = _Pages(site, gate, is_secure)
    writing = _WRITING if site.is_writable else {}
    routes = [Route(path, pages.shown(handler), methods=["GET"]) for path, handler in _READ.items()]
    routes += [Route(path, pages.posted(handler), methods=["POST"]) for path, handler in (_POSTED | writing).items()]
    routes += [
        Route("/login", pages.login, methods=["GET", "POST"]),
        Route("/logout", pages.logout, methods=["POST"]),
        Route("/theme", pages.theme, methods=["POST"]),
        Route("/static/{name}", _static, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Hardened, hosts=hosts)],
        exception_handlers={404: pages.missing, 405: pages.missing},
    )
    app.router.redirect_slashes = False
    return app


class _Pages:
    """Turns requests into pages: authentication, form protection and error pages."""

    def __init__(self, site: Site, gate: Gate, is_secure: bool) -> None:
        self._site = site
        self._gate = gate
        self._keys = FormKeys()
        self._is_secure = is_secure

    def shown(self, handler: Handler) -> Callable[[Request], object]:
        """Wrap a handler of GET requests."""

        async def answer(request: Request) -> Response:
            token = request.query_params.get("token")
            if token is not None and self._gate.accepts(token):
                return self._kept(request, RedirectResponse(request.url.path, 303), token)
            return await self._answer(request, handler, {})

        return answer

    def posted(self, handler: Handler) -> Callable[[Request], object]:
        """Wrap a handler of form posts."""

        async def answer(request: Request) -> Response:
            form = await _form(request)
            if not self._is_ours(request, form):
                return render_bare(request, "refused.html", 403)
            return await self._answer(request, handler, form)

        return answer

    async def missing(self, request: Request, _: Exception) -> Response:
        """Return the page for unknown paths."""
        return await self._answer(request, partial(_failed, error=errors.NoSuchObjectError("page not found")), {})

    async def login(self, request: Request) -> Response:
        """Ask for a credential and store it in a cookie if it is valid."""
        if request.method == "GET":
            return render_bare(
                request, "login.html", 200, next=_local(request.query_params.get("next", "")), wrong=False
            )
        form = await _form(request)
        after = _local(form.get("next", ""))
        credential = form.get("token", "").strip()
        if not is_own_origin(request.headers):
            return render_bare(request, "refused.html", 403)
        if not credential or not await run_in_threadpool(self._gate.accepts, credential):
            return render_bare(request, "login.html", 401, next=after, wrong=True)
        root = str(request.scope.get("root_path", "")).rstrip("/")
        return self._kept(request, RedirectResponse(after or f"{root}/", 303), credential)

    async def logout(self, request: Request) -> Response:
        """Remove the credential cookie."""
        if not self._is_ours(request, await _form(request)):
            return render_bare(request, "refused.html", 403)
        root = str(request.scope.get("root_path", "")).rstrip("/")
        answer = RedirectResponse(f"{root}/login", 303)
        answer.delete_cookie(_cookie(request), path=f"{root}/")
        return answer

    async def theme(self, request: Request) -> Response:
        """Store the theme in a cookie."""
        form = await _form(request)
        if not self._is_ours(request, form):
            return render_bare(request, "refused.html", 403)
        root = str(request.scope.get("root_path", "")).rstrip("/")
        answer = RedirectResponse(_local(form.get("next", "")) or f"{root}/", 303)
        chosen = form.get("theme", "")
        if chosen in ("light", "dark"):
            answer.set_cookie(THEME, chosen, max_age=31_536_000, path=f"{root}/", samesite="strict", httponly=True)
        else:
            answer.delete_cookie(THEME, path=f"{root}/")
        return answer

    async def _answer(self, request: Request, handler: Handler, form: dict[str, str]) -> Response:
        credential = request.cookies.get(_cookie(request))
        visitor = await run_in_threadpool(self._gate.visitor, request.scope, credential)
        if visitor is None:
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            after = here if request.method == "GET" else ""
            return render_bare(request, "login.html", 401, next=_local(after), wrong=False)
        page = Page(self._site, request, visitor, self._keys.of(credential), form)
        return await run_in_threadpool(_run, handler, page)

    def _is_ours(self, request: Request, form: dict[str, str]) -> bool:
        credential = request.cookies.get(_cookie(request))
        return is_own_origin(request.headers) and self._keys.fits(form.get("key", ""), credential)

    def _kept(self, request: Request, answer: Response, credential: str) -> Response:
        root = str(request.scope.get("root_path", "")).rstrip("/")
        answer.set_cookie(
            _cookie(request), credential, path=f"{root}/", httponly=True, samesite="strict", secure=self._is_secure
        )
        return answer


def _run(handler: Handler, page: Page) -> Response:
    try:
        return handler(page)
    except Exception as error:
        if not isinstance(error, errors.IcefloeError):
            LOG.exception("request failed")
        return _failed(page, error=error)


def _failed(page: Page, *, error: BaseException) -> Response:
    status, title, message = told(error)
    return page.render("error.html", status, title=title, message=message)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a small form; none of a larger one."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def cookie_of(host: str) -> str:
    """Return the cookie name for a server: browsers share cookies across ports, so the name includes the port."""
    _, _, port = host.rpartition(":")
    return f"{COOKIE}-{port if port.isascii() and port.isdigit() else 0}"


def _cookie(request: Request) -> str:
    return cookie_of(request.headers.get("host", ""))


def _local(path: str) -> str:
    """Return a path to redirect to if it is on this site, otherwise nothing."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_local else ""


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return Response("file not found\n", 404, media_type="text/plain")
    content = files("icefloe.ui").joinpath("static", name).read_bytes()
    return Response(content, headers={"cache-control": "max-age=3600"}, media_type=_STATIC[name])
