"""Read the key of an outside service from Secrets Manager: the key itself, or JSON with `api_key` in it."""

from __future__ import annotations

import json

from signalbox.aws.clients import Clients
from signalbox.aws.secrets import read_secret
from signalbox.errors import SettingsRefused, Unavailable


def read_api_key(clients: Clients, name: str) -> str:
    """Read the key again for each run, so that a rotated key needs no deploy. It is never logged."""
    secret = read_secret(clients, name)
    if secret is None:
        raise Unavailable(f"secret {name} can't be read: there is no such secret, or it has no value yet")
    key = _field(secret, name) if secret.startswith("{") else secret
    if not key:
        raise SettingsRefused(f"secret {name} holds no key: store it as text, or as JSON with api_key")
    return key


def _field(secret: str, name: str) -> str:
    try:
        return str(json.loads(secret).get("api_key") or "")
    except ValueError:
        raise SettingsRefused(f"secret {name} starts like JSON but is not valid JSON") from None
