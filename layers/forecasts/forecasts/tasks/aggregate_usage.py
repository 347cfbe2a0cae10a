"""SCHED-001, SCHED-002: file the usage of periods that have ended and begin new ones, each day at one o'clock.

The API does the same for each organisation that calls; this task handles those that don't. Usage is filed by
organisation and source under the day that its period belongs to, whenever the run comes. Nothing counted is lost or
counted twice while calls go on. Overages end for organisations whose usage of the day before was within their plan.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from signalbox.batches.drain import drain
from signalbox.batches.keyset import MOST, Page, walk
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
DAY = timedelta(days=1)
# Look again, after these seconds, at rows that the API is counting in; its transactions are short.
LOOKS_AGAIN = (0.05, 0.1, 0.2, 0.4, 0.8)

Key = tuple[datetime, str, str]  # the end of the period, the organisation's id, the source
START: Key = (datetime.min.replace(tzinfo=UTC), "00000000-0000-0000-0000-000000000000", "")


def aggregate_usage(context: Context) -> Done:
    """Items are the periods filed."""
    filed = _file_ended(context)
    if filed.more:
        return filed
    return Done(filed.items, more=_end_overages(context).more)


def _file_ended(context: Context) -> Done:
    items = left = 0
    for pause in (0.0, *LOOKS_AGAIN):
        time.sleep(pause)
        done = walk(context.budget, START, lambda after, size: _file_page(context, after, size))
        items += done.items
        left = 0 if done.more else _count_ended(context)
        if not left:
            return Done(items, done.more)
    _report_left(context, left)
    return Done(items)


def _file_page(context: Context, after: Key, size: int) -> Page[Key]:
    today = _day_of(context.now)
    values = {
        "now": context.now,
        "today": today,
        "tomorrow": today + DAY,
        "after_end": after[0],
        "after_id": after[1],
        "after_source": after[2],
        "size": size,
    }
    row = context.db.execute(SQL["file_ended"], values).fetchone()
    found, *last = row or (0, *after)
    return Page(found, found, (last[0], last[1], last[2]))


def _count_ended(context: Context) -> int:
    row = context.db.execute(SQL["count_ended"], {"now": context.now}).fetchone()
    return int(row[0]) if row else 0


def _report_left(context: Context, left: int) -> None:
    """Report locked rows, which were held longer than any call takes; the next run files them, under the same day."""
    context.metrics.count("UsageLeft", left)
    context.log.warning("usage.left", extra={"periods": left})


def _end_overages(context: Context) -> Done:
    today = _day_of(context.now)
    values = {"now": context.now, "today": today, "yesterday": (today - DAY).date(), "size": MOST}

    def end_batch() -> int:
        ended = [row[0] for row in context.db.execute(SQL["end_overages"], values).fetchall()]
        for organization_id in ended:
            context.log.info("overage.ended", extra={"organization_id": organization_id})
        return len(ended)

    done = drain(context.budget, end_batch, size=MOST)
    context.metrics.count("OveragesEnded", done.items)
    return done


def _day_of(instant: datetime) -> datetime:
    """Return the instant's midnight in UTC."""
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
