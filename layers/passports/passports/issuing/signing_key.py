"""Read the key that signs passports: a secret of Secrets Manager, kept for some minutes.

Its text is the private key in base64, or JSON with `private_key` and perhaps `key_id`. It is never logged.
"""

from __future__ import annotations

import time
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

from passports.encoding.canonical import read_json, sha256
from passports.issuing.signature import public_key_of
from signalbox.aws.clients import Clients
from signalbox.aws.errors import classify
from signalbox.aws.secrets import read_secret
from signalbox.errors import SettingsRefused, Unavailable
from signalbox.packs.refusals import refuse

KEPT_SECONDS = 300.0  # a rotated key is used soon, and most passports need no call
_FORMS = "store 32 bytes in base64, or 64 with the public key, or JSON with them in private_key"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Hold a key, and the id by which others know it."""

    key_id: str
    public: bytes
    private: bytes = field(repr=False)


_kept: dict[str, tuple[float, SigningKey]] = {}  # by the secret's ARN, until when


def read_signing_key(clients: Clients, arn: str | None) -> SigningKey:
    """Return the key of a secret. A failure is not kept: the next passport asks again."""
    if not arn:
        raise refuse("SIGNING_KEY_MISSING", "the parameter PassportsSigningSecretArn is not set")
    now = time.monotonic()
    if arn in _kept and now < _kept[arn][0]:
        return _kept[arn][1]
    key = _key_in(_read(clients, arn), arn)
    _kept[arn] = now + KEPT_SECONDS, key
    return key


def key_of(text: str) -> SigningKey:
    """Return the key that a secret's text holds; raise ValueError where it holds none."""
    fields = read_json(text) if text.startswith("{") else {"private_key": text}
    private, public = _pair(fields.get("private_key"))
    key_id = fields.get("key_id") or sha256(public).hex()[:16]
    if not isinstance(key_id, str):
        raise ValueError("the key's id is no text")
    return SigningKey(key_id, public, private)


def _pair(encoded: Any) -> tuple[bytes, bytes]:
    """Return the private and the public key."""
    if not isinstance(encoded, str):
        raise ValueError("the key is no text")
    data = b64decode("".join(encoded.split()), validate=True)
    private, public = data[:32], public_key_of(data[:32])
    if data[32:] not in (b"", public):
        raise ValueError("the public key does not belong to the private one")
    return private, public


def _read(clients: Clients, arn: str) -> str:
    try:
        return read_secret(clients, arn) or ""
    except Unavailable as error:
        cause = error.__cause__
        raise classify(cause if isinstance(cause, Exception) else error, f"secret '{arn}'") from None
    except SettingsRefused:
        raise refuse("INVALID_SIGNING_KEY", f"secret '{arn}' holds bytes: {_FORMS}") from None


def _key_in(text: str, arn: str) -> SigningKey:
    if not text:
        raise refuse("SIGNING_KEY_MISSING", f"secret '{arn}' does not exist or is empty: {_FORMS}")
    try:
        return key_of(text)
    except ValueError:
        raise refuse("INVALID_SIGNING_KEY", f"secret '{arn}' holds no key: {_FORMS}") from None
