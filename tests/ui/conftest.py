"""The page over a small lake, served on the loopback, and a browser that looks at it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from icefloe.catalog import Catalog
from icefloe.ui.app import create_app
from icefloe.ui.gate import LOOPBACK_NAMES, TokenGate
from icefloe.ui.site import Site
from tests.catalog.rest.loopback import LoopbackServer
from tests.ui.lake import make_lake

TOKEN = "the-token-of-the-tests-0123456789"
CHROMIUM = shutil.which("chromium")


@dataclass(frozen=True)
class Served:
    """A running page."""

    url: str
    port: int
    catalog: Catalog
    site: Site

    @property
    def cookie(self) -> str:
        """What a browser keeps that was let in."""
        return f"icefloe-page-{self.port}={TOKEN}"

    def ask(self, path: str, *, method: str = "GET", cookie: str | None = None, **more: object) -> httpx.Response:
        """One request, by default of one who was let in."""
        headers = {"cookie": self.cookie if cookie is None else cookie, **more.pop("headers", {})}  # type: ignore[dict-item]  # a mapping of texts
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.request(method, f"{self.url}{path}", headers=headers, **more)  # type: ignore[arg-type]  # what httpx takes


@contextmanager
def serving(catalog: Catalog, *, is_writable: bool = False) -> Iterator[Served]:
    """The page of a catalog."""
    site = Site({"lake": catalog}, is_writable=is_writable)
    with LoopbackServer(create_app(site, TokenGate(TOKEN), hosts=LOOPBACK_NAMES)) as server:
        yield Served(server.url, server.port, catalog, site)
    site.jobs.close()


@pytest.fixture(scope="session")
def shown_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A lake that no test changes."""
    with make_lake(tmp_path_factory.mktemp("shown")) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def served(shown_lake: Catalog) -> Iterator[Served]:
    """Its page, which only reads."""
    with serving(shown_lake) as running:
        yield running


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Served]:
    """A page that may change tables, of a lake of its own."""
    with make_lake(tmp_path) as catalog, serving(catalog, is_writable=True) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. While it is open an event loop runs in this thread, which tests of other rooms must not meet."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    switches = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=switches)
        yield running
        running.close()
