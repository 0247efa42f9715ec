"""The page of a catalog server in a real browser: sign in with a token, see what grants allow, sign out."""

from pathlib import Path

from playwright.sync_api import Browser

from icefloe.server.settings import ServerSettings
from tests.server.auth.whole_server import OPEN, SECRET, whole_server
from tests.ui.test_pages import serious_problems


def test_a_principal_signs_in_looks_and_signs_out(browser: Browser, tmp_path: Path) -> None:
    with whole_server(tmp_path, server_settings=ServerSettings(ui=True)) as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{server.url}/ui/t/lake/{OPEN}/t/columns")
        assert page.url.startswith(f"{server.url}/ui/login")
        assert not serious_problems(page)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        assert page.get_by_role("alert").inner_text() == "Invalid token."
        page.get_by_label("Token").fill(server.tokens["reader"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"**/ui/t/lake/{OPEN}/t/columns")
        page.get_by_role("link", name="lake", exact=True).click()
        assert page.get_by_role("link", name=OPEN, exact=True).count() == 1
        assert SECRET not in page.content()
        assert page.goto(f"{server.url}/ui/c/lake/{SECRET}").status == 404  # type: ignore[union-attr]  # it answers
        # A server opens no data files for a page: there is neither the box for queries nor the page behind it.
        page.goto(f"{server.url}/ui/t/lake/{OPEN}/t/tree")
        assert page.get_by_role("link", name="Tree", exact=True).count() == 1
        assert page.get_by_role("link", name="Query", exact=True).count() == 0
        refused = page.goto(f"{server.url}/ui/t/lake/{OPEN}/t/query?sql=SELECT+1")
        assert refused is not None
        assert refused.status == 403
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/ui/login")
        page.goto(f"{server.url}/ui/c/lake")
        assert "/ui/login" in page.url
        context.close()
