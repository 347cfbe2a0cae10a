"""List the ledger's runs, newest first, a page at a time."""

from __future__ import annotations

from typing import Any, Literal

from psycopg.rows import dict_row
from pydantic import Field

from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Instant, Payload
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class ListRuns(Payload):
    """Select runs that match every given filter."""

    task: str | None = None
    status: Literal["running", "succeeded", "failed", "skipped", "missed"] | None = None
    trigger: Literal["schedule", "manual", "backfill", "catch_up", "continuation"] | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: int = Field(50, ge=1, le=1000)
    before_id: int | None = Field(None, ge=1, le=2**63 - 1)
    after_id: int | None = Field(None, ge=0, le=2**63 - 1)


def list_runs(resources: Resources, params: ListRuns, _: Invocation) -> dict[str, Any]:
    if params.task is not None:
        resources.tasks.find(params.task)
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["list_runs"], params.model_dump()).fetchall()
    last = rows[-1]["id"] if len(rows) == params.limit else None
    return {"runs": [json_row(row) for row in rows], "next": last}
