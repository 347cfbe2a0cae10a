"""Describe a claimed job, as the worker that holds its lease sees it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple


class ClaimedJob(NamedTuple):
    """Hold one row that claim_jobs returns, in its order, and the token; a tuple, as the driver makes it."""

    id: str
    job_type: str
    lane: str
    priority: int
    payload: dict[str, Any]
    payload_version: int
    config: dict[str, Any] | None
    cursor: Any
    tenant: str | None
    group: str | None
    correlation_id: str | None
    attempt: int
    execution: int
    max_attempts: int
    timeout_ms: int
    queued_at: datetime | None
    created_at: datetime
    cancel_requested_at: datetime | None
    throttles: int = 0
    throttled_since: datetime | None = None
    pieces: int = 0
    first_started_at: datetime | None = None
    cap_key: str | None = None
    capped: bool = False  # whether a cap or rate counts it
    token: str = ""  # of its lease

    @property
    def cap_names(self) -> Iterator[str]:
        """Return the names of the caps that may count it, as held_by has them."""
        for kind, key in (("type", self.job_type), ("lane", self.lane), ("tenant", self.tenant), ("key", self.cap_key)):
            if key is not None:
                yield f"{kind}:{key}"

    @property
    def ids(self) -> dict[str, Any]:
        """Return the fields that identify it in the log."""
        return {"job_id": self.id, "job_type": self.job_type, "attempt": self.attempt}
