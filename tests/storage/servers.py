"""Real servers on the loopback for tests: an S3 store that logs its requests, and one that refuses and tells all."""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from icefloe.storage import Storage

SECRET = "sEcReT/kEy+that=must-not-show"
ACCESS_KEY = "AKIDTHATMUSTNOTSHOW"


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc]  # moto ships no types
    def log(self, *args: Any) -> None:
        """Say nothing."""


class S3Server:
    """moto's S3 behind a lock: requests are served one after the other, so that a conditional put is atomic."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_QuietHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.requests: list[tuple[str, str, str]] = []
        self.ignores_conditions = False
        self.answers_to_lose = 0
        self.deletes_to_slow_down = 0

    def _serve(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with self._lock:
            self.requests.append(
                (environ["REQUEST_METHOD"], environ.get("HTTP_RANGE", ""), environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""))
            )
            if self.ignores_conditions:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            if self.deletes_to_slow_down and environ["REQUEST_METHOD"] == "POST":
                self.deletes_to_slow_down -= 1
                return _slow_down(environ, start_response)
            if self.answers_to_lose:
                self.answers_to_lose -= 1
                list(self._app(environ, lambda *_: None))
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return []
            return list(self._app(environ, start_response))

    def properties(self) -> dict[str, str]:
        """Properties with which a Storage reaches the server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def client(self) -> Any:
        """A client of another make, to look from outside, in a `with` block."""
        import boto3

        return closing(
            boto3.client(
                "s3",
                endpoint_url=self.endpoint,
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET,
                region_name="us-east-1",
            )
        )

    def new_bucket(self) -> str:
        """A fresh bucket's name."""
        name = f"bucket-{uuid4().hex}"
        with self.client() as client:
            client.create_bucket(Bucket=name)
        return name

    def storage(self) -> Storage:
        """A Storage that reaches the server."""
        return Storage(self.properties())

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _slow_down(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The answer of S3 that a deletion of many went well, but for each of them."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    errors = "".join(
        f"<Error><Key>{key}</Key><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
        for key in re.findall("<Key>([^<]*)</Key>", body)
    )
    answer = f'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>{errors}</DeleteResult>'.encode()
    start_response("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(answer)))])
    return [answer]


class _Blabber(BaseHTTPRequestHandler):
    def _refuse(self) -> None:
        self.server.seen.append((self.command, dict(self.headers.items())))  # type: ignore[attr-defined]  # a RefusingServer
        body = f"refused {self.command} {self.path}\n{self.headers}".encode()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _refuse  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - name of the base class
        """Say nothing."""


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


class RefusingServer(ThreadingHTTPServer):
    """A server that refuses every request and sends its URL and headers back."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Blabber)
        self.seen: list[tuple[str, dict[str, str]]] = []

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def refusing_server() -> Iterator[RefusingServer]:
    server = RefusingServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
