"""Read the keys that sign a receiver's webhooks: a secret of Secrets Manager, kept for some minutes.

The secret is the key itself, or JSON with `signing_key` in it. It is never logged, and no job's payload holds it. While
it is rotated, receivers may have the old key or the new one: each version that Secrets Manager still names signs.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode
from contextlib import suppress

from signalbox.aws.clients import Clients
from signalbox.aws.errors import classify
from signalbox.aws.secrets import read_secret
from signalbox.errors import Refused, SettingsRefused, Unavailable

KEPT_SECONDS = 300.0  # a changed key is used soon, and most deliveries need no call
MOST_KEPT = 500
BASE64 = "whsec_"  # before a key that is written so, as Standard Webhooks has it


class SigningKeyRefused(Refused):
    """The secret is not for webhooks, does not exist, or holds no key."""


_kept: dict[str, tuple[float, tuple[bytes, ...]]] = {}


def read_signing_keys(clients: Clients, stack: str, secret: str) -> tuple[bytes, ...]:
    """Return the current key, and the previous and the pending one if any; only of the stack's webhook secrets.

    The workers may read other secrets, too, and a payload must not choose those.
    """
    if not secret.rpartition(":secret:")[2].startswith(f"{stack}/webhooks/"):
        raise SigningKeyRefused(f"secret '{secret}' is not for webhooks: its name must start with {stack}/webhooks/")
    until, keys = _kept.get(secret, (0.0, ()))
    if time.monotonic() < until:
        return keys
    keys = _read_all(clients, secret)
    if len(_kept) >= MOST_KEPT:
        _kept.clear()
    _kept[secret] = (time.monotonic() + KEPT_SECONDS, keys)
    return keys


def key_of(text: str) -> bytes:
    """Return the key that the receiver's text stands for; raise ValueError where it is marked as base64 and is not."""
    if text.startswith(BASE64):
        return b64decode(text.removeprefix(BASE64), validate=True)
    return text.encode()


def _read_all(clients: Clients, secret: str) -> tuple[bytes, ...]:
    keys = [_key_in(_read(clients, secret, "AWSCURRENT") or "", secret)]
    for stage in ("AWSPREVIOUS", "AWSPENDING"):
        text = _read(clients, secret, stage)
        with suppress(SigningKeyRefused):  # this version may not hold a key yet
            keys += [_key_in(text, secret)] if text is not None else []
    return tuple(dict.fromkeys(keys))


def _read(clients: Clients, secret: str, stage: str) -> str | None:
    """Return the secret's text, or None where a stage other than the current one has no version."""
    try:
        text = read_secret(clients, secret, stage)
    except Unavailable as error:
        cause = error.__cause__
        raise classify(cause if isinstance(cause, Exception) else error, f"secret '{secret}'") from None
    except SettingsRefused:  # bytes
        return ""
    if text is None and stage == "AWSCURRENT":
        raise SigningKeyRefused(_missing(secret))
    return text


def _missing(secret: str) -> str:
    name = secret.rpartition(":secret:")[2]
    return (
        f"secret '{secret}' does not exist: `aws secretsmanager create-secret --name {name} --secret-string KEY` "
        "creates it; then redrive the dead letter"
    )


def _key_in(text: str, secret: str) -> bytes:
    try:
        key = key_of(_field(text) if text.startswith("{") else text)
    except ValueError:
        key = b""
    if not key:
        raise SigningKeyRefused(
            f"secret '{secret}' holds no key to sign with: store it as text, or as JSON with signing_key; "
            f"what follows {BASE64} is base64"
        )
    return key


def _field(text: str) -> str:
    try:
        return str(json.loads(text).get("signing_key") or "")
    except ValueError:
        return ""
