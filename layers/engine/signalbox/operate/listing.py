"""List jobs newest first, preview which jobs a bulk action would affect, and return the batches that it works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row

from signalbox.budget import Budget
from signalbox.errors import JobTypeUnknown, JobUnknown
from signalbox.jobs.status import FINAL, JobStatus
from signalbox.operate.filters import JobFilter
from signalbox.operate.short_ids import require_id
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 1000
SAMPLE = 10
MOST_COUNTED = 10_000  # by a preview, in each state that can change, and of all jobs that have ended
LIVE = tuple(status for status in JobStatus if status not in FINAL)


@dataclass(frozen=True, slots=True)
class Preview:
    """Describe which jobs a bulk action would affect. With `as_of` as its `until`, it affects no later ones.

    It counts 10,000 in each state that can change, and of all jobs that have ended; with `more` there are more of one.
    """

    as_of: str
    counts: dict[str, int]
    more: bool
    sample: list[dict[str, Any]]


def list_jobs(db: Connection, job_filter: JobFilter, limit: int, before_id: str | None = None) -> list[dict[str, Any]]:
    """Return a page; the next one begins before its last id."""
    rows: list[dict[str, Any]] = []
    with db.cursor(row_factory=dict_row) as cursor:
        for from_id, until_id in job_filter.id_ranges:
            page = {"before_id": before_id, "from_id": from_id, "until_id": until_id, "limit": limit - len(rows)}
            rows += cursor.execute(SQL["list_jobs"], {**job_filter.values, **page}).fetchall()
    return [json_row(row) for row in rows]


def count_by_status(db: Connection, job_filter: JobFilter) -> dict[str, int]:
    found: list[tuple[str, int]] = db.execute(SQL["count_by_status"], job_filter.values).fetchall()
    return dict(sorted(found))


def preview(db: Connection, job_types: JobTypeRegistry, job_filter: JobFilter) -> Preview:
    """Count and sample the matching jobs; change nothing."""
    job_filter.require_any()
    bounded = bound(db, job_filter)
    require_known(db, job_types, bounded)
    counts, more = count_some(db, bounded)
    return Preview((bounded.until or "") and bounded.given["until"], counts, more, list_jobs(db, bounded, SAMPLE))


def count_some(db: Connection, job_filter: JobFilter) -> tuple[dict[str, int], bool]:
    """Count up to 10,000 jobs in each state that can change, and of all that have ended; say whether there are more."""
    counts: Counter[str] = Counter()
    more = False
    for status in (job_filter.status,) if job_filter.status else (*LIVE, None):
        values = {**job_filter.values, "status": status, "ended": status is None, "most": MOST_COUNTED + 1}
        found: Counter[str] = Counter(dict(db.execute(SQL["count_some"], values).fetchall()))
        if found.total() > MOST_COUNTED:
            found[min(found)] -= 1  # the one that only shows that there are more
            more = True
        counts += found
    return dict(sorted(counts.items())), more


def count_left(db: Connection, job_filter: JobFilter, statuses: Sequence[str], before: str | None) -> int:
    """Count the jobs in these states that a bulk action has not come to, up to one more than 10,000."""
    values = {**job_filter.values, "statuses": [*map(str, statuses)], "before_id": before, "limit": MOST_COUNTED + 1}
    return len(db.execute(SQL["pick"], values).fetchall())


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


def batches(
    db: Connection, job_filter: JobFilter, statuses: Sequence[str], budget: Budget, before: str | None = None
) -> Iterator[list[str]]:
    """Return the ids of all that match now, a batch at a time, as long as the budget lasts."""
    while not budget.spent:
        values = {**job_filter.values, "statuses": [*map(str, statuses)], "before_id": before, "limit": BATCH}
        ids = [id_ for (id_,) in db.execute(SQL["pick"], values).fetchall()]
        if ids:
            yield ids
        if len(ids) < BATCH:
            return
        before = ids[-1]


__all__ = ["JobTypeUnknown", "Preview", "batches", "bound", "count_by_status", "list_jobs", "preview", "require_known"]
