"""Issue tokens and serve their keys as an OpenID Connect issuer does, on loopback; it can misbehave.

What it does instead of answering is a function of the request; `stopped` is set when the test is over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "api://signalbox"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
Fault = Callable[[BaseHTTPRequestHandler, Event], None]


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the key of this name, which takes a while to make."""
    return rsa.generate_private_key(65537, bits)


def public_jwk(key: PrivateKey, key_id: str, **fields: str) -> dict[str, Any]:
    public = key.public_key()
    known = (
        RSAAlgorithm.to_jwk(public, as_dict=True)
        if isinstance(public, rsa.RSAPublicKey)
        else ECAlgorithm.to_jwk(public, as_dict=True)
    )
    return {**known, "kid": key_id, "use": "sig", **fields}


class Issuer:
    """Own a listening socket on loopback, and a key of each kind that is taken."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {"one": rsa_key("one"), "curve": ec.generate_private_key(ec.SECP256R1())}
        self.jwks: list[Any] | None = None  # in place of the keys that it has
        self.about: dict[str, Any] = {}  # in place of what its configuration says
        self.fault: Fault | None = None
        self.asked: list[str] = []
        self._stopped = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/realm"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def claims(self, **other: Any) -> dict[str, Any]:
        """Return good claims of an operator, with others in their place; None leaves one out."""
        now = datetime.now(UTC)
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "u-7", "roles": ["operator"], "iat": now, "nbf": now}
        found = good | {"exp": now + timedelta(minutes=5)} | other
        return {name: value for name, value in found.items() if value is not None}

    def token(
        self,
        key_id: str = "one",
        key: PrivateKey | None = None,
        header: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a token that is signed by one of the issuer's keys, or by another in its name."""
        signer = key or self.keys[key_id]
        algorithm = "RS256" if isinstance(signer, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(self.claims(**claims), signer, algorithm, {"kid": key_id, **(header or {})})

    def answer(self, path: str) -> bytes:
        if path == "/realm/keys":
            listed = [public_jwk(key, key_id) for key_id, key in self.keys.items()]
            return json.dumps({"keys": listed if self.jwks is None else self.jwks}).encode()
        return json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | self.about).encode()

    def _handler(issuer) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the request
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                if issuer.fault:
                    issuer.fault(self, issuer._stopped)
                else:
                    respond(self, 200, issuer.answer(self.path))

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def respond(request: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
