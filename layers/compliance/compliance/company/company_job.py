"""Work through the rows of one company in pieces, one job of the company at a time.

lock the company → a page of rows → their effects, in one savepoint → what people are told → the next page

Where a row is bad, its page is halved until it stands alone: it is undone, written down and counted, and the others
are done. A job that finds the company locked gives way, and holds neither a worker nor a connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from pydantic import AwareDatetime

from compliance.company.bad_rows import all_but_bad, write_error
from compliance.company.notify import Notification, store_notifications
from compliance.company.people import People
from signalbox import Completed, JobContext, JobPayload, More, NewJob, Permanent, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PIECE = 500
BUSY = timedelta(seconds=2)


class CompanyPayload(JobPayload):
    """Say which company, at most one of its sites, and for which instant."""

    company_id: UUID
    site_id: UUID | None = None
    slot: AwareDatetime | None = None  # else when the job was submitted


@dataclass(slots=True)
class Effects:
    """Hold what came of some rows."""

    counts: Counter[str] = field(default_factory=Counter)
    notifications: list[Notification] = field(default_factory=list)

    def tell(self, *notifications: Notification) -> None:
        self.notifications.extend(notifications)


@dataclass(slots=True)
class CompanyJob:
    """Hold one piece of a job of a company."""

    context: JobContext
    company_id: str
    slot: datetime
    _people: People | None = None

    @property
    def people(self) -> People:
        if self._people is None:
            self._people = People.of(self.context.db, self.company_id)
        return self._people

    @property
    def values(self) -> dict[str, Any]:
        """Return what every query is given."""
        payload: CompanyPayload = self.context.payload
        return {"company_id": self.company_id, "site_id": payload.site_id, "slot": self.slot}

    def warn_of_nobody(self, entity_type: str, entity_id: str) -> None:
        """Warn that there is nobody to tell."""
        facts = {"company_id": self.company_id, "entity_type": entity_type, "entity_id": entity_id}
        self.context.log.warning("compliance.recipient_missing", extra=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Describe which rows a job works through, and how."""

    find: LiteralString  # at most `limit` ids after `after`, each with what it adds to the first count if it is bad
    handle: Callable[[CompanyJob, list[str]], Effects]  # in a savepoint
    counts: Sequence[str]  # the first is of rows considered, bad ones included
    values: Mapping[str, Any] = field(default_factory=dict)  # for the query, beside those of every query
    total: LiteralString | None = None  # how many rows there are, for `progress`
    progress: str = ""  # such as "Checked {done}/{total} generators"
    finish: Callable[[CompanyJob, Mapping[str, int]], None] | None = None  # after the last piece


def work_through(context: JobContext, rows: Rows) -> Completed | More | Snooze:
    """Do one piece of the job."""
    names = (*rows.counts, "notifications", "skipped")
    before: dict[str, Any] = context.cursor or {"after": None, "counts": dict.fromkeys(names, 0), "total": None}
    job = CompanyJob(context, str(context.payload.company_id), context.payload.slot or context.job.created_at)
    match lock_company(context, job.company_id):
        case Snooze() as busy:
            return busy
        case "deleted":
            return Completed(before["counts"])
    values = {**job.values, **rows.values, "after": before["after"], "limit": PIECE}
    total = before["total"] or _count(context, rows.total, values)
    found = context.db.execute(rows.find, values).fetchall()
    counts = Counter(before["counts"]) + _work(job, rows, found)
    result = {name: counts[name] for name in names}
    cursor = {"after": found[-1][0] if found else before["after"], "counts": result, "total": total}
    context.note(**cursor)
    if rows.total is not None:
        context.report(*_progress(rows, result, total))
    if len(found) == PIECE:
        return More(cursor, percent=context.progress.percent, message=context.progress.message)
    if rows.finish is not None:
        rows.finish(job, result)
    return Completed(result)


def _count(context: JobContext, query: LiteralString | None, values: Mapping[str, Any]) -> int:
    row = context.db.execute(query, values).fetchone() if query else None
    return int(row[0]) if row else 0


def _progress(rows: Rows, counts: Mapping[str, int], total: int) -> tuple[int, str]:
    done = counts[rows.counts[0]]
    return 100 * done // max(total, done, 1), rows.progress.format(done=done, total=max(total, done), **counts)


def lock_company(context: JobContext, company_id: str) -> Snooze | str:
    """Lock the company for this transaction; say that it is `live` or `deleted`, or give way to another job of it."""
    row = context.db.execute(SQL["lock"], {"company_id": company_id}).fetchone()
    if row is not None:
        _check_site(context, company_id)
        return "live" if row[0] is None else "deleted"
    if context.db.execute(SQL["exists"], {"company_id": company_id}).fetchone() is None:
        raise Permanent(f"company {company_id} does not exist")
    return Snooze(BUSY, "another job of the company is at work")


def _check_site(context: JobContext, company_id: str) -> None:
    site_id = getattr(context.payload, "site_id", None)
    values = {"company_id": company_id, "site_id": site_id}
    if site_id is not None and context.db.execute(SQL["site"], values).fetchone() is None:
        raise Permanent(f"site {site_id} does not exist in company {company_id}")


def _work(job: CompanyJob, rows: Rows, found: Sequence[tuple[str, int]]) -> Counter[str]:
    """Do the rows; return the counts of what was done."""
    context, deliveries = job.context, list[NewJob]()

    def handle(some: Sequence[tuple[str, int]]) -> Counter[str]:
        effects = rows.handle(job, [id_ for id_, _ in some])
        told = store_notifications(context.db, context.log, job.company_id, effects.notifications)
        deliveries.extend(told.deliveries)
        return effects.counts + Counter(notifications=told.new)

    def skip(row: tuple[str, int], error: Exception) -> Counter[str]:
        write_error(context, job.company_id, error, row[0])
        return Counter({rows.counts[0]: row[1], "skipped": 1})

    counts = all_but_bad(context.db, found, handle, skip)
    if deliveries:
        context.submit(deliveries)
    return counts
