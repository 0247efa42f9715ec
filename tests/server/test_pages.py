"""The web page as a part of a server: its tokens, its grants, and nothing of what a principal may not see."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pyarrow as pa
import pytest

from icefloe.errors import InvalidPropertyError
from icefloe.inspect import TABLE_NAMES
from icefloe.server.auth import Kind, Privilege, Target
from icefloe.server.serve import run
from icefloe.server.settings import ServerSettings
from tests.server.auth.whole_server import ABSENT, OPEN, SECRET, Reply, WholeServer, whole_server
from tests.server.running import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeServer]:
    with whole_server(tmp_path_factory.mktemp("pages"), server_settings=ServerSettings(ui=True)) as running:
        running.principal("tables", (Privilege.READ, Target("lake", (SECRET,), "t", Kind.TABLE)))
        running.principal("lister", (Privilege.LIST, Target("lake", (OPEN,))))
        yield running


def look(server: WholeServer, who: str | None, path: str, method: str = "GET", **headers: str) -> Reply:
    """A request as a browser sends it: with a cookie, and no header of authorization."""
    port = urlsplit(server.url).port
    cookie = {} if who is None else {"Cookie": f"icefloe-page-{port}={server.tokens[who]}"}
    return server.ask(None, method, path, **cookie, **headers)


def links(reply: Reply) -> set[bytes]:
    return set(re.findall(rb'href="(/ui/[ctv]/[^"?]*)', reply.body))


def test_the_page_is_there_only_if_it_is_asked_for(server: WholeServer, tmp_path: Path) -> None:
    assert look(server, "admin", "/ui/").status == 200
    assert look(server, "admin", "/ui").headers["location"] == "/ui/"
    with whole_server(tmp_path) as plain:
        assert plain.ask("admin", "GET", "/ui/").status == 404


def test_nobody_is_shown_anything_and_is_led_to_the_form(server: WholeServer) -> None:
    answer = look(server, None, "/ui/t/lake/public/t?at=main")
    assert answer.status == 303
    assert answer.headers["location"] == "/ui/login?next=%2Fui%2Ft%2Flake%2Fpublic%2Ft%3Fat%3Dmain"
    assert answer.body == b""
    form = look(server, None, "/ui/login")
    assert form.status == 200
    assert b"/ui/static/icefloe.css" in form.body
    assert look(server, None, "/ui/static/icefloe.css").status == 200


def test_a_token_is_kept_as_a_cookie_of_the_pages_alone(server: WholeServer) -> None:
    import http.client

    def sign_in(token: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}
        connection.request("POST", "/ui/login", urlencode({"token": token, "next": "/ui/c/lake"}), headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer

    good = sign_in(server.tokens["reader"])
    assert (good.status, good.headers["location"]) == (303, "/ui/c/lake")
    assert "Path=/ui/" in good.headers["set-cookie"]
    denied = len(server.records)
    bad = sign_in("wrong")
    assert bad.status == 401
    assert "set-cookie" not in bad.headers
    assert len(server.records) > denied
    # At the protocol itself a cookie is nobody: a form of another page could not use it.
    assert look(server, "admin", "/v1/lake/namespaces").status == 401
    assert look(server, "admin", "/metrics").status == 401


def test_a_role_of_one_namespace_sees_that_namespace_and_nothing_else(server: WholeServer) -> None:
    home = look(server, "reader", "/ui/")
    assert links(home) == {b"/ui/c/lake", b"/ui/c/lake/public"}
    everything = [home.body]
    for path in ("/ui/c/lake", "/ui/c/lake/public", "/ui/search?q=t", "/ui/search?q=deep", "/ui/about", "/ui/jobs"):
        answer = look(server, "reader", path)
        assert answer.status == 200, path
        everything.append(answer.body)
    shown = b"".join(everything)
    assert b"public" in shown
    assert SECRET.encode() not in shown
    assert b"other" not in shown.replace(b"another", b"")
    assert look(server, "reader", "/ui/t/lake/public/t/files").status == 200
    assert look(server, "reader", "/ui/v/lake/public/v").status == 200


@pytest.mark.parametrize("who", ["reader", "nobody", "lister"])
@pytest.mark.parametrize("path", ["c/lake/{}", "t/lake/{}/t", "t/lake/{}/t/files", "v/lake/{}/v", "c/lake/{}%1Fdeep"])
def test_what_is_hidden_looks_as_if_it_were_not_there(server: WholeServer, who: str, path: str) -> None:
    hidden, absent = (look(server, who, f"/ui/{path.format(name)}") for name in (SECRET, ABSENT))
    assert hidden.status == 404
    # Forms carry a word of their own on every page of one visitor, which is the same.
    assert hidden.about(SECRET) == absent.about(ABSENT)


def test_one_who_may_list_sees_names_and_no_more(server: WholeServer) -> None:
    listed = look(server, "lister", "/ui/c/lake/public")
    assert b"no permission to read this table" in listed.body
    assert look(server, "lister", "/ui/t/lake/public/t").status == 403


def test_a_grant_on_one_table_shows_that_table(server: WholeServer) -> None:
    shown = look(server, "tables", f"/ui/c/lake/{SECRET}")
    assert links(shown) >= {f"/ui/t/lake/{SECRET}/t".encode()}
    assert b"/v/lake" not in shown.body
    assert look(server, "tables", f"/ui/t/lake/{SECRET}/t").status == 200
    assert look(server, "tables", f"/ui/v/lake/{SECRET}/v").status == 404
    assert look(server, "tables", f"/ui/t/lake/{SECRET}%1Fdeep/t").status == 404


def test_pages_of_a_server_write_nothing(server: WholeServer) -> None:
    location = server.catalog.load_table((OPEN, "t")).metadata_location
    for path in ("run/manifests", "rollback", "tag"):
        assert look(server, "admin", f"/ui/t/lake/public/t/{path}", "POST", Origin=server.url).status in (404, 405)
    assert server.catalog.load_table((OPEN, "t")).metadata_location == location


def test_no_data_file_is_opened_for_anybody(tmp_path: Path) -> None:
    """A table may name files of another: its reader must not get their rows from the server."""
    hidden = "a value of a table that is hidden"
    with whole_server(tmp_path, server_settings=ServerSettings(ui=True)) as server:
        secret = server.catalog.create_table((SECRET, "words"), "word string")
        secret.append(pa.table({"word": [hidden, hidden]}))
        public = server.catalog.create_table((OPEN, "words"), "word string")
        public.add_files(secret.inspect.files().column("file_path").to_pylist())
        assert public.scan().count() == 2
        place = "/ui/t/lake/public/words"
        tables = "".join(f" metadata?table={name}" for name in TABLE_NAMES if name != "position_deletes")
        pages = f"columns columns?column=word snapshots changes files partitions health storage verify metadata{tables}"
        for page in ("", *(f"/{name}" for name in pages.split())):
            answer = look(server, "reader", place + page)
            assert answer.status == 200, page
            # Bounds of text are cut, and are in the manifests that readers get anyway.
            assert hidden.encode() not in answer.body, page
        for page in ("data", "data?where=true", "metadata?table=position_deletes"):
            assert look(server, "reader", f"{place}/{page}").status == 403
        checks = look(server, "reader", f"{place}/verify").body
        assert re.findall(rb'name="level" value="(\w+)"', checks) == [b"metadata"]


def test_an_open_server_shows_pages_to_its_own_machine_alone(tmp_path: Path) -> None:
    from icefloe.catalog import load_catalog

    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    with serving({"lake": catalog}, ServerSettings(ui=True)) as client:
        assert "ns" in client.http.get(f"{client.url}/ui/").text
        assert client.http.get(f"{client.url}/ui/", headers={"host": "evil.example"}).status_code == 403


def test_several_processes_serve_no_page() -> None:
    import argparse

    from icefloe.server.serve import add_arguments

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(InvalidPropertyError, match="one process"):
        run(parser.parse_args(["--ui", "--workers", "2"]))
