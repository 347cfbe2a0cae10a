"""Verify the chains of events: none is missing, each names the one before it, and hashes to what it says."""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from passports.chain.events import Event
from passports.chain.verify import Verification
from signalbox import Context, Done
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PAGE = 5000


class Params(Payload):
    """Say whose chains alone."""

    tenant_id: Annotated[UUID | None, Field(strict=False)] = None  # a text in the event


def verify_events(context: Context) -> Done:
    """Items are events. A run that has no more time goes on with the next event."""
    found = Verification.of(json.loads(context.cursor)) if context.cursor else Verification()
    before = found.events
    tenant = context.params.tenant_id if context.params else None
    while not context.budget.spent:
        if not _read_page(context, found, tenant):
            _finish(context, found, tenant)
            return _answer(context, found, found.events - before)
    return Done(found.events - before, more=True, cursor=json.dumps(found.as_json()))


def _read_page(context: Context, found: Verification, tenant: UUID | None) -> bool:
    """Read the next events; return whether there may be more."""
    chain = found.chain or (None, None, None)
    after = dict(zip(("after_tenant", "after_type", "after_aggregate"), chain, strict=True))
    values = {**after, "after_seq": found.seq, "tenant": tenant, "limit": PAGE}
    rows = context.db.execute(SQL["read"], values).fetchall()
    for *columns, stored_hash, head_seq, head_hash in rows:
        found.read(Event(*columns), stored_hash, None if head_seq is None else (head_seq, head_hash))
    return len(rows) == PAGE


def _finish(context: Context, found: Verification, tenant: UUID | None) -> None:
    found.end()
    for *chain, seq in context.db.execute(SQL["lonely_heads"], {"tenant": tenant}).fetchall():
        found.read_lonely_head(tuple(chain), seq)


def _answer(context: Context, found: Verification, items: int) -> Done:
    broken: dict[str, Any] | None = found.first_broken
    detail = {"chains": found.chains, "events": found.events, "first_broken": broken}
    if broken is None:
        return Done(items, detail=detail)
    context.metrics.count("EventChainsBroken", 1)
    name = f"{broken['aggregate_type']} {broken['aggregate_id']} of tenant {broken['tenant_id']}"
    return Done(
        items, reason=f"the chain of {name} is broken at event {broken['seq']}: {broken['fault']}", detail=detail
    )
