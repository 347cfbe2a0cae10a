"""Compile a passport from a sealed snapshot by published rules, and have it signed.

lock the passport → read and check its rows → compile → store the version with its event → submit `sign_passport`
"""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from passports.chain.events import append_event
from passports.issuing.compilation import Fact, Source, compile_documents
from passports.issuing.documents import Documents, Issue
from passports.settings import PassportSettings
from signalbox import Completed, JobContext, JobPayload, NewJob
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class CompilePassport(JobPayload):
    """Say which passport, of which facts and by which rules."""

    passport_id: UUID
    snapshot_id: UUID
    rule_package_version_id: UUID


def compile_passport(context: JobContext) -> Completed:
    """Return the new version's id and number, its hashes, and the job that signs it."""
    payload: CompilePassport = context.payload
    tenant_id, source = _read(context)
    issue = Issue(
        tenant_id=tenant_id,
        **payload.model_dump(),
        issued_at=context.job.created_at,
        build_id=context.resources.settings_of(PassportSettings).build_id,
    )
    documents = compile_documents(issue, source)
    version_id, version = _store(context, issue, documents)
    signing = NewJob(
        "sign_passport",
        {"passport_version_id": version_id},
        idempotency_key=f"sign-{version_id}",
        priority=1,
        tenant=str(tenant_id),
    )
    [submitted] = context.submit([signing])
    found = {
        "passport_version_id": version_id,
        "version": version,
        "payload_hash": documents.payload_hash.hex(),
        "proof_root_hash": documents.proof_root_hash.hex(),
        "receipt_hash": documents.receipt_hash.hex(),
        "sign_job_id": submitted.id,
    }
    return Completed(payload.model_dump(mode="json") | found)


def _read(context: JobContext) -> tuple[UUID, Source]:
    """Lock the passport, and return its tenant and what it is compiled from; every row must be there."""
    payload: CompilePassport = context.payload
    named = payload.model_dump() | {"tenant": context.job.tenant}
    passport = context.db.execute(SQL["lock_passport"], named).fetchone()
    if passport is None:
        raise refuse("NOT_FOUND", f"passport {payload.passport_id} or its product does not exist")
    tenant_id, sku, attributes = passport
    named["tenant_id"] = tenant_id
    snapshot = context.db.execute(SQL["find_snapshot"], named).fetchone()
    rules = context.db.execute(SQL["find_rules"], named).fetchone()
    if snapshot is None or rules is None:
        missing = f"snapshot {payload.snapshot_id}" if snapshot is None else f"rules {payload.rule_package_version_id}"
        raise refuse("NOT_FOUND", f"{missing} does not exist")
    facts = [Fact(*row) for row in context.db.execute(SQL["list_facts"], named)]
    if any(fact.type is None for fact in facts):
        raise refuse("NOT_FOUND", f"a fact of snapshot {payload.snapshot_id} does not exist")
    if snapshot != ("SEALED",):
        raise refuse("SNAPSHOT_NOT_READY", f"snapshot {payload.snapshot_id} is {snapshot[0]}, not SEALED")
    if rules[0] != "PUBLISHED":
        raise refuse("RULE_PKG_NOT_PUBLISHED", f"rules {payload.rule_package_version_id} are {rules[0]}, not PUBLISHED")
    return tenant_id, Source(facts, sku, attributes, rules[1])


def _store(context: JobContext, issue: Issue, documents: Documents) -> tuple[str, int]:
    """Store the version and its event; return its id and number."""
    row = context.db.execute(SQL["store"], asdict(issue) | documents._asdict()).fetchone()
    if row is None:
        raise RuntimeError(f"the version of passport {issue.passport_id} was not stored")
    version_id, version = row
    facts = {
        "snapshot_id": str(issue.snapshot_id),
        "rules_id": str(issue.rule_package_version_id),
        "build_id": issue.build_id,
    }
    append_event(context.db, issue.tenant_id, "PassportVersion", version_id, "PASSPORT_COMPILED", facts)
    return version_id, version
