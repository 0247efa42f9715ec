"""The log of a server: lines of JSON that say what took long, and hold no secret."""

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from icefloe.catalog import load_catalog
from icefloe.server.logs import JsonFormatter
from icefloe.server.settings import ServerSettings
from tests.server.running import Client, commit, serving


class Lines(logging.Handler):
    """Keeps what would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def log() -> Iterator[Lines]:
    lines, logger = Lines(), logging.getLogger("icefloe.server")
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    yield lines
    logger.setLevel(before)
    logger.removeHandler(lines)


def client_of(folder: Path) -> Iterator[Client]:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/lake.db", warehouse=str(folder / "warehouse"))
    with serving({"lake": catalog}, ServerSettings(slow_request=timedelta(0))) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        yield client


def test_slow_requests_are_logged_with_their_parts(log: Lines, tmp_path: Path) -> None:
    for client in client_of(tmp_path):
        client.create()
        client.ask("POST", "namespaces/ns/tables/t", commit({"p": "1"}), {"X-Request-Id": "mine"})
    [line] = [line for line in log.lines if line.get("request") == "mine"]
    assert (line["method"], line["path"], line["status"]) == ("POST", "/v1/lake/namespaces/ns/tables/t", 200)
    assert isinstance(line["parts"], dict)
    assert {"body", "decode", "read", "apply", "write", "swap", "metadata"} <= line["parts"].keys()


def test_no_secret_is_in_the_log(log: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("cannot reach s3://user:hidden42@bucket/x?X-Amz-Signature=hidden42")

    for client in client_of(tmp_path):
        headers = {"Authorization": "Bearer hidden42", "X-Request-Id": "a b hidden42"}
        client.ask("GET", "namespaces/ns/tables/t", headers=headers)
        client.ask("POST", "namespaces/ns/tables", b'{"name": "t", "secret": "hidden42"}', headers)
        monkeypatch.setattr("icefloe.catalog.sql.SqlCatalog.list_tables", fail)
        client.ask("GET", "namespaces/ns/tables?token=hidden42", headers=headers)
    assert [line for line in log.lines if line["level"] == "ERROR"]
    assert "hidden42" not in json.dumps(log.lines)
