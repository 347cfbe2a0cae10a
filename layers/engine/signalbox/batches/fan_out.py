"""Submit one job for each tenant, from a task: page after page, once each for a slot.

rule → task → a page of tenants → a job each → … → the next run of the slot goes on after the last page
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signalbox.batches.keyset import LEAST, next_size
from signalbox.ledger.context import Context, Done
from signalbox.submit.new_job import NewJob


def fan_out(
    context: Context,
    job_type: str,
    find: Callable[[str, int], Sequence[str]],
    payload: Callable[[str], Mapping[str, Any]],
) -> Done:
    """Submit a job for each id that `find(after, limit)` returns, in their order; the first call is after "".

    The id is the job's tenant. Its payload also has the slot, and its key is `job_type:id:slot`: a page that is met
    again stores nothing. Items are the jobs that were stored.
    """
    items, after, size = 0, context.cursor or "", LEAST
    while not context.budget.spent:
        began = context.budget.seconds_left
        ids = find(after, size)
        items += sum(one.created for one in context.submit([_job(context, job_type, id_, payload(id_)) for id_ in ids]))
        if len(ids) < size:
            return Done(items)
        after, size = ids[-1], next_size(size, began - context.budget.seconds_left)
    return Done(items, more=True, cursor=after)


def _job(context: Context, job_type: str, id_: str, payload: Mapping[str, Any]) -> NewJob:
    slot = context.slot.isoformat()
    key = f"{job_type}:{id_}:{slot}"
    return NewJob(job_type, {**payload, "slot": slot}, tenant=id_, idempotency_key=key, created_by=context.task)
