"""Keep schedules of jobs by name, so that a deploy may apply the same ones again.

A schedule is checked when it is made: its timing, and the job that it would submit next, by today's model of its type.
`run_schedules` submits the jobs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from pydantic import Field, ValidationError

from signalbox.errors import JobRefused, ScheduleRefused, ScheduleUnknown
from signalbox.job_schedules.cron import Cron, zone_of
from signalbox.job_schedules.schedule import CatchUp, JobSchedule, job_of, next_run
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.packs.payload import Instant, Payload, fault_of
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries
from signalbox.postgres.uuid7 import new_ids
from signalbox.submit.insert import check_job

SQL = load_queries(__file__)
MINUTE = timedelta(minutes=1)
LONGEST_INTERVAL = timedelta(days=3660)
LONGEST_NAME = 200


class ScheduleOptions(Payload):
    """Accept the further fields of a schedule's jobs, as NewJob has them."""

    priority: int | None = None
    lane: str | None = None
    cap_key: str | None = None
    group: str | None = None
    name: str | None = None
    correlation_id: str | None = None
    tags: list[str] | None = None
    max_attempts: int | None = None
    timeout_seconds: float | None = Field(None, gt=0)
    metadata: dict[str, Any] | None = None


class NewSchedule(Payload):
    """Describe a schedule to make: its name, the type of its jobs, and one of `cron`, `every_seconds` and `at`."""

    name: str
    job_type: str
    payload: dict[str, Any] = Field(default_factory=dict)  # "$instant" and "$date" in it are replaced
    cron: str | None = None
    every_seconds: float | None = Field(default=None, gt=0, le=10_000_000_000)
    at: Instant | None = None
    timezone: str = "UTC"
    starts_at: Instant | None = None
    catch_up: CatchUp = "latest"
    max_runs: int | None = Field(default=None, ge=1, le=2_000_000_000)
    expires_at: Instant | None = None
    tenant: str | None = Field(default=None, max_length=200)
    options: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] | None = None

    @property
    def every(self) -> timedelta | None:
        return None if self.every_seconds is None else timedelta(seconds=self.every_seconds)


def create_schedule(
    db: Connection, job_types: JobTypeRegistry, new: NewSchedule, *, by: Actor, now: datetime, replacing: bool = False
) -> JobSchedule:
    """Store the schedule. A replacement keeps the old one's counts, pause and, with the same timing, next instant."""
    _refuse_unfit(new)
    with db.transaction():
        db.execute(SQL["take_turn"], {"name": new.name})
        old = _find(db, new.name)
        schedule = _checked(job_types, new, old, by, now, replacing=replacing)
        values = {name: Jsonb(value) if isinstance(value, dict) else value for name, value in asdict(schedule).items()}
        db.execute(SQL["store"], values)
        audit.note(db, by, "schedule.replace" if old else "schedule.create", kind="schedule", id_=schedule.id,
                   detail={"name": schedule.name, "job_type": schedule.job_type})  # fmt: skip
    return schedule


def plan_schedule(
    db: Connection, job_types: JobTypeRegistry, new: NewSchedule, *, by: Actor, now: datetime, replacing: bool = False
) -> JobSchedule:
    """Check the schedule as create_schedule does, and return it without storing it."""
    _refuse_unfit(new)
    return _checked(job_types, new, _find(db, new.name), by, now, replacing=replacing)


def list_schedules(
    db: Connection,
    *,
    job_type: str | None = None,
    tenant: str | None = None,
    after_name: str | None = None,
    limit: int = 100,
) -> list[JobSchedule]:
    """Return a page of schedules by name; the next page begins after the last name."""
    values = {"job_type": job_type, "tenant": tenant, "after_name": after_name, "limit": limit}
    with db.cursor(row_factory=class_row(JobSchedule)) as cursor:
        return cursor.execute(SQL["list"], values).fetchall()


def show_schedule(db: Connection, which: str) -> JobSchedule:
    """Return the schedule with that name or id."""
    found = _find(db, which)
    if found is None:
        raise ScheduleUnknown(f"there is no schedule '{which[:LONGEST_NAME]}'; `signalbox schedules` lists them")
    return found


def pause_schedule(db: Connection, which: str, *, by: Actor, now: datetime) -> JobSchedule:
    """Pause the schedule until it is resumed.

    Instants within the pause get no job, and do not count as missed. Of several pauses the newest counts.
    """
    with db.transaction():
        found = _lock(db, which)
        pause: dict[str, Any] = {"paused_at": now, "paused_by": by.name, "paused_reason": by.reason}
        return _change(
            db, replace(found, enabled=False, next_run_at=None, updated_at=now, **pause), by, "schedule.pause"
        )


def resume_schedule(db: Connection, which: str, *, by: Actor, now: datetime) -> JobSchedule:
    """Resume with the next instant. A schedule that runs once and missed its time in the pause runs now."""
    with db.transaction():
        found = _lock(db, which)
        if found.enabled:
            return found
        overdue = found.run_at is not None and found.run_count == 0 and found.catch_up != "skip"
        due = found.run_at if overdue else next_run(found, now)
        pause: dict[str, Any] = {"paused_at": None, "paused_by": None, "paused_reason": None}
        return _change(
            db, replace(found, enabled=True, next_run_at=due, updated_at=now, **pause), by, "schedule.resume"
        )


def delete_schedule(db: Connection, which: str, *, by: Actor) -> JobSchedule:
    """Delete the schedule. Its jobs and its rows in the audit log stay."""
    with db.transaction():
        found = _lock(db, which)
        db.execute(SQL["delete"], {"id": found.id})
        detail = {"name": found.name, "run_count": found.run_count}
        audit.note(db, by, "schedule.delete", kind="schedule", id_=found.id, detail=detail)
        return found


def shown(schedule: JobSchedule) -> dict[str, Any]:
    """Return the schedule as JSON."""
    return {"status": schedule.status, "in_words": schedule.in_words, **json_row(asdict(schedule))}


def _refuse_unfit(new: NewSchedule) -> None:
    interval = _interval_fault(new.every, new.catch_up)
    for fault in (_name_fault(new.name), _timing_fault(new), interval, _content_fault(new)):
        if fault is not None:
            raise ScheduleRefused(f"schedule '{new.name[:LONGEST_NAME]}': {fault}")
    zone_of(new.timezone)
    if new.cron is not None:
        Cron.parse(new.cron, new.timezone)


def _name_fault(name: str) -> str | None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        return f"a name has 1 to {LONGEST_NAME} printable characters"
    return "its name looks like an id" if _as_id(name) else None


def _timing_fault(new: NewSchedule) -> str | None:
    if sum(way is not None for way in (new.cron, new.every, new.at)) != 1:
        return "give one of cron, every and at"
    if any(instant and instant.tzinfo is None for instant in (new.at, new.starts_at, new.expires_at)):
        return "an instant has no time zone; give one, such as a trailing Z"
    if new.at is not None and new.starts_at is not None:
        return "a schedule that runs once takes an instant, not a start"
    if new.catch_up not in ("all", "latest", "skip"):
        return f"catch_up '{new.catch_up}' is not one of all, latest and skip"
    return "max_runs must be at least 1" if new.max_runs is not None and new.max_runs < 1 else None


def _interval_fault(every: timedelta | None, catch_up: CatchUp) -> str | None:
    if every is None:
        return None
    if every > LONGEST_INTERVAL:
        return f"an interval must be at most {LONGEST_INTERVAL.days} days"
    if every >= MINUTE:
        return None
    if every < timedelta(seconds=1):
        return "an interval must be at least one second"
    if catch_up != "all":
        return (
            "schedules are checked each minute: an interval below that needs catch_up all, by which the jobs of one "
            "minute come together"
        )
    return None


def _content_fault(new: NewSchedule) -> str | None:
    try:
        text = json.dumps([new.payload, new.options, new.metadata], allow_nan=False)
    except (TypeError, ValueError):
        return "its payload, options and metadata must be JSON"
    return "it holds a NUL character, which PostgreSQL can't store" if "\\u0000" in text else None


def _made(new: NewSchedule, old: JobSchedule | None, by: Actor, now: datetime) -> JobSchedule:
    """Return the row, except when it runs next."""
    return JobSchedule(
        id=old.id if old else new_ids(1)[0],
        name=new.name,
        job_type=new.job_type,
        payload_template=new.payload,
        options=_options(new),
        schedule_type="cron" if new.cron is not None else "interval" if new.every is not None else "once",
        cron_expression=new.cron,
        interval_ms=None if new.every is None else new.every // timedelta(milliseconds=1),
        run_at=_utc(new.at),
        starts_at=_utc(new.starts_at),
        timezone=new.timezone,
        catch_up=new.catch_up,
        enabled=old.enabled if old else True,
        paused_at=old.paused_at if old else None,
        paused_by=old.paused_by if old else None,
        paused_reason=old.paused_reason if old else None,
        last_run_at=old.last_run_at if old else None,
        next_run_at=None,
        run_count=old.run_count if old else 0,
        missed_count=old.missed_count if old else 0,
        max_runs=new.max_runs,
        expires_at=_utc(new.expires_at),
        error=None,
        tenant=new.tenant,
        created_by=old.created_by if old else by.name,
        created_at=old.created_at if old else now,
        updated_at=now,
        metadata=new.metadata,
    )


def _checked(
    job_types: JobTypeRegistry, new: NewSchedule, old: JobSchedule | None, by: Actor, now: datetime, *, replacing: bool
) -> JobSchedule:
    if old is not None and not replacing:
        raise ScheduleRefused(f"there is a schedule '{new.name}' already: replace it, or choose another name")
    return _planned(job_types, _made(new, old, by, now), old, now)


def _planned(job_types: JobTypeRegistry, made: JobSchedule, old: JobSchedule | None, now: datetime) -> JobSchedule:
    same = old is not None and old.timing == made.timing
    if made.max_runs is not None and made.run_count > made.max_runs:
        raise ScheduleRefused(f"schedule '{made.name}' has run {made.run_count} times, more than max_runs allows")
    if made.expires_at is not None and made.starts_at is not None and made.expires_at <= made.starts_at:
        raise ScheduleRefused(f"schedule '{made.name}' would expire before it starts")
    due = old.next_run_at if old and same and old.next_run_at else next_run(made, now)
    if due is not None and (made.runs_left == 0 or (made.expires_at is not None and due >= made.expires_at)):
        due = None
    # A schedule that is applied again after its end stays ended.
    if due is None and not same:
        raise ScheduleRefused(f"schedule '{made.name}' would never run: its time, its expiry or its max_runs is past")
    try:
        check_job(job_types, job_of(made, due or now), now)
    except JobRefused as error:
        raise JobRefused(f"schedule '{made.name}': {error}") from None
    return replace(made, next_run_at=due if made.enabled else None)


def _options(new: NewSchedule) -> dict[str, Any]:
    try:
        return ScheduleOptions.model_validate(new.options).model_dump(exclude_none=True)
    except ValidationError as error:
        faults = "; ".join(fault_of(ScheduleOptions, dict(fault)) for fault in error.errors(include_url=False))
        raise ScheduleRefused(f"schedule '{new.name}': options refused: {faults}") from None


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)


def _as_id(which: str) -> str | None:
    try:
        return str(UUID(which))
    except ValueError:
        return None


def _find(db: Connection, which: str, query: str = "find") -> JobSchedule | None:
    with db.cursor(row_factory=class_row(JobSchedule)) as cursor:
        return cursor.execute(SQL[query], {"name": which, "id": _as_id(which)}).fetchone()


def _lock(db: Connection, which: str) -> JobSchedule:
    """Lock the schedule; wait for a run that is working on it."""
    return _find(db, which, "lock") or show_schedule(db, which)


def _change(db: Connection, schedule: JobSchedule, by: Actor, action: str) -> JobSchedule:
    db.execute(SQL["change"], asdict(schedule) | {"options": None, "payload_template": None, "metadata": None})
    audit.note(db, by, action, kind="schedule", id_=schedule.id, detail={"name": schedule.name})
    return schedule
