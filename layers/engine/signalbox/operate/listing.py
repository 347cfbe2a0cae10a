"""List jobs newest first, preview which jobs a bulk action would affect, and return the batches that it works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row

from signalbox.budget import Budget
from signalbox.errors import JobTypeUnknown, JobUnknown
from signalbox.operate.filters import JobFilter
from signalbox.operate.short_ids import require_id
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 1000
SAMPLE = 10


@dataclass(frozen=True, slots=True)
class Preview:
    """Describe which jobs a bulk action would affect. With `as_of` as its `until`, it affects no later ones."""

    as_of: str
    counts: dict[str, int]
    sample: list[dict[str, Any]]


def list_jobs(db: Connection, job_filter: JobFilter, limit: int, before_id: str | None = None) -> list[dict[str, Any]]:
    """Return a page; the next one begins before its last id."""
    values = {**job_filter.values, "limit": limit, "before_id": before_id}
    with db.cursor(row_factory=dict_row) as cursor:
        return [json_row(row) for row in cursor.execute(SQL["list_jobs"], values).fetchall()]


def count_by_status(db: Connection, job_filter: JobFilter) -> dict[str, int]:
    found: list[tuple[str, int]] = db.execute(SQL["count_by_status"], job_filter.values).fetchall()
    return dict(sorted(found))


def preview(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter) -> Preview:
    """Count and sample the matching jobs; change nothing."""
    job_filter.require_any()
    bounded = bound(db, job_filter)
    require_known(db, job_types, bounded)
    counts = count_by_status(db, bounded)
    return Preview((bounded.until or "") and bounded.given["until"], counts, list_jobs(db, bounded, SAMPLE))


def bound(db: Connection, job_filter: JobFilter) -> JobFilter:
    """Bound the filter to jobs created up to now, so that a bulk action ends however fast jobs are submitted."""
    [now] = db.execute(SQL["read_clock"]).fetchone() or (None,)
    until = job_filter.until
    return job_filter if until is not None and until <= now else job_filter.model_copy(update={"until": now})


def require_known(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter) -> None:
    """Raise for ids that no job has, and for a misspelt type: one that neither the code nor any job knows."""
    if job_filter.ids is not None:
        states_of(db, job_filter.ids)
    name = job_filter.job_type
    if name is not None and name not in job_types.by_name and not list_jobs(db, JobFilter(job_type=name), 1):
        job_types.find(name)


def states_of(db: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the state of each of these jobs; all of them must exist."""
    found: dict[str, str] = dict(
        db.execute(SQL["find_ids"], {"ids": [require_id("job", id_) for id_ in ids]}).fetchall()
    )
    if missing := [id_ for id_ in ids if id_ not in found]:
        others = f", nor {len(missing) - 1:,} others of those named" if len(missing) > 1 else ""
        raise JobUnknown(f"no job has the id {missing[0]}{others}; it may have been pruned. Nothing was changed")
    return found


def batches(db: Connection, job_filter: JobFilter, statuses: Sequence[str], budget: Budget) -> Iterator[list[str]]:
    """Return the ids of all that match now, a batch at a time, as long as the budget lasts."""
    before: str | None = None
    while not budget.spent:
        values = {**job_filter.values, "statuses": [*map(str, statuses)], "before_id": before, "limit": BATCH}
        ids = [id_ for (id_,) in db.execute(SQL["pick"], values).fetchall()]
        if ids:
            yield ids
        if len(ids) < BATCH:
            return
        before = ids[-1]


__all__ = ["JobTypeUnknown", "Preview", "batches", "bound", "count_by_status", "list_jobs", "preview", "require_known"]
