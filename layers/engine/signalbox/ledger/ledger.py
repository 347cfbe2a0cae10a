"""Keep the ledger: one row a run in job_history, and the leases in job_locks that keep two runs of a slot apart.

`claim` and `record` are one round trip each. A claim either holds the slot's lease and has a row `running`, or has left
a row that says why there was no run. A record ends the row and gives the lease back, both or neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from signalbox.errors import RunLost, SchemaMismatch
from signalbox.packs.task import Overlap, Task
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
DISABLED = "the task is disabled in this stack"  # the reason of slots that came while the task was disabled


class RunStatus(StrEnum):
    """Name the state of a run, or of a slot that had none."""

    RUNNING = "running"  # next: succeeded or failed, by its worker or by the sweep
    SUCCEEDED = "succeeded"  # final; with `more` set, a continuation follows
    FAILED = "failed"  # final; the invocation's retry, or the sweep, runs the slot again
    SKIPPED = "skipped"  # final; there was nothing to do, for the reason given
    MISSED = "missed"  # final; no run came for the slot; the task's catch-up policy decides


class Trigger(StrEnum):
    """Name why a run was started."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"
    CATCH_UP = "catch_up"
    CONTINUATION = "continuation"


TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.RUNNING: frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.SKIPPED}),
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.SKIPPED: frozenset(),
    RunStatus.MISSED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Slot:
    """Name an instant of a task, which a run claims."""

    task: Task
    instant: datetime

    @property
    def lock(self) -> str:
        return f"{self.task.name}:{self.instant.isoformat()}"


@dataclass(frozen=True, slots=True)
class RunClaim:
    """Describe the result of an attempt to take a slot."""

    run_id: int
    status: RunStatus  # running: go ahead; anything else is already recorded
    reason: str | None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Describe the result of a run."""

    status: RunStatus
    items: int = 0
    more: bool = False
    capped: bool = False
    reason: str | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Say who claims, for what reason, and for how long."""

    worker_id: str
    trigger: Trigger
    lease: timedelta
    reference_time: datetime  # the run's now
    step: int = 0
    force: bool = False
    force_since: datetime | None = None  # a success that began after this still counts
    request: dict[str, Any] | None = None  # kept, so that the sweep can ask for the run again


def claim(connection: Connection, slot: Slot, attempt: ClaimRequest) -> RunClaim:
    """Take the slot, unless it has succeeded before, is held by another worker or may not overlap."""
    try:
        row = connection.execute(SQL["claim"], _claim_values(slot, attempt)).fetchone()
    except (psycopg.ProgrammingError, psycopg.IntegrityError, psycopg.DataError) as error:
        raise SchemaMismatch(
            f"the ledger does not match this code ({error.diag.message_primary}): another version wrote it; "
            "run `signalbox doctor`, then the migrator"
        ) from None
    assert row is not None  # noqa: S101 - the function answers exactly one row
    return RunClaim(row[0], RunStatus(row[1]), row[2])


def record(connection: Connection, slot: Slot, claim: RunClaim, worker_id: str, ending: RunEnd) -> int:
    """End the run and give its lease back; return its duration in milliseconds."""
    row = connection.execute(
        SQL["record"],
        {
            "run_id": claim.run_id,
            "worker_id": worker_id,
            "lock": slot.lock,
            "job_type": slot.task.name,
            "status": ending.status,
            "items": ending.items,
            "more": ending.more,
            "capped": ending.capped,
            "reason": ending.reason,
            "error": None if ending.error is None else Jsonb(ending.error),
        },
    ).fetchone()
    if row is None or row[0] is None:
        raise RunLost(
            f"run {claim.run_id} of {slot.lock} no longer belongs to this worker: its lease expired, and the run was "
            "ended; nothing more was recorded"
        )
    return int(row[0])


def record_disabled(connection: Connection, slot: Slot, attempt: ClaimRequest) -> RunClaim:
    """Record a skipped row for a slot whose task is disabled. That slot is decided, and is not missed later."""
    [[run_id]] = connection.execute(
        SQL["record_disabled"],
        {
            "job_type": slot.task.name,
            "slot": slot.instant,
            "reference_time": attempt.reference_time,
            "trigger": attempt.trigger,
            "worker_id": attempt.worker_id,
            "reason": DISABLED,
        },
    ).fetchall()
    return RunClaim(int(run_id), RunStatus.SKIPPED, DISABLED)


def record_refusal(
    connection: Connection, slot: Slot, attempt: ClaimRequest, request_id: str, error: dict[str, Any]
) -> int | None:
    """Record a failed row for a request that can't be run, once however often Lambda delivers it."""
    row = connection.execute(
        SQL["record_refusal"],
        {
            "job_type": slot.task.name,
            "slot": slot.instant,
            "reference_time": attempt.reference_time,
            "trigger": attempt.trigger,
            "error": Jsonb(error),
            "worker_id": attempt.worker_id,
            "request": f"{request_id}/",
        },
    ).fetchone()
    return None if row is None else int(row[0])


def _claim_values(slot: Slot, attempt: ClaimRequest) -> dict[str, Any]:
    return {
        "job_type": slot.task.name,
        "slot": slot.instant,
        "lock": slot.lock,
        "alone": slot.task.overlap is Overlap.FORBID,
        "worker_id": attempt.worker_id,
        "lease": attempt.lease,
        "force": attempt.force,
        "force_since": attempt.force_since,
        "reference_time": attempt.reference_time,
        "trigger": attempt.trigger,
        "step": attempt.step,
        "request": None if attempt.request is None else Jsonb(attempt.request),
    }
