"""A job to be submitted, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from signalbox.jobs.dependency import Dependency


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be. Only its type is needed, and what its payload asks for."""

    job_type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None  # for others of the same submit to depend on
    idempotency_key: str | None = None  # a second submit of the type with it gives the first job
    priority: int = 5
    lane: str | None = None
    delay: timedelta | None = None
    at: datetime | None = None
    tenant: str | None = None
    cap_key: str | None = None
    group: str | None = None
    parent_id: str | None = None
    schedule_id: str | None = None
    depends_on: Sequence[Dependency] = ()
    max_attempts: int | None = None
    timeout: timedelta | None = None
    name: str | None = None
    correlation_id: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    created_by: str | None = None


class Submitted(NamedTuple):
    """What became of one of them; a tuple, since there may be so many."""

    id: str
    job_type: str
    lane: str
    tenant: str | None
    status: str
    created: bool = True  # False: it had been submitted before
