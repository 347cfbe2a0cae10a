"""Mark the rows of `marks`, a batch a transaction, as far as the budget goes."""

from __future__ import annotations

from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done

BATCH = 20_000


def mark_rows(context: Context) -> Done:
    def mark() -> int:
        return context.db.execute(
            "UPDATE marks SET marked = marked + 1 WHERE id IN "
            "(SELECT id FROM marks WHERE marked = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)",
            (BATCH,),
        ).rowcount

    return drain(context.budget, mark, size=BATCH)
