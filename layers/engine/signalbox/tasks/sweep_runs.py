"""End the runs whose worker vanished, every five minutes, and make their slots run again.

A worker that was killed leaves its row `running` and its lease to run out. A continuation that Lambda never got leaves
a slot with work left. Both are asked for again, with the whole original request, a bounded number of times.
"""

from __future__ import annotations

from datetime import UTC, timedelta

from signalbox.ledger.context import Context, Done
from signalbox.ledger.ledger import Trigger
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# A slot whose workers vanish this often is left alone: something in it kills them.
MOST_LOSSES = 3
# After this long a continuation that has not begun counts as lost.
PATIENCE = timedelta(minutes=5)
LOOKBACK = timedelta(hours=24)


def sweep_runs(context: Context) -> Done:
    """End lost runs and resume slots. Items are the runs ended and the slots asked for again."""
    lost = context.db.execute(SQL["end_lost"]).fetchall()
    for run_id, task, slot in lost:
        context.log.warning("run.lost", extra={"task": task, "slot": slot.isoformat(), "run_id": run_id})
        metrics = context.metrics.of(task)
        metrics.count("RunsLost")
        metrics.write()
    context.db.execute(SQL["drop_expired"])
    return Done(len(lost) + _resume(context))


def _resume(context: Context) -> int:
    values = {"patience": PATIENCE, "lookback": LOOKBACK, "most_losses": MOST_LOSSES}
    rows = context.db.execute(SQL["list_resumable"], values).fetchall()
    resumed = 0
    for name, now, request, step, more in rows:
        task = context.enabled_tasks.by_name.get(name)
        if task is None:
            continue
        trigger = Trigger.CONTINUATION if more else Trigger.CATCH_UP
        context.invoker.rerun(task, now.astimezone(UTC), trigger, request, step=step + 1 if more else step)
        context.log.info("run.resumed", extra={"task": name, "now": now.isoformat(), "trigger": trigger})
        resumed += 1
    return resumed
