"""Define the payload that asks for a task's run: by a rule, by hand, or by the engine itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from signalbox.errors import PayloadRefused
from signalbox.ledger.ledger import Trigger
from signalbox.packs.payload import Instant, Payload

# No clock should be this far off. A slot run early would count as done when its time comes.
CLOCK_SKEW = timedelta(minutes=5)


class Origin(Payload):
    """Say where a run comes from, when the engine itself asked for it."""

    trigger: Literal["backfill", "catch_up", "continuation"]
    step: int = Field(0, ge=0)
    backfill_id: str | None = Field(None, pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
    since: Instant | None = None  # when a forced run was first requested
    cursor: str | None = None  # where the run before ended, whose work this one continues


class TaskPayload(Payload):
    """Ask for one task to be run for one slot."""

    task: str = Field(min_length=1)
    reference_time: Instant | None = None
    scheduled_time: Instant | None = None
    force: bool = False
    params: dict[str, Any] = Field(default_factory=dict)
    origin: Origin | None = None

    @property
    def trigger(self) -> Trigger:
        if self.origin is not None:
            return Trigger(self.origin.trigger)
        by_rule = self.scheduled_time is not None and self.reference_time is None
        return Trigger.SCHEDULE if by_rule else Trigger.MANUAL

    @property
    def step(self) -> int:
        return self.origin.step if self.origin else 0

    @property
    def backfill_id(self) -> str | None:
        return self.origin.backfill_id if self.origin else None

    @property
    def force_since(self) -> datetime | None:
        return self.origin.since if self.origin else None

    @property
    def cursor(self) -> str | None:
        return self.origin.cursor if self.origin else None

    @property
    def request(self) -> dict[str, Any] | None:
        """Return the rest of the request: enough, with the task and its time, to ask for the run again."""
        return self.model_dump(mode="json", exclude_defaults=True, include={"params", "force", "origin"}) or None

    def now(self, clock: datetime) -> datetime:
        """Return the run's now, by which the same payload has the same effect whenever it comes."""
        now = self.reference_time or self.scheduled_time or clock
        if now > clock + CLOCK_SKEW:
            field = "reference_time" if self.reference_time else "scheduled_time"
            raise PayloadRefused(
                f"{field} {now.isoformat()} is in the future (it is {clock.isoformat(timespec='seconds')}): "
                "a slot that is run early would be taken for done when its time comes"
            )
        return now
