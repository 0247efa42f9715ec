"""Decides how the parts of a server are put together into one ASGI application."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from icefloe.catalog import Catalog
from icefloe.server import auth, pages, routes_status
from icefloe.server.file_access import WarehouseFiles
from icefloe.server.management_operations import management_operations, undropping_operations
from icefloe.server.planning import PlanningService, PlanningSettings, PlanOperations
from icefloe.server.routes import CatalogRoutes, error_answer, not_allowed, not_there
from icefloe.server.routes_catalog import LOAD_TABLE, OPERATIONS
from icefloe.server.server import Server
from icefloe.server.settings import ServerSettings

LOG = logging.getLogger("icefloe.server")
_TIDY_SECONDS = 600
_DELIVERY_SECONDS = 1


def create_app(
    catalogs: Mapping[str, Catalog],
    settings: ServerSettings | None = None,
    access: auth.Access | None = None,
    files: WarehouseFiles | None = None,
) -> Starlette:
    """The application of a server for these catalogs; without access control everybody may do everything."""
    settings, access = settings or ServerSettings(), access or auth.open_access()
    files = files or WarehouseFiles({})
    plans = PlanOperations(PlanningService(_planning(settings)))
    protocol = (*OPERATIONS, *files.operations(), *plans.operations())
    operations = (*protocol, *management_operations())
    server = Server(catalogs, settings)
    server.offer((*protocol, *undropping_operations()), files)
    metrics = routes_status.Metrics(server)
    catalog_routes = CatalogRoutes(server, access.authorizer, files)
    web = _pages(catalogs, settings, access)
    app = Starlette(
        routes=[
            *catalog_routes.routes(operations),
            *auth.routes(access),
            *routes_status.routes(server, metrics, access.authorizer),
            *([] if web is None else pages.page_routes(web)),
        ],
        middleware=[
            Middleware(routes_status.Observer, metrics=metrics, slow_seconds=settings.slow_request.total_seconds()),
            *([] if web is None else [Middleware(pages.PageCredentials, pages=web)]),
            Middleware(
                auth.AccessMiddleware,
                access=access,
                open_paths=routes_status.OPEN_PATHS
                | {auth.TOKENS_PATH}
                | (frozenset() if web is None else web.open_paths),
            ),
            catalog_routes.direct(LOAD_TABLE),
        ],
        exception_handlers={404: _nothing_there, 405: _not_allowed, Exception: _failed},
        lifespan=lambda _: _lifespan(server, plans, web, metrics),
    )
    # A name may end in a slash, and that is another name.
    app.router.redirect_slashes = False
    return app


def _pages(catalogs: Mapping[str, Catalog], settings: ServerSettings, access: auth.Access) -> pages.MountedPages | None:
    if not settings.ui:
        return None
    return pages.mounted_pages(catalogs, access, is_secure=settings.tls_certificate is not None)


def _planning(settings: ServerSettings) -> PlanningSettings:
    seconds = settings.plan_wait.total_seconds()
    return PlanningSettings(settings.plan_page_files, wait_seconds=seconds, workers=settings.plan_threads)


@asynccontextmanager
async def _lifespan(
    server: Server, plans: PlanOperations, web: pages.MountedPages | None, metrics: routes_status.Metrics
) -> AsyncIterator[None]:
    await run_sync(server.prepare)
    tasks = [asyncio.create_task(_repeat(server.tidy, _TIDY_SECONDS))]
    if server.settings.webhook is not None:
        tasks.append(asyncio.create_task(_repeat(server.deliver, _DELIVERY_SECONDS)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        metrics.tell()
        plans.close()
        if web is not None:
            web.close()
        server.close()


async def _repeat(work: Callable[[], object], seconds: float) -> None:
    """Do some work from time to time, whatever happens to it."""
    while True:
        try:
            await run_sync(work)
        except Exception:
            LOG.exception("a task in the background failed; it is tried again")
        await asyncio.sleep(seconds)


async def _nothing_there(request: Request, _: Exception) -> Response:
    return not_there(request)


async def _not_allowed(request: Request, _: Exception) -> Response:
    return not_allowed(request)


async def _failed(request: Request, error: Exception) -> Response:
    return error_answer(error, request)
