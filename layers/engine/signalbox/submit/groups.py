"""Count jobs that belong together, as they end. A group begins with the first job that names it.

A sealed group takes no further jobs; once all of them have ended, its completion job is released. That job finds the
counts of that moment in its `config`, under "group".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from signalbox.errors import GroupUnknown, JobRefused
from signalbox.packs.registries import JobTypeRegistry
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted

SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Group:
    """Describe how far a group's jobs are."""

    id: str
    total: int
    completed: int
    failed: int
    cancelled: int
    sealed: bool
    completion_job_id: str | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.cancelled

    @property
    def left(self) -> int:
        return self.total - self.ended

    @property
    def percent(self) -> int:
        """Return how many percent have ended; never 100 before the last one has."""
        return 100 * self.ended // self.total if self.total else 100


def show_group(db: Connection, id_: str) -> Group:
    """Return the counts as they are now. They include this transaction's own submits once it has committed."""
    with db.cursor(row_factory=class_row(Group)) as cursor:
        group = cursor.execute(SQL["show"], {"id": id_}).fetchone()
    if group is None:
        raise GroupUnknown(f"there is no group '{id_}': the first job submitted to it creates it")
    return group


def seal_group(
    db: Connection, job_types: JobTypeRegistry, id_: str, now: datetime, completion: NewJob | None = None
) -> tuple[Group, list[str]]:
    """Close the group, and name the job that runs once all of its jobs have ended, at once if they have.

    Return the group, and the jobs that may be sent once this is committed. Sealing again changes nothing, and is
    refused where it names another completion job than the first time: give that one an idempotency key.
    """
    with db.transaction():
        db.execute(SQL["join"])  # what this transaction has submitted to it
        job = None if completion is None else _submit_completion(db, job_types, id_, completion, now)
        if db.execute(SQL["seal"], {"id": id_, "completion": job and job.id}).fetchone() is None:
            return _sealed_before(db, id_, job), []
        if job and not job.created:
            raise JobRefused(f"the completion job of group '{id_}' has the idempotency key of an older job, {job.id}")
        [released] = db.execute(SQL["finish"], {"id": id_}).fetchone() or (None,)
        return show_group(db, id_), [] if released is None else [released]


def _submit_completion(
    db: Connection, job_types: JobTypeRegistry, id_: str, completion: NewJob, now: datetime
) -> Submitted:
    if completion.group == id_:
        raise JobRefused(f"the completion job of group '{id_}' can't belong to it: it would wait for itself")
    [submitted] = submit(db, job_types, [completion], now)
    if submitted.created:
        db.execute(SQL["wait_for_group"], {"job_id": submitted.id})
    return submitted


def _sealed_before(db: Connection, id_: str, job: Submitted | None) -> Group:
    group = show_group(db, id_)
    if job and job.id != group.completion_job_id:
        raise JobRefused(f"group '{id_}' is sealed with another completion job, or with none; nothing was stored")
    return group
