"""How a receiver knows that a webhook is ours: HMAC-SHA256 under a key that only both sides have.

Of the time and the body together, so that an old request can't be sent again by somebody who saw it; and of the body
alone, for receivers that check the older form.
"""

from __future__ import annotations

import hmac


def sign(key: bytes, body: bytes, unix_time: int) -> dict[str, str]:
    """The headers that prove the body, sent at that time."""
    timed = _digest(key, f"{unix_time}.".encode() + body)
    return {
        "X-Signalbox-Signature": f"t={unix_time},v1={timed}",
        "X-Signature-256": f"sha256={_digest(key, body)}",
    }


def _digest(key: bytes, message: bytes) -> str:
    return hmac.new(key, message, "sha256").hexdigest()
