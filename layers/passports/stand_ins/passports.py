"""Stand in for what the pack passports finds outside of the stack: the signing key, and a receiver of webhooks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from secrets import token_bytes, token_urlsafe
from typing import TYPE_CHECKING

from signalbox_laptop.aws import client
from signalbox_laptop.stand_ins.webhook_receiver import WebhookReceiver

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


class Outside:
    """Own the receiver, and make the secrets."""

    environment: Mapping[str, str] = {}

    def __init__(self) -> None:
        self._receiver = WebhookReceiver()

    def start(self) -> None:
        self._receiver.start()

    def stop(self) -> None:
        self._receiver.stop()

    @property
    def addresses(self) -> dict[str, str]:
        """Return where webhooks are taken: all at /well."""
        return {"passport_receiver": self._receiver.url}

    def furnish(self, stack: str, moto: str) -> dict[str, str]:
        """Make what exists before the stack; return the parameter that names it."""
        secrets: SecretsManagerClient = client("secretsmanager", moto)
        secrets.create_secret(Name=f"{stack}/webhooks/passports", SecretString=token_urlsafe(32))
        key = b64encode(token_bytes(32)).decode()
        made = secrets.create_secret(Name=f"{stack}/passports/signing", SecretString=key)
        return {"PassportsSigningSecretArn": made["ARN"]}
