"""Run a scheduled task as a job: with retries, dependencies, an operator's view, and the task's own ledger.

Without a reference time the run is for the slot in which the job first became due, in each attempt. A job waits for a
slot that is running elsewhere. A run that leaves work continues as the job's next piece: the job ends when the work
does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from signalbox.errors import PayloadRefused
from signalbox.invocation import Invocation
from signalbox.ledger import run
from signalbox.ledger.ledger import RunStatus
from signalbox.ledger.task_payload import Origin, TaskPayload
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, More, Outcome, Permanent, Snooze
from signalbox.packs.payload import Instant
from signalbox.packs.registries import TaskRegistry
from signalbox.postgres.queries import load_queries
from signalbox.worker.job_context import JobContext

SQL = load_queries(__file__)
# How long a slot that another worker runs is left alone before the job looks again.
WAIT = timedelta(seconds=30)


class RunTask(JobPayload):
    """Accept what the archiver accepts, without the fields of rules and of the engine."""

    task: str = Field(min_length=1)
    reference_time: Instant | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    force: bool = False


@dataclass(frozen=True, slots=True)
class RunTaskCursor:
    """Sum up the pieces so far: the job's cursor."""

    step: int = 0
    items: int = 0


def check(payload: RunTask, tasks: TaskRegistry) -> None:
    """Refuse a task that no worker of this stack can run, on submit and in each attempt."""
    task = tasks.find(payload.task)
    if task.function != "archiver":
        # The task needs its function's permissions and network, and a job that only hands over would end before the
        # work.
        raise PayloadRefused(
            f"task '{task.name}' is run by the function {task.function} and not as a job: "
            f"`signalbox invoke {task.name}` runs it"
        )


def run_task(context: JobContext) -> Outcome:
    """Run the task once."""
    context.check_cancelled()
    _refuse_unfit(context)
    progress, due = RunTaskCursor(**(context.cursor or {})), _due(context)
    asked = _payload(context, progress, due)
    # The run's lease and budget end with this attempt, not with the worker's invocation.
    invocation = Invocation(f"job-{context.job.id}", context.now, context.budget.ends_at)
    answer = run.run_task(context.resources, asked, invocation, continues=False)
    if _must_wait(context, answer, asked):
        return Snooze(WAIT, answer["reason"])
    items = progress.items + answer["items"]
    if not answer.get("more"):
        return Completed(answer | {"items": items})
    if progress.step >= context.resources.settings.max_continuations:
        raise Permanent(f"task '{asked.task}', slot {answer['slot']}: {answer['reason']}; does its work ever end?")
    return More(asdict(RunTaskCursor(progress.step + 1, items)), message=f"{items} items, and work is left")


def _refuse_unfit(context: JobContext) -> None:
    settings = context.resources.settings
    check(context.payload, context.resources.tasks)
    run.check_enabled(context.resources, context.payload.task)
    if context.job.timeout_ms <= settings.budget_margin_seconds * 1000:
        raise PayloadRefused(
            f"a time-out of {context.job.timeout_ms / 1000:g} s leaves a task no time: "
            f"{settings.budget_margin_seconds} s of it are reserved for the ledger"
        )


def _due(context: JobContext) -> datetime:
    if context.payload.reference_time is not None:
        due: datetime = context.payload.reference_time
        return due
    row = context.db.execute(SQL["read_due"], {"job_id": context.job.id}).fetchone()
    return row[0] if row is not None and row[0] is not None else context.job.created_at


def _payload(context: JobContext, progress: RunTaskCursor, due: datetime) -> TaskPayload:
    payload: RunTask = context.payload
    # A success since the job was submitted may be its own, in an attempt whose end was lost: so even a forced run does
    # not run twice.
    again = progress.step > 0 or (payload.force and context.job.execution > 1)
    since = context.job.created_at if payload.force else None
    origin = Origin(trigger="continuation", step=progress.step, since=since, backfill_id=None) if again else None
    return TaskPayload(task=payload.task, reference_time=due, force=payload.force, params=payload.params, origin=origin)


def _must_wait(context: JobContext, answer: dict[str, Any], asked: TaskPayload) -> bool:
    """Return whether the slot was skipped because another worker runs it, rather than because nothing is to do."""
    if answer["status"] != RunStatus.SKIPPED:
        return bool(answer["status"] == RunStatus.MISSED)  # an overlap that the task forbids
    # A forced run without a duplicate to look for counts no success, so only another worker can have blocked it.
    since = asked.force_since or context.now if asked.force else None
    row = context.db.execute(SQL["read_skipped"], {"run_id": answer["run_id"], "since": since}).fetchone()
    return row is None or not any(row)
