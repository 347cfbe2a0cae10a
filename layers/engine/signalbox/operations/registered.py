"""List the tasks and job types that this stack knows, and run a task by hand."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row
from pydantic import Field

from signalbox.errors import JobTypeUnknown
from signalbox.invocation import Invocation, Resources
from signalbox.ledger.run import check_params
from signalbox.operate import audit
from signalbox.operate.audit import Actor
from signalbox.packs.payload import Instant, Payload
from signalbox.packs.suggest import nearest
from signalbox.packs.task import Task
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class ListTasks(Payload):
    """Take no params."""


class RunTask(Payload):
    """Run a task for the slot of a time, by default now; `force` runs a slot again that has succeeded."""

    task: str
    reference_time: Instant | None = None
    force: bool = False
    params: dict[str, Any] = Field(default_factory=dict)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


class ListJobTypes(Payload):
    """Take no params."""


class ShowJobType(Payload):
    name: str = Field(min_length=1, max_length=200)


def list_tasks(resources: Resources, _: ListTasks, __: Invocation) -> dict[str, Any]:
    disabled = resources.settings.disabled_tasks
    return {"tasks": [_shown(task, task.name not in disabled) for task in resources.tasks]}


def run_task(resources: Resources, params: RunTask, invocation: Invocation) -> dict[str, Any]:
    """Hand the run to the task's function, and return its slot; the ledger has the run once it starts."""
    task = resources.tasks.find(params.task)
    check_params(task, params.params)
    at = params.reference_time or invocation.clock
    slot = task.slot_of(at).isoformat()
    by = Actor(params.by, params.reason)
    audit.note(resources.database.connection(), by, "task.run", kind="task", id_=task.name, detail={"slot": slot})
    payload = {"task": task.name, "reference_time": at.isoformat(), "force": params.force, "params": params.params}
    resources.invoker.send(task, payload)
    return {"task": task.name, "slot": slot, "status": "requested"}


def list_job_types(resources: Resources, _: ListJobTypes, __: Invocation) -> dict[str, Any]:
    """Return the types that the last deploy stored, without their schemas."""
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        return {"job_types": [json_row(row) for row in cursor.execute(SQL["list"]).fetchall()]}


def show_job_type(resources: Resources, params: ShowJobType, _: Invocation) -> dict[str, Any]:
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(SQL["show"], {"name": params.name}).fetchone()
        if found is None:
            names = [row["name"] for row in cursor.execute(SQL["list"]).fetchall()]
            raise JobTypeUnknown(f"no job type is named '{params.name}'{nearest(params.name, names)}")
    return {"job_type": json_row(found)}


def _shown(task: Task, enabled: bool) -> dict[str, Any]:
    return {
        "name": task.name,
        "summary": task.summary,
        "function": task.function,
        "schedule": task.schedule,
        "catch_up": str(task.catch_up),
        "max_lateness_seconds": int(task.max_lateness.total_seconds()),
        "overlap": str(task.overlap),
        "retention_days": task.retention.days,
        "enabled": enabled,
    }
