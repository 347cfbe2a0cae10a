"""Run one task for one slot, from its payload to the ledger.

    resolve → claim → perform → record → continue

A slot that has succeeded, or that another worker holds, is skipped, and that is a success. A task that fails gives its
lease back and raises, so that the invocation's retry can run the slot. The lease of a worker that vanishes runs out;
the next claim, or the sweep, then ends its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import psycopg
from pydantic import BaseModel

from signalbox.budget import Budget
from signalbox.errors import ParamsRefused, PayloadRefused, Refused, TaskDisabled
from signalbox.invocation import Invocation, Resources
from signalbox.ledger import ledger
from signalbox.ledger.context import Context, Done, Outcome, Skipped
from signalbox.ledger.ledger import ClaimRequest, RunClaim, RunEnd, RunStatus, Slot, Trigger
from signalbox.ledger.task_payload import TaskPayload
from signalbox.packs.payload import read_payload
from signalbox.packs.task import Task
from signalbox.postgres.connection import Connection
from signalbox.postgres.error_details import conceal, describe
from signalbox.postgres.retry import through_restart
from signalbox.runtime.metrics import TaskMetrics


@dataclass(frozen=True, slots=True)
class Run:
    """Describe one payload being run: the request, and its slot."""

    resources: Resources
    invocation: Invocation
    payload: TaskPayload
    task: Task
    now: datetime
    slot: Slot
    metrics: TaskMetrics
    continues: bool  # asks for a continuation by itself, where work is left

    @property
    def attempt(self) -> ClaimRequest:
        margin = self.resources.settings.lease_margin_seconds
        return ClaimRequest(
            worker_id=self.invocation.worker_id,
            trigger=self.payload.trigger,
            lease=timedelta(seconds=self.invocation.seconds_left + margin),
            reference_time=self.now,
            step=self.payload.step,
            force=self.payload.force,
            force_since=self.payload.force_since,
            request=self.payload.request,
        )

    def ids(self, claim: RunClaim) -> dict[str, Any]:
        """Return the fields by which the events of this run are found."""
        return {"slot": self.slot.instant.isoformat(), "run_id": claim.run_id, "worker_id": self.invocation.worker_id}


def run_task(
    resources: Resources, payload: TaskPayload, invocation: Invocation, *, continues: bool = True
) -> dict[str, Any]:
    """Run what the payload asks for and return the result; raise where the task failed or can't be run.

    A caller that sets `continues` to False asks for the next step itself where the answer says `more`.
    """
    run = _resolve(resources, payload, invocation, continues)
    try:
        if _is_disabled(run):
            return _leave(run, ledger.record_disabled(resources.database.connection(), run.slot, run.attempt))
        params = _accept(run)
        claim = _claim(run)
        if claim.status is not RunStatus.RUNNING:
            return _leave(run, claim)
        outcome = _perform(run, claim, params)
        return _finish(run, claim, outcome)
    finally:
        run.metrics.write()


def _resolve(resources: Resources, payload: TaskPayload, invocation: Invocation, continues: bool) -> Run:
    task = resources.tasks.find(payload.task)
    now = payload.now(invocation.clock)
    slot = Slot(task, task.slot_of(now))
    return Run(
        resources, invocation, payload, task, now, slot, TaskMetrics(resources.settings.stack, task.name), continues
    )


def _is_disabled(run: Run) -> bool:
    """Return whether a rule asks for a disabled task. Its rule still fires, and an error would raise alarms."""
    return run.payload.trigger is Trigger.SCHEDULE and run.task.name in run.resources.settings.disabled_tasks


def check_enabled(resources: Resources, task: str) -> None:
    """Refuse a task that is disabled in this stack."""
    if task in resources.settings.disabled_tasks:
        raise TaskDisabled(
            f"task '{task}' is disabled in this stack: take it out of the parameter DisabledTasks "
            f"(SIGNALBOX_DISABLED_TASKS); by hand, `signalbox invoke {task}` runs it all the same"
        )


def _accept(run: Run) -> BaseModel | None:
    """Return the checked params. A refusal from here on concerns a slot, so the ledger gets a row for it."""
    try:
        if run.payload.trigger not in (Trigger.MANUAL, Trigger.CONTINUATION):
            check_enabled(run.resources, run.task.name)
        return check_params(run.task, run.payload.params)
    except (Refused, ImportError) as error:
        connection, request_id = run.resources.database.connection(), run.invocation.request_id
        ledger.record_refusal(connection, run.slot, run.attempt, request_id, describe(error))
        run.metrics.count("RunsFailed")
        run.metrics.note("run.refused", slot=run.slot.instant.isoformat(), error=type(error).__name__)
        raise


def check_params(task: Task, given: dict[str, Any]) -> BaseModel | None:
    """Return the params as the task's own model, or raise an error that names the task and every fault."""
    model: type[BaseModel] | None = getattr(import_module(task.module), "Params", None)
    if model is None:
        if given:
            raise ParamsRefused(f"task '{task.name}' takes no params, but got {', '.join(sorted(given))}")
        return None
    try:
        return read_payload(model, given, f"params of task '{task.name}'")
    except PayloadRefused as error:
        raise ParamsRefused(str(error)) from None


def _claim(run: Run) -> RunClaim:
    claim = ledger.claim(run.resources.database.connection(), run.slot, run.attempt)
    if claim.status is RunStatus.RUNNING:
        run.resources.log.debug("run.claimed", extra={"task": run.task.name, **run.ids(claim)})
    return claim


def _leave(run: Run, claim: RunClaim) -> dict[str, Any]:
    """Return the answer for a slot that is not ours to run; the claim has recorded why."""
    if backfill_id := run.payload.backfill_id:
        from signalbox.ledger import backfill

        backfill.record_unclaimed_slot(run.resources.database.connection(), backfill_id, run.slot, claim)
    ending = RunEnd(claim.status, reason=claim.reason)
    _measure(run, claim, ending)
    return _answer(run, claim, ending)


def _perform(run: Run, claim: RunClaim, params: BaseModel | None) -> Outcome:
    perform: Callable[[Context], Outcome] = getattr(import_module(run.task.module), run.task.name)
    try:
        return perform(_context(run, params))
    except Exception as error:
        if not run.resources.settings.database_error_details:
            conceal(error)  # it may come from the task's own connection
        _record_failure(run, claim, error)
        raise


def _context(run: Run, params: BaseModel | None) -> Context:
    resources, invocation = run.resources, run.invocation
    return Context(
        task=run.task.name,
        slot=run.slot.instant,
        now=run.now,
        params=params,
        budget=Budget(invocation.ends_at - resources.settings.budget_margin_seconds),
        db=resources.database.connection(),
        metrics=run.metrics,
        worker_id=invocation.worker_id,
        resources=resources,
        cursor=run.payload.cursor,
    )


def _finish(run: Run, claim: RunClaim, outcome: Outcome) -> dict[str, Any]:
    ending = _ending(run, outcome)
    try:
        _record(run, claim, ending)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        _record_failure(run, claim, error)  # else the slot would wait for its lease to run out
        raise
    if ending.more and not ending.capped and run.continues:
        _continue(run, outcome.cursor if isinstance(outcome, Done) else None)
    detail = outcome.detail if isinstance(outcome, Done) else None
    return _answer(run, claim, ending) | ({"detail": detail} if detail is not None else {})


def _ending(run: Run, outcome: Outcome) -> RunEnd:
    if isinstance(outcome, Skipped):
        return RunEnd(RunStatus.SKIPPED, reason=outcome.reason)
    ending = RunEnd(RunStatus.SUCCEEDED, items=outcome.items, more=outcome.more, reason=outcome.reason)
    limit = run.resources.settings.max_continuations
    if not outcome.more or run.payload.step < limit:
        return ending
    reason = f"work is left after {limit} continuations, the limit for one slot"
    return replace(ending, capped=True, reason=reason)


def _record(run: Run, claim: RunClaim, ending: RunEnd) -> None:
    """End the run, through a restart of the database if need be."""
    # A lost end costs the slot the rest of its lease: then the sweep ends the run.
    duration = through_restart(run.resources.database, lambda db: _record_once(db, run, claim, ending))
    _measure(run, claim, ending, duration)


def _record_once(connection: Connection, run: Run, claim: RunClaim, ending: RunEnd) -> int:
    worker_id = run.invocation.worker_id
    backfill_id = run.payload.backfill_id
    if backfill_id is None:
        return ledger.record(connection, run.slot, claim, worker_id, ending)
    from signalbox.ledger import backfill

    with connection.transaction():
        duration = ledger.record(connection, run.slot, claim, worker_id, ending)
        backfill.record_slot(connection, backfill_id, run.slot, claim, ending)
        return duration


def _record_failure(run: Run, claim: RunClaim, error: Exception) -> None:
    """Record the failure, if possible. The task's own error is the one to raise; the sweep ends the row otherwise."""
    try:
        _record(run, claim, RunEnd(RunStatus.FAILED, error=describe(error)))
    except Exception:
        run.resources.log.exception("run.abandoned", extra={"run_id": claim.run_id})


def _continue(run: Run, cursor: str | None) -> None:
    origin: dict[str, Any] = {"step": run.payload.step + 1}
    if cursor or run.payload.cursor:
        origin["cursor"] = cursor
    if run.payload.force and run.payload.force_since is None:
        origin["since"] = run.invocation.clock.isoformat()  # keeps a duplicate continuation from running twice
    run.resources.invoker.rerun(run.task, run.now, Trigger.CONTINUATION, run.payload.request, **origin)


def _measure(run: Run, claim: RunClaim, ending: RunEnd, duration_ms: int | None = None) -> None:
    if ending.status is RunStatus.FAILED:
        run.metrics.count("RunsFailed")
    run.metrics.note(f"run.{ending.status}", **run.ids(claim), trigger=str(run.payload.trigger), reason=ending.reason)
    if duration_ms is None:
        return
    late = (run.invocation.clock - run.now).total_seconds() if run.payload.trigger is Trigger.SCHEDULE else 0
    run.metrics.note(f"run.{ending.status}", items=ending.items, duration_ms=duration_ms, late_seconds=max(0.0, late))


def _answer(run: Run, claim: RunClaim, ending: RunEnd) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "task": run.task.name,
        "slot": run.slot.instant.isoformat(),
        "status": str(ending.status),
        "items": ending.items,
        "run_id": claim.run_id,
    }
    if ending.reason is not None:
        answer["reason"] = ending.reason
    if ending.more:
        answer["more"] = True
    return answer
