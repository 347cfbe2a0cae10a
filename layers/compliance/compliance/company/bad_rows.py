"""Do many rows at once, and leave out those that are at fault.

Rows are done in one savepoint. Where that fails, each half is done for itself, until a bad row stands alone: it is
undone, and written into the company's audit log.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
from psycopg.types.json import Jsonb

from signalbox import JobContext, Refused
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
Row = TypeVar("Row")


class BadRow(Exception):
    """The row says what no job can work on."""


# What one row may be at fault for; any other error is the job's.
_ROW_FAULTS = (BadRow, Refused, psycopg.DataError, psycopg.IntegrityError, ArithmeticError, ValueError)


def all_but_bad(
    db: Connection,
    rows: Sequence[Row],
    handle: Callable[[Sequence[Row]], Counter[str]],
    skip: Callable[[Row, Exception], Counter[str]],
) -> Counter[str]:
    """Return the sum of what `handle` counts of good rows and `skip` of each bad one."""
    if not rows:
        return Counter()
    try:
        with db.transaction():
            return handle(rows)
    except _ROW_FAULTS as error:
        if len(rows) == 1:
            return skip(rows[0], error)
    middle = len(rows) // 2
    return all_but_bad(db, rows[:middle], handle, skip) + all_but_bad(db, rows[middle:], handle, skip)


def write_error(context: JobContext, company_id: str, error: Exception, row_id: str) -> None:
    """Write down that a row was left as it is, and why."""
    job = context.job
    facts = {"job_id": job.id, "job_type": job.job_type, "row_id": row_id, "error": type(error).__name__}
    context.log.warning("compliance.row_skipped", extra=facts)
    found = {
        "error_name": type(error).__name__,
        "error_message": str(error).split("\n", 1)[0],
        "error_stack": "".join(traceback.format_tb(error.__traceback__)),
        "retry_count": job.attempt - 1,
        "job_type": job.job_type,
        "context": {"row_id": row_id},
    }
    values = {"company_id": company_id, "job_id": job.id, "payload": Jsonb(job.payload), "error": Jsonb(found)}
    context.db.execute(SQL["write_error"], values)
