"""WPLC-009, OBS-007: archive watchpoints whose event has passed, and request their summaries, each quarter hour.

A watchpoint, its audit record and its message belong together: the message goes out before the commit. After a crash
between the two, the next run sends it again; none is lost.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forecasts.messages import GenerateSummary
from forecasts.settings import settings_of
from signalbox.aws.sqs import publish
from signalbox.batches.keyset import Page, walk
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# Observations of the event's last minutes arrive after its end.
BUFFER = timedelta(hours=1)

Key = tuple[datetime, str]  # the end of the event, the watchpoint's id
START: Key = (datetime.min.replace(tzinfo=UTC), "00000000-0000-0000-0000-000000000000")


def archive_watchpoints(context: Context) -> Done:
    """Items are the watchpoints archived."""
    return walk(context.budget, START, lambda after, size: _archive_page(context, after, size))


def _archive_page(context: Context, after: Key, size: int) -> Page[Key]:
    values = {
        "now": context.now,
        "before": context.now - BUFFER,
        "after_end": after[0],
        "after_id": after[1],
        "size": size,
    }
    with context.db.transaction():
        archived = context.db.execute(SQL["archive"], values).fetchall()
        summaries = [GenerateSummary(watchpoint_id=id_, tile_id=tile_id) for id_, tile_id, _ in archived]
        publish(context.clients, settings_of(context).evaluations_queue, summaries)
    last = max(((end, id_) for id_, _, end in archived), default=after)
    return Page(found=len(archived), done=len(archived), last=last)
