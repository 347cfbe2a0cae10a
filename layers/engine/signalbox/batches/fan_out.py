"""Submit one job for each tenant, from a task: page after page, once each for a slot.

rule → task → a page of tenants → a job each → … → the next run of the slot goes on after the last page
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signalbox.ledger.context import Context, Done
from signalbox.submit.new_job import NewJob

# Jobs of a page, which lock nothing that anybody waits for. From a thousand on they go by COPY.
LEAST, MOST = 1000, 5000
# Storing and sending a page; the run's budget is looked at between two of them.
_QUICK_SECONDS, _SLOW_SECONDS = 1.0, 3.0


def fan_out(
    context: Context,
    job_type: str,
    find: Callable[[str, int], Sequence[str]],
    payload: Callable[[str], Mapping[str, Any]],
    tenant: Callable[[str], str] = lambda id_: id_,
) -> Done:
    """Submit a job for each id that `find(after, limit)` returns, in their order; the first call is after "".

    The id is the job's tenant, or leads to it. A payload with a field `slot` gets the slot, and the job's key is
    `job_type:id:slot`: a page that is met again stores nothing. Items are the jobs that were stored.
    """
    slot = context.slot.isoformat()
    has_slot = "slot" in context.job_types.find(job_type).model.model_fields

    def job(id_: str) -> NewJob:
        given = {**payload(id_), "slot": slot} if has_slot else payload(id_)
        key = f"{job_type}:{id_}:{slot}"
        return NewJob(job_type, given, tenant=tenant(id_), idempotency_key=key, created_by=context.task)

    items, after, size = 0, context.cursor or "", LEAST
    while not context.budget.spent:
        began = context.budget.seconds_left
        ids = find(after, size)
        items += sum(one.created for one in context.submit([job(id_) for id_ in ids]))
        if len(ids) < size:
            return Done(items)
        after, size = ids[-1], _next_size(size, began - context.budget.seconds_left)
    return Done(items, more=True, cursor=after)


def _next_size(size: int, seconds: float) -> int:
    if seconds > _SLOW_SECONDS:
        return max(LEAST, size // 2)
    return min(MOST, 2 * size) if seconds < _QUICK_SECONDS else size
