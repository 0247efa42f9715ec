"""The servers of the comparison as processes on loopback, both over one catalog of one PostgreSQL."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.rest_load.postgres import free_port

PROJECT = Path(__file__).parents[2]
JAVA = PROJECT / ".venv-java-rest"
CATALOG = "bench"
_JAVA_PROGRAM = "org.apache.iceberg.rest.LoopbackServer"
_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    name: str
    uri: str
    pid: int
    properties: Mapping[str, str] = field(default_factory=dict)
    """What a client needs besides."""
    prefix: str = ""

    def path(self, path: str) -> str:
        """A path of the protocol with the server's prefix."""
        return path.replace("/v1/", f"/v1/{self.prefix}/", 1) if self.prefix else path


@contextmanager
def our_server(home: Path, database: str) -> Iterator[Server]:
    """Our own, as a user starts it."""
    port, settings = free_port(), home / "server.toml"
    uri, warehouse = f"postgresql://postgres@{database}", (home / "warehouse").as_uri()
    settings.write_text(f'[catalog.{CATALOG}]\ntype = "sql"\nuri = "{uri}"\nwarehouse = "{warehouse}"\n')
    command = [sys.executable, "-m", "icefloe", "serve", "--config", str(settings), "--port", str(port)]
    with _running([*command, "--log-level", "error"], home / "ours.log") as process:
        url = f"http://127.0.0.1:{port}"
        answered = _wait(f"{url}/v1/config?warehouse={CATALOG}", process)
        prefix = str({**answered["defaults"], **answered["overrides"]}.get("prefix", ""))
        yield Server("ours", url, process.pid, {"warehouse": CATALOG}, urllib.parse.quote(prefix, safe=""))


@contextmanager
def java_server(home: Path, database: str) -> Iterator[Server]:
    """The fixture of the Iceberg project, over its JDBC catalog."""
    if not (JAVA / "classes").exists():
        raise SystemExit("there is no Java REST server here: `make java-rest` fetches it")
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "catalog-name": CATALOG,
        "uri": f"jdbc:postgresql://{database}",
        "jdbc.user": "postgres",
        "jdbc.schema-version": "V1",
        "clients": "16",
        "warehouse": (home / "warehouse").as_uri(),
    }
    command = ["java", "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{JAVA}/classes:{JAVA}/jars/*"]
    command += [_JAVA_PROGRAM, *(f"{key}={value}" for key, value in properties.items())]
    with _running(command, home / "java.log", subprocess.PIPE) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError((home / "java.log").read_text()[-2000:])
        yield Server("java", f"http://127.0.0.1:{port}", process.pid)


@contextmanager
def _running(command: list[str], log: Path, out: int | None = None) -> Iterator["subprocess.Popen[str]"]:
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=errors if out is None else out, stderr=errors, text=True, cwd=PROJECT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: "subprocess.Popen[str]") -> dict[str, dict[str, str]]:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                answered: dict[str, dict[str, str]] = json.load(response)
                return answered
        except (OSError, urllib.error.URLError):
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.1)
