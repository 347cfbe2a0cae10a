"""Stand in for what the pack compliance finds outside of the stack: the key of its links.

The services that its jobs call (Textract, Bedrock, SES and SNS) are those that packs share.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from signalbox_laptop.aws import REGION, client

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


class Outside:
    """Make the secret; there is no server to own."""

    addresses: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def furnish(self, stack: str, moto: str) -> dict[str, str]:
        """Make what exists before the stack; return the parameters by which its jobs can reach people."""
        secrets: SecretsManagerClient = client("secretsmanager", moto)
        secrets.create_secret(Name=f"{stack}/compliance/links", SecretString=token_urlsafe(32))
        return {
            "SenderIdentityArn": f"arn:aws:ses:{REGION}:123456789012:identity/compliance.example",
            "SenderAddress": "notices@compliance.example",
            "SmsNotifications": "on",
        }
