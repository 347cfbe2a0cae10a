"""Look for new upstream data each quarter of an hour. Its sources come with a pack."""

from __future__ import annotations

from pydantic import Field

from signalbox.ledger.context import Context, Skipped
from signalbox.packs.payload import Payload


class Params(Payload):
    """Accept the params of the poller's payload."""

    force_retry: bool = False
    backfill_hours: int = Field(0, ge=0)
    limit: int | None = Field(None, ge=0)


def poll_data(_: Context) -> Skipped:
    """Report that no pack has brought a source."""
    return Skipped("no upstream is configured")
