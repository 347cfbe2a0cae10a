"""Write one row for each run into `effects`, which the test made."""

from __future__ import annotations

from signalbox.ledger.context import Context, Done


def note_run(context: Context) -> Done:
    context.db.execute(
        "INSERT INTO effects (task, slot, now, worker_id) VALUES (%s, %s, %s, %s)",
        (context.task, context.slot, context.now, context.worker_id),
    )
    return Done(items=1)


note_alone = catch_all = catch_latest = catch_alone = note_run
