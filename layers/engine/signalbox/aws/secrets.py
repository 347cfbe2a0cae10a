"""Read secrets of Secrets Manager as text."""

from __future__ import annotations

from signalbox.aws.clients import Clients
from signalbox.aws.errors import code_of, is_aws_error
from signalbox.errors import SettingsRefused, Unavailable


def read_secret(clients: Clients, name: str, stage: str = "AWSCURRENT") -> str | None:
    """Return a secret's version at a stage, or None where there is none. AWS's error is the cause of ours."""
    try:
        found = clients.secretsmanager.get_secret_value(SecretId=name, VersionStage=stage)
    except Exception as error:
        if code_of(error) == "ResourceNotFoundException":
            return None
        if not is_aws_error(error):
            raise
        raise Unavailable(f"secret {name} can't be read: {error}") from error
    if "SecretString" not in found:
        raise SettingsRefused(f"secret {name} holds bytes: store it as text")
    return found["SecretString"].strip()
