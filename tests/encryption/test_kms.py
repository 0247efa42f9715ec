"""Key management services: files, AWS (moto), and Google's, Azure's and Vault's over HTTP on loopback."""

import json
import sys
import threading
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from icefloe.encryption import Kms, kms_of
from icefloe.encryption.kms.local_file import FileKms
from icefloe.errors import EncryptionError, InvalidPropertyError, NotInstalledError, ServiceUnavailableError
from tests.encryption.keys import CountingKms, key_file

KEY = bytes(range(16))
TOKEN = "very-secret-token"


def both_ways(kms: Kms, key_id: str) -> None:
    wrapped = kms.wrap_key(KEY, key_id)
    assert KEY not in wrapped
    assert kms.unwrap_key(wrapped, key_id) == KEY


class _Service(ThreadingHTTPServer):
    """Wraps by turning bytes round, in the forms of three services; `status` makes it refuse."""

    status = 200
    paths: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(self.path)
        shown = (self.headers.get("X-Vault-Token"), self.headers.get("Authorization"))
        if self.server.status != 200 or not any(TOKEN in (each or "") for each in shown):
            answer, status = {"error": f"{TOKEN} {body}"}, max(self.server.status, 403)
        else:
            answer, status = self._answer(body), 200
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, body: dict[str, str]) -> dict[str, Any]:
        if self.path.startswith("/v1/transit/encrypt"):
            return {"data": {"ciphertext": "vault:v1:" + body["plaintext"][::-1]}}
        if self.path.startswith("/v1/transit/decrypt"):
            return {"data": {"plaintext": body["ciphertext"].removeprefix("vault:v1:")[::-1]}}
        if self.path.endswith(":encrypt"):
            return {"ciphertext": b64encode(b64decode(body["plaintext"])[::-1]).decode()}
        if self.path.endswith(":decrypt"):
            return {"plaintext": b64encode(b64decode(body["ciphertext"])[::-1]).decode()}
        assert body["alg"] == "RSA-OAEP-256"
        value = urlsafe_b64decode(body["value"] + "=" * (-len(body["value"]) % 4))[::-1]
        return {"value": urlsafe_b64encode(value).decode().rstrip("=")}

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[_Service]:
    server = _Service(("127.0.0.1", 0), _Handler)
    server.paths = []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(service: _Service) -> str:
    return f"http://127.0.0.1:{service.server_address[1]}"


def test_file(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    kms = kms_of({"encryption.kms-type": "file", "encryption.kms-file": str(path)})
    assert isinstance(kms, FileKms)
    both_ways(kms, "k1")
    both_ways(kms, "k2")
    with pytest.raises(EncryptionError, match="no key 'k3'"):
        kms.wrap_key(KEY, "k3")
    with pytest.raises(EncryptionError, match="does not unwrap"):
        kms.unwrap_key(kms.wrap_key(KEY, "k1"), "k2")
    path.chmod(0o644)
    with pytest.raises(EncryptionError, match="0600"):
        kms.wrap_key(KEY, "k1")
    path.chmod(0o600)
    for text, problem in (
        ("[]", "no key"),
        ("{", "not JSON"),
        ('{"k1": "*"}', "not Base64"),
        ('{"k1": "AA=="}', "1 bytes"),
    ):
        path.write_text(text)
        with pytest.raises(EncryptionError, match=problem):
            kms.wrap_key(KEY, "k1")
    path.unlink()
    with pytest.raises(EncryptionError, match="cannot be read"):
        kms.wrap_key(KEY, "k1")
    with pytest.raises(InvalidPropertyError, match="kms-file"):
        kms_of({"encryption.kms-type": "file"})


def test_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3
    from moto import mock_aws

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with mock_aws():
        key_id = boto3.client("kms", region_name="eu-west-1").create_key()["KeyMetadata"]["KeyId"]
        for named in (
            {"encryption.kms-type": "aws"},
            {"encryption.kms-impl": "org.apache.iceberg.aws.AwsKeyManagementClient"},
        ):
            kms = kms_of({**named, "client.region": "eu-west-1"})
            assert kms is not None
            both_ways(kms, key_id)
        assert kms is not None
        with pytest.raises(EncryptionError, match="NotFoundException"):
            kms.wrap_key(KEY, "00000000-0000-0000-0000-000000000000")
    region = {"client.region": "eu-west-1"}
    for wrong in ({}, {**region, "kms.endpoint": "nonsense"}, {**region, "client.profile-name": "missing"}):
        with pytest.raises(EncryptionError, match=r"check 'client\.region'"):
            kms_of({"encryption.kms-type": "aws", **wrong})


def test_vault(service: _Service) -> None:
    kms = kms_of({"encryption.kms-type": "vault", "vault.address": address(service), "vault.token": TOKEN})
    assert kms is not None
    assert TOKEN not in repr(kms)
    both_ways(kms, "a/key")
    assert service.paths[0] == "/v1/transit/encrypt/a%2Fkey"
    with pytest.raises(EncryptionError, match="not one of Vault's"):
        kms.unwrap_key(b"\xff", "a")
    for status, kind in ((403, EncryptionError), (503, ServiceUnavailableError)):
        service.status = status
        with pytest.raises(kind) as caught:
            kms.wrap_key(KEY, "a")
        assert TOKEN not in str(caught.value)
        assert b64encode(KEY).decode() not in str(caught.value)


def test_vault_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_TOKEN", raising=False)
    for settings, problem in (
        ({"vault.address": "http://vault.example.com", "vault.token": "t"}, "https"),
        ({"vault.address": "https://u:p@vault.example.com", "vault.token": "t"}, "user or password"),
        ({"vault.address": "https://vault.example.com"}, "VAULT_TOKEN"),
    ):
        with pytest.raises(InvalidPropertyError, match=problem):
            kms_of({"encryption.kms-type": "vault", **settings})
    dead = {"encryption.kms-type": "vault", "vault.address": "http://127.0.0.1:1", "vault.token": "t"}
    kms = kms_of(dead)
    assert kms is not None
    with pytest.raises(ServiceUnavailableError, match="cannot be asked"):
        kms.wrap_key(KEY, "a")


def test_google(service: _Service, monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth
    from google.oauth2 import credentials

    monkeypatch.setattr(google.auth, "default", lambda scopes: (credentials.Credentials(TOKEN), "project"))
    kms = kms_of({"encryption.kms-type": "gcp", "gcp.kms.endpoint": address(service)})
    assert kms is not None
    name = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    both_ways(kms, name)
    assert service.paths[0] == f"/v1/{name}:encrypt"


def test_azure(service: _Service, monkeypatch: pytest.MonkeyPatch) -> None:
    class Credential:
        def get_token(self, scope: str) -> Any:
            assert scope == "https://vault.azure.net/.default"
            return type("Token", (), {"token": TOKEN})()

    identity, core, exceptions = (
        ModuleType("azure.identity"),
        ModuleType("azure.core"),
        ModuleType("azure.core.exceptions"),
    )
    identity.DefaultAzureCredential = Credential  # type: ignore[attr-defined]  # a stand-in for a package that is not installed
    exceptions.AzureError = RuntimeError  # type: ignore[attr-defined]  # the same
    for module in (ModuleType("azure"), identity, core, exceptions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "icefloe.encryption.kms.azure", raising=False)
    kms = kms_of({"encryption.kms-type": "azure", "azure.keyvault.url": address(service)})
    monkeypatch.delitem(sys.modules, "icefloe.encryption.kms.azure")
    assert kms is not None
    both_ways(kms, "name/version")
    both_ways(kms, "name")
    assert service.paths[0] == "/keys/name/version/wrapkey?api-version=7.4"
    assert service.paths[2] == "/keys/name//wrapkey?api-version=7.4"


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    monkeypatch.delitem(sys.modules, "icefloe.encryption.kms.azure", raising=False)
    with pytest.raises(NotInstalledError, match=r"icefloe\[encryption,azure\]"):
        kms_of({"encryption.kms-type": "azure", "azure.keyvault.url": "https://v.example.com"})


def test_anybodys_own() -> None:
    assert isinstance(kms_of({"encryption.kms-impl": "tests.encryption.keys:CountingKms"}), CountingKms)
    assert kms_of({}) is None
    for settings, problem in (
        ({"encryption.kms-impl": "tests.encryption.keys:Nothing"}, "cannot be imported"),
        ({"encryption.kms-impl": "no.such.module:Kms"}, "cannot be imported"),
        ({"encryption.kms-impl": "com.example.Kms"}, "module:Class"),
        ({"encryption.kms-impl": "collections:OrderedDict"}, "wrap_key"),
        ({"encryption.kms-type": "gpc"}, "one of file, aws"),
        ({"encryption.kms-type": "file", "encryption.kms-impl": "a:B"}, "exclude each other"),
    ):
        with pytest.raises(InvalidPropertyError, match=problem):
            kms_of(settings)
