"""Every page in a real browser: nothing it loads or runs is refused, axe has no serious complaint, and hostile names are text."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from icefloe.ui.visitors import Owner
from tests.ui.conftest import TOKEN, Served
from tests.ui.lake import HOSTILE, SECRET

ORDERS = "/t/lake/shop/orders"
BAD = f"/t/lake/{quote(HOSTILE, safe='')}/{quote(chr(34) + '><img src=x onerror=alert(2)>', safe='')}"
PAGES = {
    "home": "/",
    "catalog": "/c/lake",
    "namespace": "/c/lake/shop",
    "inner namespace": "/c/lake/shop%1Farchive",
    "search": "/search?q=ord",
    "about": "/about",
    "jobs": "/jobs",
    "view": "/v/lake/shop/big_orders",
    "overview": ORDERS,
    "overview of a tag": f"{ORDERS}?at=opening",
    "columns": f"{ORDERS}/columns",
    "bounds": f"{ORDERS}/columns?column=id",
    "bounds of text": f"{ORDERS}/columns?column=region",
    "nested columns": "/t/lake/shop/customers/columns",
    "data": f"{ORDERS}/data?where=id+%3C+130&column=id&column=region",
    "snapshots": f"{ORDERS}/snapshots",
    "changes": f"{ORDERS}/changes?where=id+%3C+140+or+id+%3E+5090",
    "files": f"{ORDERS}/files?order=smallest&where=record_count+%3C+30",
    "partitions": f"{ORDERS}/partitions",
    "health": f"{ORDERS}/health",
    "storage": f"{ORDERS}/storage",
    "verify": f"{ORDERS}/verify",
    "metadata file": f"{ORDERS}/metadata",
    "metadata table": f"{ORDERS}/metadata?table=files&where=record_count+%3C+28",
    "tree": f"{ORDERS}/tree",
    "properties": "/t/lake/shop/customers/properties",
    "query": f"{ORDERS}/query",
    "answer": f"{ORDERS}/query?sql={quote('SELECT region, count(*) AS n FROM shop.orders WHERE id < 150 GROUP BY region')}",
    "wrong query": f"{ORDERS}/query?sql=SELECT+FROM",
    "plan": f"{ORDERS}/run/small-files",
    "nothing": "/t/lake/shop/nothing",
    "wrong filter": f"{ORDERS}/data?where=id+%3C",
    "empty table": "/t/lake/shop/never_written",
    "empty files": "/t/lake/shop/never_written/files",
    "empty partitions": "/t/lake/shop/never_written/partitions",
    "empty data": "/t/lake/shop/never_written/data",
    "empty tree": "/t/lake/shop/never_written/tree",
    "empty changes": "/t/lake/shop/never_written/changes",
    "empty column": "/t/lake/shop/never_written/columns?column=id",
    "hostile namespace": f"/c/lake/{quote(HOSTILE, safe='')}",
    "hostile table": BAD,
    "hostile columns": f"{BAD}/columns?column={quote(HOSTILE)}",
    "hostile data": f"{BAD}/data",
    "hostile properties": f"{BAD}/properties",
    "hostile files": f"{BAD}/files",
    "hostile tree": f"{BAD}/tree?manifest={quote(HOSTILE)}",
    "hostile query": f"{BAD}/query?sql={quote('SELECT ' + chr(39) + HOSTILE + chr(39))}",
    "hostile search": f"/search?q={quote(HOSTILE)}",
    "hostile filter": f"{ORDERS}/data?where={quote(HOSTILE)}",
    "hostile error": f"/c/{quote(HOSTILE, safe='')}",
    "name with a slash": f"/t/lake/{quote(HOSTILE, safe='')}/{quote('a/b?c=d#e%2F..', safe='')}",
}
PICTURED = (
    "tree",
    "answer",
    "wrong query",
    "overview",
    "bounds",
    "data",
    "snapshots",
    "changes",
    "files",
    "partitions",
    "health",
    "storage",
    "nothing",
)
"""Pages that have every element that there is: enough to see whether other colours can be told apart."""
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
window.alert = () => window.violations.push("alert");
"""


@contextmanager
def visiting(browser: Browser, served: Served, **options: object) -> Iterator[Page]:
    """A page of a visitor that was let in; whatever the browser complains of is kept in `complaints`."""
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]  # what Playwright takes
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(f"{served.url}/?token={TOKEN}")
    try:
        yield page
    finally:
        context.close()


def settled(page: Page, served: Served, path: str) -> None:
    """Go to a page, and wait for the work that it waits for."""
    page.goto(served.url + path)
    page.wait_for_selector("[data-reload]", state="detached", timeout=30_000)


def serious_problems(page: Page, **options: object) -> list[tuple[str, ...]]:
    """What axe says of a page that keeps people from using it."""
    report = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"])
        for each in report
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("scheme", "names"), [("light", tuple(PAGES)), ("dark", PICTURED)], ids=("light", "dark"))
def test_every_page_is_accessible_and_loads_nothing_that_is_refused(
    browser: Browser, served: Served, scheme: str, names: tuple[str, ...]
) -> None:
    problems = []
    with visiting(browser, served, color_scheme=scheme) as page:
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        for name in names:
            settled(page, served, PAGES[name])
            seen = [each for each in problems if "404" not in each and "400" not in each]
            assert not seen, (name, seen)
            assert page.evaluate("window.violations") == [], name
            assert page.locator("h1").count() == 1, name
            assert page.locator("script:not([src]), [style], img").count() == 0, name
            if not name.startswith(("empty", "hostile")):
                # Those are the same pages with other words; and in the dark only colours are others.
                only = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
                assert not serious_problems(page, **only), name


@pytest.mark.slow
def test_pages_fit_a_narrow_screen(browser: Browser, served: Served) -> None:
    # 320 points are what is left of 1280 at a zoom of 400 %.
    with visiting(browser, served, viewport={"width": 320, "height": 640}) as page:
        for name, path in PAGES.items():
            settled(page, served, path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, name


def test_forms_and_themes_need_no_javascript(browser: Browser, served: Served) -> None:
    with visiting(browser, served, java_script_enabled=False) as page:
        page.goto(f"{served.url}{ORDERS}/data")
        page.get_by_label("Rows where").fill("id >= 5000 and id < 5003")
        page.get_by_role("button", name="Show").click()
        assert page.locator("table.grid tbody tr").count() == 3
        page.get_by_role("button", name="Theme:").click()
        assert page.locator("html").get_attribute("data-theme") == "light"
        assert page.url.startswith(f"{served.url}{ORDERS}/data?")


def test_a_keyboard_is_enough(browser: Browser, served: Served) -> None:
    with visiting(browser, served) as page:
        settled(page, served, "/c/lake")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.textContent") != "shop":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/c/lake/shop")
        page.keyboard.press("/")
        page.keyboard.type("orders")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?q=orders")
        assert page.get_by_role("link", name="shop.orders", exact=True).count() == 1


def test_a_check_shows_how_far_it_is_and_what_it_says(browser: Browser, served: Served) -> None:
    with visiting(browser, served) as page:
        settled(page, served, f"{ORDERS}/verify")
        page.get_by_label("metadata metadata").check()
        page.get_by_role("button", name="Verify", exact=True).click()
        page.get_by_text("Passed.").wait_for(timeout=20_000)
        assert not page.evaluate("window.violations")
        settled(page, served, "/jobs")
        # The server is shared, and other tests may have checked the table before.
        assert page.get_by_role("link", name="Verify shop.orders: metadata").first.is_visible()


def test_maintenance_is_planned_run_and_seen(browser: Browser, written: Served) -> None:
    before = written.catalog.load_table("shop.orders").inspect.manifests().num_rows
    with visiting(browser, written) as page:
        page.goto(f"{written.url}{ORDERS}/run/manifests")
        assert page.locator("pre").inner_text()
        page.get_by_role("button", name="Run now").click()
        page.get_by_text("Done in").wait_for(timeout=30_000)
    assert before > written.catalog.load_table("shop.orders").inspect.manifests().num_rows


def test_snapshots_are_tagged_and_rolled_back_to(browser: Browser, written: Served) -> None:
    table = written.catalog.load_table("shop.orders")
    opening = table.refs()["opening"].snapshot_id
    with visiting(browser, written) as page:
        page.goto(f"{written.url}{ORDERS}/snapshots?snapshot={opening}")
        page.get_by_label("Tag name").fill("again")
        page.get_by_role("button", name="Tag", exact=True).click()
        page.get_by_text("again").first.wait_for()
        page.goto(f"{written.url}{ORDERS}/snapshots?snapshot={opening}")
        page.get_by_role("button", name="Roll main back").click()
        page.wait_for_url(f"**{ORDERS}/snapshots")
    refs = table.refresh().refs()
    assert refs["again"].snapshot_id == opening
    assert refs["main"].snapshot_id == opening


def test_a_wrong_filter_can_be_corrected_in_place(browser: Browser, served: Served) -> None:
    with visiting(browser, served) as page:
        settled(page, served, f"{ORDERS}/data?limit=20&where=id+%3C")
        assert "at position" in page.locator(".error").inner_text()
        page.get_by_role("textbox", name="Where").fill("id >= 5000 and id < 5002")
        page.get_by_role("button", name="Show").click()
        page.wait_for_selector("table.grid")
        assert page.locator("table.grid tbody tr").count() == 2
        assert "limit=20" in page.url


def test_a_search_ends_in_time_and_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefloe.ui import site

    assert served.site.search(Owner(), "orders", 10)[1]
    monkeypatch.setattr(site, "_SEARCH_SECONDS", -1.0)
    monkeypatch.setattr(site, "_FRESH_SECONDS", -1.0)
    assert "did not cover all names" in served.ask("/search?q=orders").text


def test_secrets_of_properties_are_on_no_page(served: Served) -> None:
    for page in ("", "/properties", "/metadata", "/metadata?table=snapshots"):
        answer = served.ask(f"/t/lake/shop/customers{page}")
        assert answer.status_code == 200
        assert SECRET not in answer.text
    assert "crm" in served.ask("/t/lake/shop/customers/properties").text
