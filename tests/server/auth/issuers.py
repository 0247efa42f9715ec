"""An identity provider on the loopback: a discovery document, keys that can be rotated, and tokens signed with them."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.catalog.rest.loopback import LoopbackServer

AUDIENCE = "icefloe"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
_ALGORITHMS = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256", ed25519.Ed25519PrivateKey: "EdDSA"}


def algorithm_of(key: PrivateKeyTypes) -> str:
    return next(name for kind, name in _ALGORITHMS.items() if issubclass(type(key), kind))


def public_jwk(key: PrivateKeyTypes, number: str | None, **more: Any) -> dict[str, Any]:
    """The public part of a key, as a JWKS has it."""
    algorithm = jwt.get_algorithm_by_name(algorithm_of(key))
    entry: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    entry.pop("key_ops", None)
    return entry | ({} if number is None else {"kid": number}) | {"use": "sig"} | more


class Provider:
    """A real identity provider; `with` starts it."""

    def __init__(self) -> None:
        app = Starlette(
            routes=[Route("/.well-known/openid-configuration", self._discovery), Route("/keys", self._jwks)]
        )
        self._server = LoopbackServer(app)
        self.issuer = self._server.url
        self.keys: dict[str | None, PrivateKeyTypes] = {"k1": RSA_KEY}
        self.more_entries: list[Any] = []
        self.stated_issuer: str | None = None
        self.is_down = False
        self.asked: list[str] = []

    def __enter__(self) -> "Provider":
        self._server.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._server.__exit__(*problem)

    async def _discovery(self, request: Request) -> Response:
        self.asked.append("discovery")
        document = {"issuer": self.stated_issuer or self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return Response(status_code=503) if self.is_down else JSONResponse(document)

    async def _jwks(self, request: Request) -> Response:
        self.asked.append("keys")
        entries = [public_jwk(key, number) for number, key in self.keys.items()]
        return JSONResponse({"keys": [*entries, *self.more_entries]})

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good claims, with changes; a claim changed to None is left out."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600} | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, number: str | None = "k1", *, key: Any = None, algorithm: str | None = None, **changes: Any) -> str:
        """A token by one of the keys."""
        key = self.keys[number] if key is None else key
        headers = {} if number is None else {"kid": number}
        return jwt.encode(self.claims(**changes), key, algorithm=algorithm or algorithm_of(key), headers=headers)

    def forged(self, header: dict[str, Any], secret: bytes | None, **changes: Any) -> str:
        """A token as an attacker writes it: any header, signed by HMAC with any secret, or not at all."""
        parts = [json.dumps(part).encode() for part in (header, self.claims(**changes))]
        text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
        signature = b"" if secret is None else hmac.digest(secret, text, hashlib.sha256)
        return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()
