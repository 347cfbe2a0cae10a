"""Set caps: pause a job type, lane, tenant or key, or limit how many of its jobs may run at once or begin.

They take effect at the next claim, which holds the cap's row while it counts: so a cap is kept exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from psycopg.rows import dict_row

from signalbox.errors import CapRefused
from signalbox.jobs.job_message import JobMessage
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult, run_bulk_action
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import list_jobs
from signalbox.operate.pause import resume_target_steps, with_held
from signalbox.packs.job_type import Lane
from signalbox.packs.registries import LONGEST_KEY, JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries
from signalbox.publish.held_jobs import next_held, release_held
from signalbox.publish.publisher import read_due_messages

SQL = load_queries(__file__)
Kind = Literal["type", "lane", "tenant", "key"]


@dataclass(frozen=True, slots=True)
class CapTarget:
    """Name what a cap limits."""

    kind: Kind
    key: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.key}'"

    @property
    def name(self) -> str:
        """Return the name as held_by has it."""
        return f"{self.kind}:{self.key}"

    @property
    def job_filter(self) -> JobFilter:
        names = {"type": "job_type", "lane": "lane", "tenant": "tenant", "key": "cap_key"}
        return JobFilter(**{names[self.kind]: self.key})  # type: ignore[arg-type]

    def require_known(self, db: Connection, job_types: JobTypeRegistry) -> None:
        """Raise for a type or lane that does not exist; tenants and keys may be new."""
        if self.kind == "type" and self.key not in job_types.by_name and not list_jobs(db, self.job_filter, 1):
            job_types.find(self.key)
        if self.kind == "lane" and self.key not in list(Lane):
            raise CapRefused(f"there is no lane '{self.key}'; the lanes are {', '.join(Lane)}")
        if not 0 < len(self.key) <= LONGEST_KEY:
            raise CapRefused(f"the name of a {self.kind} has 1 to {LONGEST_KEY} characters, not {len(self.key)}")


@dataclass(frozen=True, slots=True)
class Cap:
    """Limit the jobs that run at once, or begin in a time. A cap with neither is lifted."""

    max_running: int | None = None
    rate: int | None = None
    per_seconds: int | None = None

    def __post_init__(self) -> None:
        if (self.rate is None) != (self.per_seconds is None):
            raise CapRefused("a rate is so many jobs in so many seconds: give both, or neither")
        if self.max_running is not None and self.max_running < 0:
            raise CapRefused(f"max_running is {self.max_running}: at least 0 jobs may run at once")
        if self.rate is not None and min(self.rate, self.per_seconds or 0) < 1:
            raise CapRefused(f"a rate of {self.rate} in {self.per_seconds} s: both are whole numbers from 1")


def list_caps(db: Connection) -> list[dict[str, Any]]:
    """Return everything that is paused or capped."""
    with db.cursor(row_factory=dict_row) as cursor:
        return [json_row(row) for row in cursor.execute(SQL["list_caps"]).fetchall()]


def pause_target(db: Connection, job_types: JobTypeRegistry, what: CapTarget, *, by: Actor) -> None:
    """Pause the target: no claim takes its jobs from now on. Queued ones become paused when a worker looks at them."""
    what.require_known(db, job_types)
    with db.transaction():
        db.execute(SQL["pause"], _values(what, by))
        audit.note(db, by, f"{what.kind}.pause", kind=what.kind, id_=what.key)


def resume_target(db: Connection, job_types: JobTypeRegistry, what: CapTarget, context: BulkContext) -> BulkResult:
    """Resume the cap first, then its jobs. The first step waits for a claim that is holding some back."""
    what.require_known(db, job_types)
    by = context.by
    with db.transaction():
        was_paused = db.execute(SQL["resume"], _values(what, by)).fetchone() is not None
        db.execute(SQL["forget"], _values(what, by))
        if was_paused:
            audit.note(db, by, f"{what.kind}.resume", kind=what.kind, id_=what.key)
    if not was_paused and not list_jobs(db, what.job_filter.model_copy(update={"status": "paused"}), 1):
        raise CapRefused(f"{what} is not paused; `signalbox caps` lists what is")
    done = run_bulk_action(db, what.job_filter, context, "resume_target", resume_target_steps(db, by))
    if not was_paused and not done.counts["resumed"]:
        raise CapRefused(f"{what} is not paused; `signalbox caps` lists what is")
    return with_held(db, what.job_filter, done)


def set_cap(db: Connection, job_types: JobTypeRegistry, what: CapTarget, cap: Cap, *, by: Actor) -> list[JobMessage]:
    """Set the cap as a whole: limits it omits are lifted. Return the messages of the jobs that may begin."""
    what.require_known(db, job_types)
    values = {"max_running": cap.max_running, "rate": cap.rate, "per_seconds": cap.per_seconds}
    with db.transaction():
        db.execute(SQL["cap"], _values(what, by) | values)
        db.execute(SQL["forget"], _values(what, by))
        audit.note(db, by, f"{what.kind}.cap", kind=what.kind, id_=what.key, detail=values)
    released = release_held(db, what.name)
    return read_due_messages(db, released) if released else next_held(db, [what.name])


def _values(what: CapTarget, by: Actor) -> dict[str, Any]:
    return {"kind": what.kind, "key": what.key, "by": by.name, "reason": by.reason}
