"""List, make, pause and delete schedules of jobs for an operator."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from pydantic import Field

from signalbox.invocation import Invocation, Resources
from signalbox.job_schedules import store
from signalbox.job_schedules.schedule import JobSchedule, next_runs
from signalbox.job_schedules.store import NewSchedule
from signalbox.operate.audit import Actor
from signalbox.operate.redaction import redact_payload
from signalbox.packs.payload import Payload

MOST_SHOWN = 10  # of the times that a dry run names


class ListSchedules(Payload):
    """List schedules by name; the next page begins after the last name."""

    job_type: str | None = None
    tenant: str | None = None
    after_name: str | None = None
    limit: int = Field(100, ge=1, le=1000)


class CreateSchedule(NewSchedule):
    """Make a schedule; `replacing` changes one of the same name, if any. A dry run says when it would run next."""

    replacing: bool = False
    dry_run: bool = False
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class _ScheduleParams(Payload):
    """Name a schedule: `id` is its id or its name."""

    id: str
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)

    @property
    def actor(self) -> Actor:
        return Actor(self.by, self.reason)


class PauseSchedule(_ScheduleParams):
    """Let it submit nothing until it is resumed."""


class ResumeSchedule(_ScheduleParams):
    """Let it continue with its next time."""


class DeleteSchedule(_ScheduleParams):
    """Delete it, which is final; the jobs that it has submitted stay."""


def list_schedules(resources: Resources, params: ListSchedules, _: Invocation) -> dict[str, Any]:
    found = store.list_schedules(resources.database.connection(), **params.model_dump())
    last = found[-1].name if len(found) == params.limit else None
    return {"schedules": [_shown(resources, schedule) for schedule in found], "next": last}


def create_schedule(resources: Resources, params: CreateSchedule, invocation: Invocation) -> dict[str, Any]:
    db, by = resources.database.connection(), Actor(params.by, params.reason)
    act = store.plan_schedule if params.dry_run else store.create_schedule
    made = act(db, resources.job_types, params, by=by, now=invocation.clock, replacing=params.replacing)
    if params.dry_run:
        runs = [run.astimezone(UTC).isoformat() for run in next_runs(made, MOST_SHOWN)]
        return {"dry_run": {"in_words": made.in_words, "timezone": made.timezone, "next_runs": runs}}
    return {"schedule": _shown(resources, made)}


def pause_schedule(resources: Resources, params: PauseSchedule, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    paused = store.pause_schedule(db, params.id, by=params.actor, now=invocation.clock)
    return {"schedule": _shown(resources, paused)}


def resume_schedule(resources: Resources, params: ResumeSchedule, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    resumed = store.resume_schedule(db, params.id, by=params.actor, now=invocation.clock)
    return {"schedule": _shown(resources, resumed)}


def delete_schedule(resources: Resources, params: DeleteSchedule, _: Invocation) -> dict[str, Any]:
    deleted = store.delete_schedule(resources.database.connection(), params.id, by=params.actor)
    return {"schedule": _shown(resources, deleted)}


def _shown(resources: Resources, schedule: JobSchedule) -> dict[str, Any]:
    return redact_payload(resources.job_types, store.shown(schedule), "payload_template")
