"""The commands `serve` and `serve-admin` as an operator runs them, with one configuration file."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from icefloe.__main__ import main

CONFIGURATION = """
[server]
port = {port}
[catalog.lake]
type = "sql"
uri = "sqlite:///{folder}/lake.db"
warehouse = "{folder}/warehouse"
[auth]
refresh-seconds = 0
audit-file = "{folder}/audit.jsonl"
[[auth.grants]]
to = "principal:configured"
privileges = ["read"]
warehouse = "lake"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_and_its_administrator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    config = tmp_path / "server.toml"
    config.write_text(CONFIGURATION.format(port=port, folder=tmp_path))

    def admin(*words: str) -> list[str]:
        assert main(["server", "--config", str(config), *words]) == 0
        return capsys.readouterr().out.splitlines()

    assert admin("migrate") == ["lake\twas brought up to date"]
    assert admin("migrate") == ["lake\tis up to date"]
    admin("user", "add", "ops")
    (token,) = admin("token", "add", "ops", "--days", "1")
    assert admin("grant", "check", "configured", "read", "--warehouse", "lake") == ["allowed"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "icefloe", "serve", "--config", str(config)], stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=10) as client:
            _wait(client)
            headers = {"authorization": f"Bearer {token}"}
            assert client.get("/v1/config").status_code == 401
            assert client.get("/v1/config", headers=headers).status_code == 404
            admin("grants", "add", "principal:ops", "create", "--warehouse", "lake")
            assert client.get("/v1/config", headers=headers).status_code == 200
            body = {"namespace": ["shop"], "properties": {}}
            assert client.post("/v1/lake/namespaces", json=body, headers=headers).status_code == 200
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    told = (tmp_path / "audit.jsonl").read_text() + (tmp_path / "log").read_text()
    assert '"outcome": "allowed"' in told
    assert token not in told
    assert token.split("_", 2)[2] not in told


def _wait(client: httpx.Client) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if client.get("/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the server did not start")


@pytest.mark.parametrize("section", ["", "[auth]\nanonymous = true\n"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "catalog.example.com", ""])
def test_nobody_without_a_name_is_let_in_from_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], section: str, host: str
) -> None:
    config = tmp_path / "server.toml"
    config.write_text(
        f'[catalog.lake]\ntype = "sql"\nuri = "sqlite:///{tmp_path}/x.db"\nwarehouse = "{tmp_path}"\n{section}'
    )
    assert main(["serve", "--config", str(config), "--host", host, "--port", "0"]) == 2
    assert "can be reached from other machines" in capsys.readouterr().err


def test_a_configuration_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.toml"
    config.write_text(f'[catalog.lake]\ntype = "hadoop"\nwarehouse = "{tmp_path}"\n')
    assert main(["serve-admin", "--config", str(config), "principals", "list"]) == 2
    assert "has a database" in capsys.readouterr().err


def test_what_is_wrong_is_said_before_a_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.toml"

    def examined(*lines: str, code: int) -> dict[str, tuple[str, str]]:
        config.write_text("\n".join(lines))
        assert main(["server", "--config", str(config), "doctor"]) == code
        rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        return {subject: (severity, text) for severity, subject, text in rows}

    catalog = [
        "[catalog.lake]",
        'type = "sql"',
        f'uri = "sqlite:///{tmp_path}/x.db"',
        f'warehouse = "{tmp_path}"',
    ]
    told = examined(*catalog, code=0)
    assert told["warehouse lake"] == ("OK", "0 namespaces, no table to read")
    assert told["who may come in"][0] == "OK"
    told = examined(
        "[server]", 'host = "0.0.0.0"', 'tls-certificate = "no.pem"', 'tls-key = "no.key"', *catalog, code=1
    )
    assert told["who may come in"][0] == told["TLS"][0] == "FAIL"
    broken = [*catalog[:2], 'uri = "postgresql://ann:hunter22@127.0.0.1:1/db"', catalog[3], "[access.none]"]
    told = examined(*broken, code=1)
    assert told["warehouses"][0] == told["access to files"][0] == "FAIL"
    assert "hunter22" not in str(told)
    assert examined("[server]", "nonsense = 1", code=1)["configuration"][0] == "FAIL"
    assert examined("[auth]", "anonymous = true", *catalog, code=0)["who may come in"][0] == "WARN"
