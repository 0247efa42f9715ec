"""Real servers on the loopback for tests: an S3 store that logs its requests, and one that refuses and tells all."""

import hashlib
import hmac
import io
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from icefloe.storage import SignedRequest, SignRequest, Storage

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
        self.checks_signatures = False
        self.judge: Callable[[str, str], str | None] = lambda path, token: None
        """Why a path is refused to a session token, as S3 names it; None if it is not."""

    def _serve(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with self._lock:
            self.requests.append(
                (environ["REQUEST_METHOD"], environ.get("HTTP_RANGE", ""), environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""))
            )
            problem = self.judge(environ["PATH_INFO"], environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""))
            if self.checks_signatures and not _is_signed(environ, SECRET):
                problem = "SignatureDoesNotMatch"
            if problem is not None:
                return _refusal(environ, start_response, problem)
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

    def signed_storage(self) -> Storage:
        """A Storage that reaches the server without keys: somebody else signs."""
        properties = {"s3.endpoint": self.endpoint, "s3.region": "us-east-1", "s3.remote-signing-enabled": "true"}
        return Storage(properties, sign=KeyHolder())

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _is_signed(environ: dict[str, Any], secret: str) -> bool:
    """Whether a request, as it arrived, has the signature that S3 computes for it (Signature Version 4, in headers)."""
    pattern = r"AWS4-HMAC-SHA256 Credential=([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=(\w+)"
    match = re.fullmatch(pattern, environ.get("HTTP_AUTHORIZATION", ""))
    if match is None:
        return False
    _, day, region, service, _ = match[1].rsplit("/", 4)
    values = {name: environ.get("HTTP_" + name.upper().replace("-", "_"), "") for name in match[2].split(";")}
    values |= {name: environ.get(name.upper().replace("-", "_"), "") for name in ("content-length", "content-type")}
    path, _, query = environ["RAW_URI"].partition("?")
    parameters = sorted(part if "=" in part else f"{part}=" for part in query.split("&") if part)
    lines = [f"{name}:{' '.join(values[name].split())}" for name in match[2].split(";")]
    content = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    if not content.startswith(("UNSIGNED-PAYLOAD", "STREAMING-")):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if hashlib.sha256(body).hexdigest() != content:
            return False
    whole = "\n".join([environ["REQUEST_METHOD"], path, "&".join(parameters), *lines, "", match[2], content])
    signed = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            environ.get("HTTP_X_AMZ_DATE", ""),
            f"{day}/{region}/{service}/aws4_request",
            hashlib.sha256(whole.encode()).hexdigest(),
        ]
    )
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, signed.encode(), "sha256").hexdigest() == match[3]


def _refusal(environ: dict[str, Any], start_response: Any, code: str) -> list[bytes]:
    """The answer of S3 to credentials that it does not take; that to HEAD has no body."""
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    body = f"<Error><Code>{code}</Code><Message>refused</Message></Error>".encode()
    start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


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


@dataclass(frozen=True)
class KeyHolder:
    """A catalog that signs every request; a value, so that a storage with it can be pickled."""

    is_reusable: bool = True

    def __call__(self, request: SignRequest) -> SignedRequest:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        headers = {name: ",".join(values) for name, values in request.headers.items()}
        asked = AWSRequest(method=request.method, url=request.uri, headers=headers)
        signer = S3SigV4Auth(Credentials(ACCESS_KEY, SECRET), "s3", request.region)
        signer.payload = lambda _: "UNSIGNED-PAYLOAD"
        signer.add_auth(asked)
        return SignedRequest(
            asked.url,
            {name: [value] for name, value in asked.headers.items()},
            self.is_reusable and request.method in ("GET", "HEAD"),
        )


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


@pytest.fixture
def strict_s3_server(s3_server: S3Server) -> Iterator[S3Server]:
    """The server, which checks the signature of every request."""
    s3_server.checks_signatures = True
    yield s3_server
    s3_server.checks_signatures = False


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
