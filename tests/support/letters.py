"""Jobs that have failed for good, and what an operator does about their dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from signalbox.dead_letters.letters import Triaged, triage
from signalbox.dead_letters.redrive import redrive
from signalbox.operate.filters import DeadLetterFilter
from tests.support.workshop import Workshop


class Letters:
    """A workshop's dead letters."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop, self.db = workshop, workshop.db

    def add(self, word: str = "fail_for_good", **fields: Any) -> str:
        """A job that has failed for good; answers the id of its dead letter."""
        return self.of(self.fail(word, **fields))

    def fail(self, word: str = "fail_for_good", **fields: Any) -> str:
        """A job that has failed for good."""
        job_id = self.workshop.obey(word, **fields)
        self.workshop.work(job_id)
        return job_id

    def of(self, job_id: str) -> str:
        return str(self.workshop.dead_letter(job_id)["id"])

    def job_of(self, letter_id: str) -> dict[str, Any]:
        return self.workshop.job(str(self.row(letter_id)["original_job_id"]))

    def row(self, letter_id: str) -> dict[str, Any]:
        [row] = self.rows("SELECT * FROM signalbox.dead_letter_jobs WHERE id = %s", letter_id)
        return row

    def status(self, letter_id: str) -> str:
        return str(self.row(letter_id)["status"])

    def all(self) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM signalbox.dead_letter_jobs ORDER BY first_failed_at")

    def audit(self, letter_id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM signalbox.audit_log WHERE entity_id = %s ORDER BY id", letter_id)

    def triage(self, status: str, *ids: str, by: str = "ada", reason: str = "looked at") -> Triaged:
        return triage(self.db, DeadLetterFilter(ids=ids), status, by=by, reason=reason)

    def redrive(self, *ids: str, **order: Any) -> dict[str, Any]:
        return self.redrive_all(DeadLetterFilter(ids=ids), **order)

    def redrive_all(
        self, selection: DeadLetterFilter, *, on: psycopg.Connection | None = None, **order: Any
    ) -> dict[str, Any]:
        resources = self.workshop.engine.resources
        given: dict[str, Any] = {"by": "ada", "reason": "mended", "now": datetime.now(UTC)} | order
        return redrive(on or self.db, resources.job_types, resources.invoker, selection, **given)

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with self.db.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.encode(), values).fetchall()


def ids_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [str(row["id"]) for row in rows]
