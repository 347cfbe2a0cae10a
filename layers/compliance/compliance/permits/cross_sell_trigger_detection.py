"""Find words in permits that suggest another module, and suggest it to the company's owners."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.types.json import Jsonb

from compliance.company.company_job import CompanyJob, CompanyPayload, Effects, Rows, work_through
from compliance.company.notify import Notification
from signalbox import Completed, JobContext, More, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_ENOUGH = 5  # keywords for a confidence of 1
_GAPS = re.compile(r"[\W_]+")


class CrossSellTriggerDetection(CompanyPayload):
    """Say which company, perhaps one document, and whether only those that changed since they were scanned."""

    document_id: UUID | None = None
    process_recent_only: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """Hold one row of the query `modules`: one that the company has not activated."""

    id: str
    name: str
    keywords: Sequence[str]


@dataclass(frozen=True, slots=True)
class Trigger:
    """Hold one row of the query `store`: a suggestion that is new."""

    id: str
    site_id: str | None
    module_id: str
    name: str
    keyword: str


def cross_sell_trigger_detection(context: JobContext) -> Completed | More | Snooze:
    """Do a piece of the documents that were read."""
    payload: CrossSellTriggerDetection = context.payload
    rows = Rows(
        find=SQL["find"],
        handle=_scan,
        counts=("documents", "triggers"),
        values={"document_id": payload.document_id, "recent_only": payload.process_recent_only},
        total=SQL["count"],
        progress="Scanned {done}/{total} documents, {triggers} triggers created",
    )
    return work_through(context, rows)


def _scan(job: CompanyJob, ids: list[str]) -> Effects:
    db, effects = job.context.db, Effects()
    modules = [Module(*row) for row in db.execute(SQL["modules"], job.values).fetchall()]
    texts = db.execute(SQL["read"], {**job.values, "ids": ids}).fetchall()
    effects.counts["documents"] = len(texts)
    found = [
        {"document_id": id_, "site_id": site_id, "module_id": module.id, "name": module.name, "keywords": keywords}
        | {"confidence": min(len(keywords) / _ENOUGH, 1.0)}
        for id_, site_id, text in texts
        for module in modules
        if (keywords := find_keywords(text, module.keywords))
    ]
    created = db.execute(SQL["store"], {**job.values, "found": Jsonb(found)}).fetchall() if found else []
    effects.counts["triggers"] = len(created)
    for row in created:
        effects.tell(*_suggestions(job, Trigger(*row)))
    db.execute(SQL["set_scanned"], {**job.values, "ids": ids})
    return effects


def find_keywords(text: str, keywords: Sequence[str]) -> list[str]:
    """Return the keywords that stand in the text as whole words, each once."""
    words = f" {_plain(text)} "
    plain = {_plain(keyword): keyword for keyword in reversed(keywords)}
    return [keyword for found, keyword in reversed(plain.items()) if found and f" {found} " in words]


def _plain(text: str) -> str:
    """Return the text in lower case, all but letters and digits as one space."""
    return _GAPS.sub(" ", text.lower()).strip()


def _suggestions(job: CompanyJob, trigger: Trigger) -> list[Notification]:
    owners = job.people.with_role("OWNER")
    if not owners:
        job.warn_of_nobody("CROSS_SELL_TRIGGER", trigger.id)
    return [
        Notification(
            to=owner,
            channel="IN_APP",
            job_type="cross_sell_trigger_detection",
            entity_type="CROSS_SELL_TRIGGER",
            entity_id=trigger.id,
            parts=job.context.job.id,
            alert_type="MODULE_ACTIVATION",
            severity="INFO",
            title=f"Module Suggestion: {trigger.name}",
            message=(
                f"We detected references to {trigger.keyword} in your permit. "
                f"Would you like to activate {trigger.name}?"
            ),
            site_id=trigger.site_id,
            action_url=f"/modules/activate/{trigger.module_id}",
        )
        for owner in owners
    ]
