"""Define a job to be submitted, and the answer to its submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from signalbox.jobs.dependency import Dependency


@dataclass(frozen=True, slots=True)
class NewJob:
    """Describe a job to be submitted. Only its type is needed, and what the type's payload asks for."""

    job_type: str
    """The name of the job type, which decides what code runs. A name that no pack registers is refused."""
    payload: Mapping[str, Any] = field(default_factory=dict)
    """What the job is to do, as JSON. It is checked against the type's model now, and again when the job starts."""
    _: KW_ONLY
    id: str | None = None
    """A UUID in lower case, for other jobs of the same submit to depend on. Without one the job gets a new UUID."""
    idempotency_key: str | None = None
    """A second submit of the same type with the same key stores nothing and returns the first job."""
    replace_key: str | None = None
    """Until the type's job with this key starts, a submit replaces its payload and stores no second job. With `delay`
    its wait begins again."""
    category: str | None = None
    """One of the five categories, in place of the type's."""
    priority: int = 5
    """From 1, which runs first, to 10. It chooses the lane: 1 to 3 is high, 4 to 7 normal, 8 to 10 low."""
    lane: str | None = None
    """A lane by name, in place of the one that the type or the priority chooses. The type must allow it."""
    delay: timedelta | None = None
    """The job waits for this long, then it is sent. Give this or `at`, not both."""
    at: datetime | None = None
    """The job waits until this instant, which has a time zone. An instant that has passed means at once."""
    tenant: str | None = None
    """Whose job it is. Lanes share their capacity fairly between tenants, and caps can count by tenant."""
    cap_key: str | None = None
    """Jobs with the same key are counted together by a cap or a rate that an operator sets for the key."""
    group: str | None = None
    """The group in which the job is counted. The first job that names a group creates it; a sealed group refuses."""
    parent_id: str | None = None
    """The job that submitted this one, for people to follow. Nothing waits for it."""
    schedule_id: str | None = None
    """The schedule that submitted the job. The engine sets it."""
    depends_on: Sequence[Dependency] = ()
    """Other jobs that must end first. Until then the job is pending and has no message in a lane."""
    max_attempts: int | None = None
    """After this many failed attempts the job gets a dead letter. Without it, the type's number."""
    timeout: timedelta | None = None
    """An attempt that takes longer is stopped and counts as failed. Without it, the type's time-out."""
    name: str | None = None
    """A name for people, which lists show beside the type."""
    correlation_id: str | None = None
    """An id of the caller's, by which jobs can be found. Without it, the payload's field that the type names."""
    tags: Sequence[str] = ()
    """Words by which operators select jobs: `signalbox cancel --tag night`."""
    metadata: Mapping[str, Any] | None = None
    """JSON that is kept with the job and that the engine never reads."""
    created_by: str | None = None
    """Who submitted the job, for people to see."""


class Submitted(NamedTuple):
    """Describe one submitted job. It is a tuple, since there may be very many."""

    id: str
    """The job's UUID. Where the idempotency key was known, that of the first job."""
    job_type: str
    """The name of its type."""
    lane: str
    """The lane through which its message goes."""
    tenant: str | None
    """Whose job it is."""
    status: str
    """`queued`: it is sent after the commit. `pending`: it waits for its time or for other jobs, then it is sent."""
    created: bool = True
    """False: a job with its idempotency key had been submitted before, or one with its replace key was replaced."""
