"""Count the attempts that have ended by minute, hour and day, every five minutes, so that no dashboard scans jobs.

The last minutes are counted again each time, since attempts are recorded a while after they end; hours are added up
from minutes, and days from hours. The task also emits the plane's health and the number of database connections as
metrics, which the alarms use.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from psycopg.types.json import Jsonb
from pydantic import Field

from signalbox.ledger.context import Context, Done
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries
from signalbox.runtime.metrics import write_line
from signalbox.stats.gauges import Connections, lanes, read_off
from signalbox.stats.histogram import BOUNDS
from signalbox.stats.statistics import DAY, LONGEST, figures_between, floor, judge, show_statistics

SQL = load_queries(__file__)
# A batch records its attempts when its worker's time ends at the latest: within a quarter of an hour of each job's end.
LATENESS = timedelta(minutes=20)
# How far back to count where figures were never counted, or end longer ago.
FURTHEST_BACK = timedelta(days=7)
STRETCH = timedelta(hours=6)
# The time whose durations become metrics: the last minutes are often few, or not rolled up yet.
LATELY = timedelta(minutes=15)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Params(Payload):
    """Say how far back to count again, after attempts were corrected by hand."""

    hours: int = Field(0, ge=0, le=24 * 30)


def roll_up_metrics(context: Context) -> Done:
    """Count the attempts. Items are the rows of minutes that were written."""
    until = floor(context.now, "minute") + MINUTE
    items = 0
    for start, end in stretches(_start(context, until), until):
        if context.budget.spent:
            return Done(items, more=True)
        items += _roll_up(context, start, end)
    _emit(context)
    return Done(items)


def stretches(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Return periods that each fit into a transaction. More than the last minutes begins with a whole hour."""
    start = since if until - since <= HOUR else floor(since, "hour")
    while start < until:
        end = min(start + STRETCH, until)
        yield start, end
        start = end


def _start(context: Context, until: datetime) -> datetime:
    usual = until - LATENESS
    if context.params.hours:
        return min(usual, until - timedelta(hours=context.params.hours))
    row = context.db.execute(SQL["find_rolled_up"], {"until": until}).fetchone()
    rolled_up: datetime | None = row[0] if row else None
    furthest = until - min(FURTHEST_BACK, timedelta(days=context.settings.execution_retention_days))
    return min(usual, max(furthest, floor(rolled_up.astimezone(UTC) - LATENESS, "minute"))) if rolled_up else furthest


def _roll_up(context: Context, since: datetime, until: datetime) -> int:
    values = {"since": since, "until": until, "bounds": list(BOUNDS), "longest": LONGEST}
    with context.db.transaction():
        context.db.execute(SQL["hold"])
        context.db.execute(SQL["clear"], values | {"period": "minute"})
        minutes = context.db.execute(SQL["count_minutes"], values).rowcount
        for period, shorter, length in (("hour", "minute", HOUR), ("day", "hour", DAY)):
            parts = values | {"period": period, "shorter": shorter, "length": length}
            context.db.execute(SQL["clear"], parts)
            context.db.execute(SQL["add_up"], parts)
    return minutes


def _emit(context: Context) -> None:
    db, now = context.db, context.now
    found = show_statistics(db, DAY, now=now)
    report = judge(db, found)
    hour, lately = (figures_between(db, now - length, now) for length in (HOUR, LATELY))
    connections = Connections(*(db.execute(SQL["count_connections"]).fetchone() or (0, 1)))
    gauges = read_off(found, report, hour, lately, connections)
    by_lane = lanes(found.live, now)
    medians = {name: figures.duration_ms(0.5) for name, figures in found.by_type.items()}
    db.execute(SQL["keep_estimates"], {"ms": Jsonb({name: ms for name, ms in medians.items() if ms is not None})})
    write_line(context.invoker.stack, "plane.measured", gauges, health=str(report.status), lanes=by_lane)
