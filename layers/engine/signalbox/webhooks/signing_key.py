"""The key that a receiver's webhooks are signed with: a secret of Secrets Manager, kept for some minutes.

The secret is the key itself, or JSON with `signing_key` in it. It is never logged, and no job's payload holds it.
"""

from __future__ import annotations

import json
import time

from signalbox.clients import Clients
from signalbox.errors import Refused
from signalbox.jobs.aws_failure import failure_of

KEPT_SECONDS = 300.0  # so that a key that was changed is used soon, and most deliveries ask nobody
MOST_KEPT = 500


class SigningKeyRefused(Refused):
    """The secret is not for webhooks, or holds no key."""


_kept: dict[str, tuple[float, bytes]] = {}


def read_signing_key(clients: Clients, stack: str, secret: str) -> bytes:
    """The key, as bytes of the text that the receiver has.

    Only of the stack's secrets for webhooks: the workers may read others, too, and a payload must not choose those.
    """
    if not secret.rpartition(":secret:")[2].startswith(f"{stack}/webhooks/"):
        raise SigningKeyRefused(f"secret '{secret}' is not for webhooks: its name has to begin with {stack}/webhooks/")
    until, key = _kept.get(secret, (0.0, b""))
    if time.monotonic() < until:
        return key
    key = _key_in(_read(clients, secret), secret)
    if len(_kept) >= MOST_KEPT:
        _kept.clear()
    _kept[secret] = (time.monotonic() + KEPT_SECONDS, key)
    return key


def _read(clients: Clients, secret: str) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return clients.secretsmanager.get_secret_value(SecretId=secret).get("SecretString", "").strip()
    except (BotoCoreError, ClientError) as error:
        raise failure_of(error, f"secret '{secret}'") from None


def _key_in(text: str, secret: str) -> bytes:
    key = _field(text) if text.startswith("{") else text
    if not key:
        raise SigningKeyRefused(
            f"secret '{secret}' holds no key to sign with: store it as text, or as JSON with signing_key"
        )
    return key.encode()


def _field(text: str) -> str:
    try:
        return str(json.loads(text).get("signing_key") or "")
    except ValueError:
        return ""
