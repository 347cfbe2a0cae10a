"""Start the slots of backfills that are due, each minute, for the task advance_backfills."""

from __future__ import annotations

from datetime import UTC, timedelta

from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.budget import Budget
from signalbox.errors import Unavailable
from signalbox.ledger.backfill import Backfill, find, put_back
from signalbox.ledger.ledger import Trigger
from signalbox.packs.registries import TaskRegistry
from signalbox.packs.task import Overlap, Task
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.runtime.log import Logger

SQL = load_queries(__file__)
# After this long without an end and without a lease, an invocation counts as lost and its slot is dispatched again.
LOST_AFTER = timedelta(minutes=15)
MOST_ATTEMPTS = 5


def advance(
    connection: Connection, invoker: FunctionInvoker, registry: TaskRegistry, budget: Budget, log: Logger
) -> int:
    """Start the due slots of every running backfill, and return how many those were."""
    started = 0
    for (backfill_id,) in connection.execute(SQL["list_open"]).fetchall():
        backfill = find(connection, str(backfill_id))
        task = registry.by_name.get(backfill.task)
        if task is None:
            log.warning(
                "backfill.stalled",
                extra={"backfill_id": backfill.id, "error": f"no task '{backfill.task}' here"},
            )
            continue
        try:
            started += _advance_one(connection, invoker, task, backfill, budget)
        except Unavailable as error:
            log.warning("backfill.stalled", extra={"backfill_id": backfill.id, "error": str(error)})
    return started


def _advance_one(
    connection: Connection, invoker: FunctionInvoker, task: Task, backfill: Backfill, budget: Budget
) -> int:
    values = {"id": backfill.id, "task": task.name, "lost_after": LOST_AFTER, "most_attempts": MOST_ATTEMPTS}
    connection.execute(SQL["recover_lost"], values)
    connection.execute(SQL["stop"], {"id": backfill.id})
    at_once = 1 if task.overlap is Overlap.FORBID else None
    room = {"id": backfill.id, "at_once": at_once, "newest_first": backfill.newest_first}
    taken = connection.execute(SQL["take"], room).fetchall()
    waiting = sorted((row[0].astimezone(UTC) for row in taken), reverse=not backfill.newest_first)
    # A success since the request counts, even for a forced backfill: its events may come twice.
    request = {
        "params": backfill.params,
        "force": backfill.force,
        "origin": {"since": backfill.created_at.astimezone(UTC).isoformat()},
    }
    try:
        while waiting and not budget.spent:
            invoker.rerun(task, waiting[-1], Trigger.BACKFILL, request, backfill_id=backfill.id)
            waiting.pop()
    finally:
        if waiting:
            put_back(connection, backfill.id, waiting)
    connection.execute(SQL["complete"], {"id": backfill.id})
    return len(taken) - len(waiting)
