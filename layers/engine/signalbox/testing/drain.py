"""Work off jobs in a test without queues: `drain` repeats until nothing is due, `immediate` drains at each commit.

Both hand the ids of due jobs to the App's worker, as messages would: claims, attempts and ends are the real ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import psycopg
from psycopg.pq import TransactionStatus

from signalbox.testing.rows import select

if TYPE_CHECKING:
    from signalbox.testing.stage import Stage

MOST_ATTEMPTS = 1000
EVER = datetime.max.replace(tzinfo=UTC)  # an `until` for which no job waits too long
ENDED = "SELECT id::text, job_type, status, result, error_details FROM signalbox.jobs WHERE completed_at IS NOT NULL"
# The jobs that would be sent to the worker: queued, or pending and only waiting for their time.
DUE = """
SELECT id::text, executions, scheduled_for > now() AS early FROM signalbox.jobs
WHERE status = 'queued' OR (
    status = 'pending' AND unmet_dependencies = 0 AND held_by IS NULL
    AND (scheduled_for IS NULL OR scheduled_for <= greatest(now(), %s::timestamptz))
)
ORDER BY priority, id
"""


@dataclass(frozen=True)
class EndedJob:
    """Describe a job that has ended: completed, failed or cancelled."""

    id: str
    job_type: str
    status: str
    result: Any
    error: dict[str, Any] | None  # `type` and `message` of what it failed with


class DrainEndless(AssertionError):
    """Some jobs become due again and again; the message says which."""


def drain(stage: Stage, until: datetime | None, limit: int) -> list[EndedJob]:
    """Work on due jobs, round by round, until a round begins nothing."""
    before = {row["id"] for row in select(stage.db, ENDED)}
    attempts = Counter[str]()
    while begun := _work_once(stage, until):
        attempts += begun
        if attempts.total() > limit:
            raise DrainEndless(_say_what_goes_round(stage, attempts, limit))
    ended = select(stage.db, f"{ENDED} ORDER BY completed_at, id")
    return [EndedJob(*row.values()) for row in ended if row["id"] not in before]


def _work_once(stage: Stage, until: datetime | None) -> Counter[str]:
    """Hand the due jobs to the worker; count the attempts that it began."""
    due = select(stage.db, DUE, until)
    if not due:
        return Counter()
    stage.make_due(*(row["id"] for row in due if row["early"]))
    ids = [row["id"] for row in due]
    stage.work(*ids)
    now = select(stage.db, "SELECT id::text, executions FROM signalbox.jobs WHERE id = ANY (%s::uuid[])", ids)
    then = {row["id"]: row["executions"] for row in due}
    return Counter({row["id"]: new for row in now if (new := row["executions"] - then[row["id"]])})


def _say_what_goes_round(stage: Stage, attempts: Counter[str], limit: int) -> str:
    statement = "SELECT format('%%s %%s, %%s', job_type, id, status) AS said FROM signalbox.jobs WHERE id = %s"
    found = [(select(stage.db, statement, id_), number) for id_, number in attempts.most_common(3)]
    round_and_round = "; ".join(f"{row['said']} after {number} attempts" for [row], number in found)
    return (
        f"jobs are still due after {limit} attempts: {round_and_round}. "
        "Let the job end, take a nearer `until`, or allow more by `limit`"
    )


@contextmanager
def after_each_commit(stage: Stage) -> Iterator[None]:
    """Drain the stage when a connection to its database has committed, in the thread that committed."""
    wait, name, draining = psycopg.Connection.wait, stage.db.info.dbname, False

    def wait_and_drain(self: psycopg.Connection[Any], *args: Any, **named: Any) -> Any:
        nonlocal draining
        answer = wait(self, *args, **named)
        if draining or self.closed or self.info.dbname != name or not _is_idle(self):
            return answer
        draining = True  # also for the worker's own threads, whose commits are part of it
        try:
            stage.drain()
        finally:
            draining = False
        return answer

    with patch.object(psycopg.Connection, "wait", wait_and_drain):
        yield


def _is_idle(connection: psycopg.Connection[Any]) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE
