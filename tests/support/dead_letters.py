"""Make jobs that failed for good, their dead letters, and redrives by an operator named ada."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg

from signalbox.budget import Budget
from signalbox.dead_letters import redrive as redriving
from signalbox.operate.audit import Actor
from signalbox.operate.filters import DeadLetterFilter
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from tests.support.jobs import obeying


def fail(stage: Stage, word: str = "fail_for_good", **fields: Any) -> str:
    """Let a job fail for good; return its id."""
    job_id = stage.submit(obeying(word, **fields))
    stage.work(job_id)
    return job_id


def add_letter(stage: Stage, word: str = "fail_for_good", **fields: Any) -> str:
    """Let a job fail for good; return the id of its dead letter."""
    return letter_of(stage, fail(stage, word, **fields))


def letter_of(stage: Stage, job_id: str) -> str:
    """Return the id of the job's dead letter."""
    return str(stage.dead_letter(job_id)["id"])


def letter(stage: Stage, letter_id: str) -> dict[str, Any]:
    """Return the dead letter's row."""
    [row] = select(stage.db, "SELECT * FROM signalbox.dead_letter_jobs WHERE id = %s", letter_id)
    return row


def consume(stage: Stage, record: dict[str, Any]) -> str:
    """Let the consumer receive a message; return the id of its dead letter."""
    assert stage.consume(record) == []
    return str(letters(stage.db)[-1]["id"])


def job_of(stage: Stage, letter_id: str) -> dict[str, Any]:
    """Return the row of the dead letter's job."""
    return stage.job(str(letter(stage, letter_id)["original_job_id"]))


def letters(db: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """Return all dead letters, the oldest failure first."""
    return select(db, "SELECT * FROM signalbox.dead_letter_jobs ORDER BY first_failed_at")


def audit(db: psycopg.Connection[Any], letter_id: str) -> list[dict[str, Any]]:
    """Return what was done about a dead letter."""
    return select(db, "SELECT * FROM signalbox.audit_log WHERE entity_id = %s ORDER BY id", letter_id)


def redrive(stage: Stage, *ids: str, **order: Any) -> dict[str, Any]:
    """Redrive these dead letters."""
    return redrive_all(stage, DeadLetterFilter(ids=[*ids]), **order)


def redrive_all(stage: Stage, selection: DeadLetterFilter, **order: Any) -> dict[str, Any]:
    """Redrive those that the filter selects."""
    given: dict[str, Any] = {"now": datetime.now(UTC)} | order
    stack = (stage.db, stage.job_types, stage.app.resources.invoker)
    by = Actor(given.pop("by", "ada"), given.pop("reason", "mended"))
    if given.pop("dry_run", False):
        return redriving.preview(*stack, selection, **given)
    return redriving.redrive(*stack, selection, by, budget=Budget.of(60), **given)
