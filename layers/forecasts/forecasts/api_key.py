"""A key of an outside service, as Secrets Manager keeps it: the key itself, or JSON with `api_key` in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from signalbox.errors import SettingsRefused, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


def read_api_key(secretsmanager: SecretsManagerClient, name: str) -> str:
    """Read anew for each run, so that a rotated key needs no deploy. It is never logged."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        secret = secretsmanager.get_secret_value(SecretId=name).get("SecretString", "").strip()
    except (BotoCoreError, ClientError) as error:
        raise Unavailable(f"secret {name} can't be read: {error}") from None
    key = _field(secret, name) if secret.startswith("{") else secret
    if not key:
        raise SettingsRefused(f"secret {name} holds no key: store it as text, or as JSON with api_key")
    return key


def _field(secret: str, name: str) -> str:
    try:
        return str(json.loads(secret).get("api_key") or "")
    except ValueError:
        raise SettingsRefused(f"secret {name} begins like JSON and is none") from None
