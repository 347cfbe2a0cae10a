"""Define the messages that the pack sends to its queues, each with a version so that a receiver knows its shape."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

_UNFIT = re.compile(r"[^!-~]")  # SQS takes up to 128 printable characters of ASCII, no spaces


class Message(BaseModel):
    """Share what all messages have: they are frozen, closed, and carry the version of their shape."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    tenant: ClassVar[str]  # the field whose value is the message's group: fair queues share by it

    version: Literal[1] = 1

    def group(self) -> str:
        """Return the group as SQS accepts it: one odd id would have its whole call refused."""
        return _UNFIT.sub("-", str(getattr(self, self.tenant)))[:128] or "-"


class GenerateDigest(Message):
    """Queue `notifications`: make the organisation's digest that was due then."""

    tenant: ClassVar[str] = "organization_id"

    type: Literal["generate_digest"] = "generate_digest"
    organization_id: str
    due_at: AwareDatetime


class Deliver(Message):
    """Queue `notifications`: deliver this notification by that channel's delivery."""

    tenant: ClassVar[str] = "notification_id"

    type: Literal["deliver"] = "deliver"
    delivery_id: str
    notification_id: str
    payload: dict[str, Any]


class GenerateSummary(Message):
    """Queue `evaluations`: say how a watchpoint fared, now that its event has passed."""

    tenant: ClassVar[str] = "tile_id"

    action: Literal["generate_summary"] = "generate_summary"
    watchpoint_id: str
    tile_id: str
