"""Make the tokens of links to packs. A token follows from its row's id and a secret, so a repeat makes the same one.

The database keeps a token's hash alone: who reads it there can open no pack.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode

from compliance.settings import ComplianceSettings
from signalbox import JobContext, Permanent, Unavailable
from signalbox.aws.errors import classify
from signalbox.aws.secrets import read_secret


def read_key(context: JobContext) -> bytes:
    """Return the secret that tokens are made with."""
    name = context.resources.settings_of(ComplianceSettings).links_secret
    try:
        text = read_secret(context.clients, name)
    except Unavailable as error:
        cause = error.__cause__
        raise classify(cause if isinstance(cause, Exception) else error, f"secret '{name}'") from None
    if not text:
        raise Permanent(
            f"secret '{name}' does not exist or is empty: `aws secretsmanager create-secret --name {name} "
            "--secret-string KEY` creates it; then redrive the dead letter"
        )
    return text.encode()


def token_of(key: bytes, distribution_id: str) -> str:
    """Return the token of a distribution's link."""
    return urlsafe_b64encode(hmac.digest(key, distribution_id.encode(), "sha256")).rstrip(b"=").decode()


def hash_of(token: str) -> str:
    """Return what the database keeps of a token, whatever text it is."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
