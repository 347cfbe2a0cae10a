"""Verify a token of the issuer that the stack trusts (OpenID Connect), and read from its claims who asks.

The issuer's public keys are kept in the execution environment. They are asked for again after an hour, and when a token
names a key that is not among them, but at most once a minute: so tokens can't make us flood the issuer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import jwt
from jwt import PyJWK

from signalbox.access.caller import Caller, Role
from signalbox.api.errors import IssuerUnavailable
from signalbox.errors import Forbidden, Refused, Unauthenticated, Unavailable
from signalbox.http.dns import resolve
from signalbox.http.pinned_exchange import send
from signalbox.http.url import read_url
from signalbox.runtime.settings import JwtIssuer

_MOST_SECONDS = 2.0  # for both documents of an issuer together
_KEPT, _UNKNOWN, _AWAY = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=5)
_LEEWAY = timedelta(seconds=30)  # between the issuer's clock and ours
_ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256"}  # by a key's type and curve
_LEAST_RSA_BITS = 2048
_LOOPBACK = ("127.0.0.1", "localhost")
_HEADERS = {"Accept": "application/json", "User-Agent": "signalbox"}
_LONGEST = 200  # of a name
_FAULTS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.MissingRequiredClaimError: "it lacks one of the claims exp, iss and aud",
    jwt.InvalidSignatureError: "its signature is wrong",
}


def find_caller_of_issuer(trusted: JwtIssuer, token: str, now: datetime) -> Caller:
    """Return who the issuer's token names. Refuse a token that is not good, or that gives no role in this stack."""
    claims = _verify(trusted, token, now)
    name = _name(claims)
    if name is None:
        raise Unauthenticated("this token is refused: it names nobody by `email`, `preferred_username` or `sub`")
    # No token of our own can have such a name.
    name = f"{name} ({urlsplit(trusted.url).netloc})"
    role = _role(claims.get(trusted.role_claim))
    if role is None:
        raise Forbidden(
            f"'{name}' has no role here: let the issuer put viewer or operator into the claim '{trusted.role_claim}'"
        )
    if trusted.tenant_claim is None:
        return Caller(name, role)
    tenant = _text(claims.get(trusted.tenant_claim))
    if tenant is None:
        raise Forbidden(
            f"'{name}' is bound to no tenant: let the issuer name one in the claim '{trusted.tenant_claim}'"
        )
    return Caller(name, role, tenant)


def _verify(trusted: JwtIssuer, token: str, now: datetime) -> dict[str, Any]:
    """Return the claims. The key decides on the algorithm; the header may only agree, and leads to no address."""
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in _ALGORITHMS.values() or "kid" not in header:
            raise Unauthenticated("this token is refused: its header must name RS256 or ES256, and a key")
        key = issuer_keys(trusted).find(header["kid"], now)
        return jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=trusted.audience,
            issuer=trusted.url,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud"]},
        )
    except (jwt.PyJWTError, ValueError) as error:
        words = next((words for kind, words in _FAULTS.items() if isinstance(error, kind)), "it can't be read")
        raise Unauthenticated(f"this token is refused: {words}") from None


def _name(claims: Mapping[str, Any]) -> str | None:
    """Return how people know the caller, else the issuer's id of them. An unverified address proves nothing."""
    email = claims.get("email") if claims.get("email_verified") is not False else None
    found = map(_text, (email, claims.get("preferred_username"), claims.get("sub")))
    return next((name for name in found if name is not None), None)


def _role(held: object) -> Role | None:
    roles = held if isinstance(held, list) else [held]
    return next((role for role in (Role.OPERATOR, Role.VIEWER) if role in roles), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable() else None


class IssuerKeys:
    """Own the public keys of one issuer. No lock: an execution environment serves one request at a time."""

    def __init__(self, trusted: JwtIssuer) -> None:
        self._trusted = trusted
        self._keys: Mapping[str, PyJWK] = {}
        self._asked_at = datetime.min.replace(tzinfo=UTC)
        self._away = ""  # why the keys could not be had when they were last asked for

    def find(self, key_id: str, now: datetime) -> PyJWK:
        """Return a key. Where the issuer is away, the keys that are known stay good."""
        is_known = key_id in self._keys and not self._away
        if now - self._asked_at >= (_KEPT if is_known else _UNKNOWN if self._keys else _AWAY):
            self._ask(now)
        if key_id in self._keys:
            return self._keys[key_id]
        if self._away:
            raise IssuerUnavailable(self._away)
        raise Unauthenticated("this token is refused: it is signed by a key that its issuer does not list")

    def _ask(self, now: datetime) -> None:
        self._asked_at = now
        try:
            self._keys, self._away = _fetch_keys(self._trusted.url), ""
        except (Refused, Unavailable) as error:
            self._away = f"the keys of the issuer {self._trusted.url} can't be had, try again later: {error}"


@cache
def issuer_keys(trusted: JwtIssuer) -> IssuerKeys:
    return IssuerKeys(trusted)


def _fetch_keys(issuer: str) -> dict[str, PyJWK]:
    ends_at = time.monotonic() + _MOST_SECONDS
    in_clear = issuer.startswith("http:")
    about = _get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", ends_at, in_clear=in_clear)
    if about.get("issuer") != issuer:
        raise IssuerUnavailable("its configuration names another issuer; each character counts, also a last slash")
    listed = _get(str(about.get("jwks_uri")), ends_at, in_clear=in_clear).get("keys")
    keys = {str(key.key_id): key for key in map(_read_key, listed if isinstance(listed, list) else []) if key}
    if not keys:
        raise IssuerUnavailable("it lists no key for RS256 or ES256")
    return keys


def _get(url: str, ends_at: float, *, in_clear: bool) -> dict[str, Any]:
    """Return the JSON object at an address of the issuer. No redirect is followed, and 64 KB are read at most."""
    target = read_url(url)
    if target.scheme != "https" and not (in_clear and target.host in _LOOPBACK):
        raise IssuerUnavailable("it names an address without TLS")
    addresses = [address for address in resolve(target, ends_at) if address is not None]
    response = send(target, addresses, _HEADERS, ends_at=ends_at, method="GET")
    if response.status != 200 or not response.whole:
        raise IssuerUnavailable(f"{target.host} answered {response.status}, or not to its end")
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"{target.host} answered no JSON object")
    return found


def _read_key(listed: object) -> PyJWK | None:
    """Return a key, or None for one of another kind or use: issuers list those for encryption, too."""
    if not isinstance(listed, dict) or not isinstance(listed.get("kid"), str) or listed.get("use", "sig") != "sig":
        return None
    algorithm = next(
        (name for kind, name in _ALGORITHMS.items() if kind == (listed.get("kty"), listed.get("crv"))), None
    )
    if algorithm is None or listed.get("alg", algorithm) != algorithm:
        return None
    try:
        key = PyJWK(listed, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if algorithm == "ES256" or key.key.key_size >= _LEAST_RSA_BITS else None
