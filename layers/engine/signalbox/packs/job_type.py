"""Describe a kind of job: where it runs, how long and how often, and which of its payload's fields become columns.

It is declared as a value in its pack's list; its module is imported when the first job of the type is claimed or
submitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Literal, get_args

from signalbox.packs.retry_policy import RetryPolicy


class Lane(StrEnum):
    """Name a queue. Separate queues keep urgent or long jobs from waiting behind many others."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    HEAVY = "heavy"  # one job an invocation, with more memory


LIGHT = frozenset({Lane.HIGH, Lane.NORMAL, Lane.LOW})
Category = Literal["critical", "high_priority", "standard", "background", "maintenance"]
CATEGORIES = get_args(Category)
Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True, slots=True)
class TypeCap:
    """Limit how many jobs of a type run at once, or begin in a time; an operator's own cap takes its place."""

    max_running: int | None = None
    rate: int | None = None
    per_seconds: int | None = None
    # Counts all jobs, each tenant's, or each tenant's by the value of the module's `cap_key(payload)`.
    per: Literal["type", "tenant", "key"] = "type"


@dataclass(frozen=True, slots=True)
class Route:
    """Choose a job's lane, and perhaps its time-out, by a field of its payload. A submit may not contradict it."""

    by: str  # the field
    lanes: Mapping[str, Lane]  # by the field's value
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)  # by the value; else the type's


@dataclass(frozen=True, slots=True)
class JobType:
    """Describe one kind of job."""

    name: str
    summary: str
    module: (
        str  # holds a function of the type's name, a model of its name in capitals, and where it had others, `upgrade`
    )
    version: int = 1  # of the payload's shape
    lane: Lane | None = None  # None: by priority
    lanes: frozenset[Lane] = LIGHT  # the lanes that a submit may choose
    route: Route | None = None
    category: Category = "standard"  # a submit may give another one
    timeout: timedelta = timedelta(minutes=5)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    # How many a worker runs at once. None: 100 of `async def`, 10 of others; 1: it computes, and gets the main thread.
    side_by_side: int | None = None
    cap: TypeCap | None = None
    transactional: bool = False  # it only writes to the database: its effects and its end are one transaction
    subject: str | None = None  # the payload's field that becomes subject_id
    correlation: str | None = None  # the payload's field that becomes correlation_id
    # By a tag's first word, the payload's field that follows it, or "id": the job's own.
    tags: Mapping[str, str] = field(default_factory=dict)
    # Made of the payload's fields, such as "Page {page} of {file_id}". A submit may then give no name.
    job_name: str | None = None
    sensitive: frozenset[str] = frozenset()  # the payload's fields whose values operators do not see
    severity: Severity = "warning"  # of its dead letters
    # A function (job uuid, payload jsonb, reason text, error jsonb) of its migrations, such as "shop.order_failed".
    # It is called in the transaction that dead-letters a job of the type, whatever ends the job.
    on_dead_letter: str | None = None
    transient: frozenset[str] = frozenset()  # names of error classes to try again against the default
    # A job that runs in pieces fails after this many, or this long after its first start.
    max_pieces: int = 10_000
    pieces_at_most: timedelta = timedelta(days=7)

    @property
    def model_name(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def allowed_lanes(self) -> frozenset[Lane]:
        routed = frozenset(self.route.lanes.values()) if self.route else frozenset()
        return self.lanes | routed | ({self.lane} if self.lane else set())


def lane_of(job_type: JobType, priority: int) -> Lane:
    """Return the type's own lane, or else by priority: 1 to 3 is high, 4 to 7 normal, 8 to 10 low."""
    if job_type.lane is not None:
        return job_type.lane
    if priority <= 3:
        return Lane.HIGH
    return Lane.NORMAL if priority <= 7 else Lane.LOW
