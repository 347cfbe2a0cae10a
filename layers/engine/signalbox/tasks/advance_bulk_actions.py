"""Go on with bulk actions, once a minute.

A pass leaves what time was too short for, what others held, and what a rate holds back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from signalbox.dead_letters import redrive
from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context, Done
from signalbox.operate import bulk_actions
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkPass, BulkStep
from signalbox.operate.bulk_actions import BulkAction
from signalbox.operate.cancel import cancel_steps
from signalbox.operate.listing import count_left as count_jobs_left
from signalbox.operate.pause import pause_steps, resume_steps, resume_target_steps
from signalbox.operate.retry_now import retry_steps
from signalbox.postgres.connection import Connection

_STEPS: Mapping[str, Callable[[Connection, Actor], Sequence[BulkStep]]] = {
    "cancel": cancel_steps,
    "retry": retry_steps,
    "pause": pause_steps,
    "resume": resume_steps,
    "resume_target": resume_target_steps,
}


def advance_bulk_actions(context: Context) -> Done:
    """Make a pass of each action. Items are the jobs and dead letters that were changed."""
    changed = 0
    for id_ in bulk_actions.list_open(context.db):
        if context.budget.spent:
            return Done(changed, more=True)
        kept = bulk_actions.take(context.db, id_, context.budget)
        if kept is not None:
            changed += _proceed(context, kept)
    return Done(changed)


def _proceed(context: Context, kept: BulkAction) -> int:
    """Return how many it changed. An action that can't go on does not hold up the others."""
    db, publisher = context.db, context.publisher

    def announce(ids: Sequence[str]) -> None:
        publisher.publish_status_of(db, ids)

    try:
        if kept.action == "redrive":
            answer = redrive.proceed(
                db, context.invoker, kept, now=context.now, budget=context.budget, announce=announce
            )
            return int(answer["redriven"])
        steps = _STEPS[kept.action](db, kept.by)
        bulk_context = BulkContext(kept.by, context.budget, announce)
        done = BulkPass(db, kept.job_filter, bulk_context, kept.action, steps, kept).run()
        publisher.send_due(db, done.due)
        return sum(done.counts.values())
    except SignalboxError as error:
        context.log.warning("bulk_action.stalled", extra={"bulk_action_id": kept.id, "error": str(error)})
        return 0


def count_left(db: Connection, kept: BulkAction) -> int:
    """Count what an action has not come to, up to one more than 10,000."""
    if kept.action == "redrive":
        return redrive.count_left(db, kept.letter_filter, kept.cursor)
    at = kept.cursor or {"step": 0, "before": None}
    steps = _STEPS[kept.action](db, kept.by)[at["step"] :]
    places = [at["before"], *[None] * len(steps)]
    return sum(
        count_jobs_left(db, kept.job_filter, step.statuses, before) for step, before in zip(steps, places, strict=False)
    )
