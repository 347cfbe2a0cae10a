"""Describe a schedule of jobs as its row has it, and decide when it runs next and which runs are due. All pure.

`cron` follows the clocks of its time zone; `interval` counts real time from its start, without drift; `once` runs once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

from signalbox.job_schedules.cron import Cron, zone_of
from signalbox.submit.new_job import NewJob

CatchUp = Literal["all", "latest", "skip"]
# For one schedule in one run: what a long outage has left is submitted minute by minute.
MOST_AT_ONCE = 100
MOST_COUNTED = 10_000
# How late the task itself may be before an instant counts as missed.
LATE = timedelta(minutes=5)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """Hold one row of job_schedules."""

    id: str
    name: str
    job_type: str
    payload_template: dict[str, Any]
    options: dict[str, Any]
    schedule_type: Literal["cron", "interval", "once"]
    cron_expression: str | None
    interval_ms: int | None
    run_at: datetime | None
    starts_at: datetime | None
    timezone: str
    catch_up: CatchUp
    enabled: bool
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    last_run_at: datetime | None
    next_run_at: datetime | None
    run_count: int
    missed_count: int
    max_runs: int | None
    expires_at: datetime | None
    error: str | None
    tenant: str | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any] | None

    @property
    def status(self) -> Literal["active", "paused", "failing", "finished"]:
        if not self.enabled:
            return "paused"
        if self.error is not None:
            return "failing"
        return "active" if self.next_run_at else "finished"

    @property
    def in_words(self) -> str:
        """Return when it runs, such as "At 02:15 every day"."""
        if self.cron_expression is not None:
            return Cron.parse(self.cron_expression, self.timezone).in_words
        if self.run_at is not None:
            return f"Once, at {self.run_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        return f"Every {timedelta(milliseconds=self.interval_ms or 0)}"

    @property
    def timing(self) -> tuple[object, ...]:
        """Return the fields that decide when it runs. A replacement with the same timing keeps the next instant."""
        return (self.cron_expression, self.interval_ms, self.run_at, self.starts_at, self.timezone)

    @property
    def runs_left(self) -> int | None:
        return None if self.max_runs is None else max(0, self.max_runs - self.run_count)


@dataclass(frozen=True, slots=True)
class DueRuns:
    """Say what to do about a schedule now."""

    runs: tuple[datetime, ...]  # the instants that each get a job
    missed: int  # the number of instants that get none any more
    next_run_at: datetime | None


def next_run(schedule: JobSchedule, after: datetime) -> datetime | None:
    """Return the first instant after this one that gets a job, or None at the schedule's end."""
    if schedule.runs_left == 0:
        return None
    fire = _next_fire(schedule, after)
    return None if fire is None or (schedule.expires_at and fire >= schedule.expires_at) else fire


def next_runs(schedule: JobSchedule, most: int) -> list[datetime]:
    """Return when it runs next, at most so often."""
    left = most if schedule.runs_left is None else min(most, schedule.runs_left)
    runs: list[datetime] = []
    fire = schedule.next_run_at
    while fire is not None and len(runs) < left:
        runs.append(fire)
        fire = next_run(schedule, fire)
    return runs


def due_runs(schedule: JobSchedule, now: datetime) -> DueRuns:
    """Return the runs that have become due, by the schedule's own policy for missed ones."""
    most = min(MOST_AT_ONCE, schedule.runs_left or MOST_AT_ONCE) if schedule.catch_up == "all" else MOST_COUNTED
    due = list(islice(_due(schedule, now), most))
    if not due:
        return DueRuns((), 0, schedule.next_run_at)
    following = next_run(schedule, due[-1])
    runs = tuple(due) if schedule.catch_up == "all" else _latest(schedule, due[-1], following, now)
    spent = replace(schedule, run_count=schedule.run_count + len(runs))
    return DueRuns(runs, len(due) - len(runs), None if spent.runs_left == 0 else following)


def _latest(schedule: JobSchedule, last: datetime, following: datetime | None, now: datetime) -> tuple[datetime, ...]:
    if following is not None and following <= now:
        return ()  # too many were missed: the next run goes on counting them
    return () if schedule.catch_up == "skip" and now - last > LATE else (last,)


def _due(schedule: JobSchedule, now: datetime) -> Iterator[datetime]:
    fire = schedule.next_run_at
    while fire is not None and fire <= now:
        yield fire
        fire = next_run(schedule, fire)


def _next_fire(schedule: JobSchedule, after: datetime) -> datetime | None:
    if schedule.run_at is not None:
        return schedule.run_at if schedule.run_at > after else None
    if schedule.cron_expression is not None:
        since = after if schedule.starts_at is None else max(after, schedule.starts_at - _TICK)
        return Cron.parse(schedule.cron_expression, schedule.timezone).next_after(since)
    step = timedelta(milliseconds=schedule.interval_ms or 0)
    # With a given start the first run is then; else one interval after the schedule was made.
    anchor, first = (schedule.starts_at, 0) if schedule.starts_at else (schedule.created_at, 1)
    return anchor + max(first, (after - anchor) // step + 1) * step


def job_of(schedule: JobSchedule, instant: datetime) -> NewJob:
    """Return the job for one instant; a second submit of it returns the first."""
    instant = instant.astimezone(UTC)  # whatever zone the session uses
    options = dict(schedule.options)
    seconds = options.pop("timeout_seconds", None)
    return NewJob(
        job_type=schedule.job_type,
        payload=fill(schedule.payload_template, schedule, instant),
        at=instant,
        idempotency_key=f"schedule:{schedule.id}:{instant.isoformat()}",
        schedule_id=schedule.id,
        tenant=schedule.tenant,
        created_by=f"schedule:{schedule.name}",
        timeout=None if seconds is None else timedelta(seconds=seconds),
        **options,
    )


def fill(template: Any, schedule: JobSchedule, instant: datetime) -> Any:
    """Return the template with each text `$instant` or `$date` replaced, where it is the whole text.

    `$instant` is the instant that the job is for, `$date` its date in the schedule's own zone. A job that runs late
    knows by them what it is late for.
    """
    if isinstance(template, dict):
        return {name: fill(value, schedule, instant) for name, value in template.items()}
    if isinstance(template, list):
        return [fill(value, schedule, instant) for value in template]
    if template == "$instant":
        return instant.isoformat()
    if template == "$date":
        return instant.astimezone(zone_of(schedule.timezone)).date().isoformat()
    return template
