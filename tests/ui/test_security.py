"""Attacks on the page: other hosts, forms of other pages, wrong tokens, paths that lead elsewhere, and writes to a page that reads."""

import http.client
import re

import pytest

from icefloe.ui.gate import HEADERS
from tests.ui.conftest import TOKEN, Served

ORDERS = "/t/lake/shop/orders"


def form_key(served: Served) -> str:
    match = re.search(r'name="key" value="([0-9a-f]{64})"', served.ask("/about").text)
    assert match is not None
    return match[1]


def raw(served: Served, path: str, host: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in {"Host": host, "Cookie": served.cookie, **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    status, body = answer.status, answer.read().decode()
    connection.close()
    return status, body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1"])
def test_other_names_of_the_host_are_refused_even_with_the_cookie(served: Served, host: str) -> None:
    status, body = raw(served, ORDERS, host)
    assert status in (400, 403)
    assert "orders" not in body


def test_own_names_of_the_host_are_answered(served: Served) -> None:
    for host in (f"127.0.0.1:{served.port}", f"localhost:{served.port}", f"[::1]:{served.port}"):
        assert raw(served, "/about", host)[0] == 200


@pytest.mark.parametrize(
    "cookie",
    ["", "icefloe-page-{port}=wrong", "icefloe-page-{port}=", "icefloe-page-1={token}", "icefloe-page-{port}=\u00e9"],
)
def test_nothing_is_shown_without_the_token(served: Served, cookie: str) -> None:
    given = cookie.format(port=served.port, token=TOKEN).encode()
    for path in ("/", ORDERS, f"{ORDERS}/data", "/search?q=o", "/jobs", "/about", "/no/such/page"):
        answer = served.ask(path, headers={"cookie": given})
        assert answer.status_code == 401
        assert "orders" not in answer.text.replace("/t/lake/shop/orders", "")
        assert "Sign in" in answer.text


def test_a_token_in_the_address_is_taken_out_of_it_and_kept_out_of_scripts(served: Served) -> None:
    answer = served.ask(f"{ORDERS}?token={TOKEN}", cookie="", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == ORDERS
    kept = answer.headers["set-cookie"].lower()
    assert all(word in kept for word in ("httponly", "samesite=strict", "path=/"))
    assert served.ask(f"{ORDERS}?token=wrong", cookie="").status_code == 401


def test_a_wrong_token_is_not_let_in_by_the_form(served: Served) -> None:
    origin = {"origin": served.url}
    wrong = served.ask("/login", method="POST", cookie="", data={"token": "wrong"}, headers=origin)
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    right = {"token": TOKEN, "next": "//evil.example/"}
    answer = served.ask("/login", method="POST", cookie="", data=right, headers=origin, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    elsewhere = served.ask("/login", method="POST", cookie="", data=right, headers={"origin": "https://evil.example"})
    assert elsewhere.status_code == 403


FORMS = (f"{ORDERS}/verify", f"{ORDERS}/health", "/theme", "/logout")


@pytest.mark.parametrize("path", FORMS)
def test_forms_of_other_pages_are_refused(served: Served, path: str) -> None:
    key, fields = form_key(served), {"level": "metadata", "theme": "dark"}
    jobs = len(served.site.jobs.listed())
    attempts: tuple[tuple[dict[str, str], dict[str, str]], ...] = (
        ({**fields, "key": key}, {"origin": "https://evil.example"}),
        ({**fields, "key": key}, {"origin": "null"}),
        ({**fields, "key": key}, {}),
        ({**fields, "key": key}, {"origin": f"http://127.0.0.1:{served.port + 1}"}),
        (fields, {"origin": served.url}),
        ({**fields, "key": "0" * 64}, {"origin": served.url}),
        ({**fields, "key": "é"}, {"origin": served.url}),
        ({**fields, "key": key, "filling": "x" * 100_000}, {"origin": served.url}),
    )
    for data, headers in attempts:
        answer = served.ask(path, method="POST", data=data, headers=headers)
        assert answer.status_code == 403, (data.keys(), headers)
    assert len(served.site.jobs.listed()) == jobs
    ours = served.ask(
        path, method="POST", data={**fields, "key": key}, headers={"origin": served.url}, follow_redirects=False
    )
    assert ours.status_code == 303


def test_a_page_that_reads_has_no_way_to_write(served: Served) -> None:
    table = served.catalog.load_table("shop.orders")
    before = table.metadata_location
    data = {"key": form_key(served), "snapshot": str(table.refs()["opening"].snapshot_id), "name": "x"}
    for path in ("/rollback", "/tag", "/run/small-files", "/run/manifests"):
        answer = served.ask(f"{ORDERS}{path}", method="POST", data=data, headers={"origin": served.url})
        assert answer.status_code in (404, 405), path
    assert table.refresh().metadata_location == before
    assert "Run now" not in served.ask(f"{ORDERS}/run/small-files").text


def test_a_page_that_writes_refuses_forms_of_others(written: Served) -> None:
    table = written.catalog.load_table("shop.orders")
    before = table.metadata_location
    data = {"key": form_key(written), "snapshot": str(table.refs()["opening"].snapshot_id), "name": "x"}
    for path in ("/rollback", "/tag", "/run/manifests"):
        for headers in ({"origin": "https://evil.example"}, {}):
            answer = written.ask(f"{ORDERS}{path}", method="POST", data=data, headers=headers)
            assert answer.status_code == 403
        bare = {name: value for name, value in data.items() if name != "key"}
        assert (
            written.ask(f"{ORDERS}{path}", method="POST", data=bare, headers={"origin": written.url}).status_code == 403
        )
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/..%5capp.py",
        "/static/%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/static/icefloe.css%00.py",
        "/static/",
        "/../../etc/passwd",
        "/t/lake/..%2f..%2f/etc%2fpasswd",
    ],
)
def test_paths_lead_nowhere_else(served: Served, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("GET", path, headers={"cookie": served.cookie})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status in (400, 404)
    assert b"import" not in body
    assert b"root:" not in body


def test_every_answer_has_the_headers_that_keep_pages_closed(served: Served) -> None:
    for path in ("/", ORDERS, "/nothing", "/static/icefloe.css", "/static/nothing", "/login"):
        answer = served.ask(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (path, name)
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert served.ask(ORDERS).headers["cache-control"] == "no-store"
    assert served.ask("/", cookie="").headers["content-security-policy"] == HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("/data?limit=100000000", 400),
        ("/data?limit=-1", 400),
        ("/files?order=drop", 400),
        ("/files?from=99999999999999999999", 400),
        ("/metadata?table=../secrets", 400),
        ("/columns?column=nothing", 404),
        ("/snapshots?snapshot=1", 404),
        ("/snapshots?snapshot=%C2%B2", 400),
        ("/snapshots?of=nothing", 404),
        ("/changes?from=nothing", 404),
        ("?at=nothing", 404),
        ("/run/drop-table", 404),
        ("/data?where=no_such_column%3D1", 404),
    ],
)
def test_questions_that_mean_nothing_are_answered_as_such(served: Served, query: str, status: int) -> None:
    assert served.ask(ORDERS + query).status_code == status
