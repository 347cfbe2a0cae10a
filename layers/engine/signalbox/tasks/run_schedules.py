"""Submit the jobs of the schedules that are due, each minute: one for each instant, in the transaction that moves on.

A schedule whose job is refused, because its type has changed or is gone, stays at its instant and says why. It is tried
again each minute, so that nothing is lost once the code is fixed, and the other schedules do not wait for it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from signalbox.errors import SignalboxError
from signalbox.job_schedules.schedule import DueRuns, JobSchedule, due_runs, job_of
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted

SQL = load_queries(__file__)
BATCH = 100
_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), str(uuid.UUID(int=0)))


def run_schedules(context: Context) -> Done:
    """Submit the jobs. Items are the jobs that were submitted."""
    running = ScheduleRunner(context)
    more = running.run_all()
    if running.failed:
        context.metrics.count("SchedulesFailed", running.failed)
    return Done(running.submitted, more=more)


@dataclass(slots=True)
class ScheduleRunner:
    """Run once over all that is due."""

    context: Context
    submitted: int = 0
    failed: int = 0
    spent: list[str] = field(default_factory=list)  # schedules that have had the most jobs of one run

    def run_all(self) -> bool:
        """Work batch by batch. Return whether the budget ended before the work did."""
        place = _BEGINNING
        while not self.context.budget.spent:
            with self.context.db.transaction():
                schedules = self._take(place)
                if not schedules:
                    return False
                batch = Batch(self.context, schedules)
                submitted = batch.run()
            self._count(batch, submitted)
            self.context.publisher.publish_submitted(submitted)
            place = (schedules[-1].next_run_at or place[0], schedules[-1].id)
        return True

    def _take(self, place: tuple[datetime, str]) -> list[JobSchedule]:
        values = {"now": self.context.now, "after": place[0], "after_id": place[1], "spent": self.spent, "batch": BATCH}
        with self.context.db.cursor(row_factory=class_row(JobSchedule)) as cursor:
            return cursor.execute(SQL["take_due"], values).fetchall()

    def _count(self, batch: Batch, submitted: Sequence[Submitted]) -> None:
        self.submitted += sum(one.created for one in submitted)
        self.failed += len(batch.errors)
        now = self.context.now
        self.spent += [
            id_ for id_, turn in batch.turns.items() if turn.runs and turn.next_run_at and turn.next_run_at <= now
        ]


@dataclass(slots=True)
class Batch:
    """Hold some schedules locked until their jobs are stored."""

    context: Context
    schedules: Sequence[JobSchedule]
    turns: dict[str, DueRuns] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def run(self) -> list[Submitted]:
        jobs: dict[str, list[NewJob]] = {}
        for schedule in self.schedules:
            try:
                self.turns[schedule.id] = turn = due_runs(schedule, self.context.now)
                jobs[schedule.id] = [job_of(schedule, instant) for instant in turn.runs]
            except Exception as error:
                self._blame(schedule.id, error)
        submitted = self._submit(jobs)
        self._record()
        return submitted

    def _submit(self, jobs: Mapping[str, Sequence[NewJob]]) -> list[Submitted]:
        """Submit all together; where one is refused, schedule by schedule, so that the others continue."""
        try:
            return self._store([job for found in jobs.values() for job in found])
        except Exception as error:
            if isinstance(error, psycopg.OperationalError):
                raise
        submitted: list[Submitted] = []
        for id_, found in jobs.items():
            try:
                submitted += self._store(found)
            except Exception as error:
                self._blame(id_, error)
        return submitted

    def _store(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        with self.context.db.transaction():
            return submit(self.context.db, self.context.job_types, jobs, self.context.now)

    def _blame(self, id_: str, error: Exception) -> None:
        """Record why a schedule failed, or raise the database's own trouble. Foreign errors may quote a payload."""
        if isinstance(error, psycopg.OperationalError):
            raise error
        self.turns.pop(id_, None)
        self.errors[id_] = str(error) if isinstance(error, SignalboxError) else type(error).__name__

    def _record(self) -> None:
        turns = [_as_row(id_, turn) for id_, turn in self.turns.items()]
        self.context.db.execute(SQL["move"], {"turns": json.dumps(turns), "now": self.context.now})
        if self.errors:
            failures = [{"id": id_, "error": error} for id_, error in self.errors.items()]
            self.context.db.execute(SQL["blame"], {"failures": json.dumps(failures), "now": self.context.now})
        for id_, error in self.errors.items():
            self.context.log.warning("schedule.failed", extra={"schedule_id": id_, "error": error})


def _as_row(id_: str, turn: DueRuns) -> dict[str, Any]:
    return {
        "id": id_,
        "next_run_at": turn.next_run_at.isoformat() if turn.next_run_at else None,
        "last_run_at": turn.runs[-1].isoformat() if turn.runs else None,
        "runs": len(turn.runs),
        "missed": turn.missed,
    }
