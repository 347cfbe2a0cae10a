"""Read the facts of a document, each with its canonical bytes and their hash.

A document with a fault is REJECTED, with the first one; that is no failure of the job.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from passports.chain.events import append_event
from passports.facts.documents import DocumentRejected, ParsedFact, find_facts
from signalbox import Completed, JobContext, JobPayload
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
SCHEMA_VERSION = 1


class ParseFacts(JobPayload):
    """Say which version of a document."""

    document_version_id: UUID


def parse_facts(context: JobContext) -> Completed:
    """Return the version's status, how many facts there are, and why it was rejected."""
    payload: ParseFacts = context.payload
    version_id = str(payload.document_version_id)
    row = context.db.execute(SQL["lock"], {"id": version_id, "tenant": context.job.tenant}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"document version {version_id} does not exist")
    tenant, kind, status, content = row
    if status != "UPLOADED":
        raise refuse("INVALID_DOCUMENT_STATUS", f"document version {version_id} is {status}, and not UPLOADED")
    values = {"id": version_id, "tenant": tenant}
    facts: list[ParsedFact] = []
    rejection: dict[str, Any] | None = None
    try:
        facts = find_facts(kind, content)
    except DocumentRejected as refusal:
        rejection = refusal.as_json()
    _store(context, values, facts, rejection)
    event = (
        ("DOCUMENT_REJECTED", {"code": rejection["code"]})
        if rejection
        else ("FACTS_PARSED", {"fact_count": len(facts)})
    )
    append_event(context.db, tenant, "DocumentVersion", version_id, *event)
    status = "REJECTED" if rejection else "VALIDATED"
    found = {"status": status, "fact_count": len(facts), "rejection": rejection}
    return Completed({"document_version_id": version_id, **found})


def _store(
    context: JobContext, values: dict[str, Any], facts: list[ParsedFact], rejection: dict[str, Any] | None
) -> None:
    with context.db.cursor() as cursor:
        cursor.executemany(
            SQL["add_fact"],
            [
                {
                    **values,
                    "fact_type": fact.fact_type,
                    "key": fact.key,
                    "schema_version": SCHEMA_VERSION,
                    "payload": Jsonb(fact.payload),
                    "canonical": fact.canonical,
                    "hash": fact.hash,
                }
                for fact in facts
            ],
        )
    status = "REJECTED" if rejection else "VALIDATED"
    context.db.execute(
        SQL["set_status"], {**values, "status": status, "rejection": Jsonb(rejection) if rejection else None}
    )
