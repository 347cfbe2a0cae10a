"""Sign webhooks, so that a receiver knows they are ours: the headers of Standard Webhooks, for which verifiers exist.

The signature is HMAC-SHA256 under a key that only both sides have, over the delivery's id, the time and the body
together. So nobody who saw a request can send it later, or under another id.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Sequence


def sign(keys: Sequence[bytes], delivery_id: str, body: bytes, unix_time: int) -> dict[str, str]:
    """Return the headers that prove the body, sent at that time, with a signature by each key."""
    signed = f"{delivery_id}.{unix_time}.".encode() + body
    signatures = [f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}" for key in keys]
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(unix_time),
        "webhook-signature": " ".join(signatures),
    }
