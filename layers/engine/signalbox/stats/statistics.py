"""Answer operators' questions about the job plane: how much, how fast, how well, by type and over time; and its health.

Everything is as of one instant. It is read from what roll_up_metrics has added up, from the attempts since, and from
the partial indexes over jobs that have not ended. Jobs that have ended, however many, are never scanned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from psycopg.rows import dict_row

from signalbox.packs.job_type import Lane
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries
from signalbox.stats.alerts import Alert, Readings, alerts
from signalbox.stats.figures import Figures, add_up, rounded, share
from signalbox.stats.health import HealthSigns, PlaneHealth, plane_health
from signalbox.stats.histogram import BOUNDS

SQL = load_queries(__file__)
Period = Literal["minute", "hour", "day"]
PERIODS: Sequence[Period] = ("day", "hour", "minute")
DAY = timedelta(days=1)
# A lane stands still if jobs have waited in it for this long, and no roll-up of this time has seen one begin.
STANDS_AFTER = timedelta(minutes=15)
# Attempts since the newest roll-up are counted live: usually of some minutes, of a day at most where roll-ups have
# failed.
LIVE_AT_MOST = DAY
# An attempt that ended began at most this long before: a lease is a quarter of an hour, and rescues run each minute.
LONGEST = timedelta(hours=1)
_COLUMNS = tuple(column.name for column in fields(Figures))  # in the order of list_figures
LIVE = ("pending", "queued", "running", "paused")


@dataclass(frozen=True, slots=True)
class Live:
    """Count the jobs of one status, lane and type."""

    status: str
    lane: str
    job_type: str
    number: int
    waiting: int  # how many of them are due and have not begun
    oldest: datetime | None  # since when the first of them is due


def longest_wait(live: Iterable[Live], now: datetime) -> timedelta | None:
    """Return how long the oldest due job has been due, or None where none is due."""
    due = [one.oldest for one in live if one.oldest]
    return max(timedelta(0), now - min(due)) if due else None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Count dead letters that are pending or investigated, and jobs that failed in the window and still are."""

    pending: int = 0
    investigating: int = 0
    failed_jobs: int = 0
    failed_last_hour: int = 0

    @property
    def open(self) -> int:
        return self.pending + self.investigating


@dataclass(frozen=True, slots=True)
class Silence:
    """Count the running jobs without recent heartbeats."""

    stale: int = 0  # jobs that are STALE or FAILED
    stale_workers: int = 0  # their workers
    silent: int = 0  # jobs that have missed three heartbeats
    longest_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class HourFigures:
    """Hold the figures of hours and shorter periods, and since which full hour they are complete."""

    since: datetime
    rows: Sequence[tuple[datetime, Figures]]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Describe all jobs, one type's, or one tenant's. A tenant's ended jobs were submitted in the window."""

    since: datetime
    until: datetime
    period: Period
    job_type: str | None
    tenant: str | None
    total: Figures
    by_type: Mapping[str, Figures]
    by_window: Mapping[datetime, Figures]
    live: Sequence[Live]
    dead_letters: Mapping[str, DeadLetters] = field(default_factory=dict)  # by type
    cancelled: int = 0
    silence: Silence = field(default_factory=Silence)
    hours: HourFigures | None = field(default=None, repr=False)

    @property
    def by_status(self) -> dict[str, int]:
        """Return what waits and runs now, and what ended in the window."""
        live = {status: sum(one.number for one in self.live if one.status == status) for status in LIVE}
        ended = {"completed": self.total.completed, "failed": self.failed_jobs, "cancelled": self.cancelled}
        return live | ended

    @property
    def failed_jobs(self) -> int:
        return sum(found.failed_jobs for found in self.dead_letters.values())

    @property
    def pending_dead_letters(self) -> int:
        return sum(found.pending for found in self.dead_letters.values())

    @property
    def open_dead_letters(self) -> int:
        return sum(found.open for found in self.dead_letters.values())

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.live)

    @property
    def oldest_waiting(self) -> timedelta | None:
        """Return how long the oldest due job has been due."""
        return longest_wait(self.live, self.until)

    @property
    def throughput_per_minute(self) -> float:
        """Return how many jobs completed per minute."""
        return self.total.completed / max(1.0, (self.until - self.since) / timedelta(minutes=1))

    @property
    def completion_rate(self) -> float | None:
        """Return the share of the jobs that completed, of those that completed or failed."""
        return share(self.total.completed, self.total.completed + self.failed_jobs)

    @property
    def dlq_rate(self) -> float | None:
        """Return the share of them that failed."""
        return share(self.failed_jobs, self.total.completed + self.failed_jobs)

    def as_json(self) -> dict[str, Any]:
        oldest = self.oldest_waiting
        return {
            **json_row({"since": self.since, "until": self.until}),
            "period": self.period,
            "job_type": self.job_type,
            "tenant": self.tenant,
            "total": sum(self.by_status.values()),
            "by_status": self.by_status,
            "waiting": self.waiting,
            "oldest_waiting_seconds": None if oldest is None else round(oldest.total_seconds()),
            "stale": self.silence.stale,
            "silent": self.silence.silent,
            "longest_silent_seconds": self.silence.longest_seconds,
            "throughput_per_minute": round(self.throughput_per_minute, 2),
            "completion_rate": rounded(self.completion_rate, 4),
            "dlq_rate": rounded(self.dlq_rate, 4),
            "dead_letters": {
                "pending": self.pending_dead_letters,
                "investigating": self.open_dead_letters - self.pending_dead_letters,
            },
            **self.total.as_json(),
            "by_type": [self._of_type(name) for name in sorted(self.by_type.keys() | self.dead_letters.keys())],
            "by_lane": [self._of_lane(lane) for lane in Lane],
            "by_window": [
                json_row({"starts_at": starts_at}) | figures.as_json() for starts_at, figures in self.by_window.items()
            ],
        }

    def _of_lane(self, lane: Lane) -> dict[str, Any]:
        here = [one for one in self.live if one.lane == lane]
        oldest = min((one.oldest for one in here if one.oldest), default=None)
        return {
            "lane": str(lane),
            "waiting": sum(one.waiting for one in here),
            "running": sum(one.number for one in here if one.status == "running"),
            **json_row({"waiting_since": oldest}),
        }

    def _of_type(self, name: str) -> dict[str, Any]:
        figures, dead = self.by_type.get(name, Figures()), self.dead_letters.get(name, DeadLetters())
        ended = figures.completed + dead.failed_jobs
        return {
            "job_type": name,
            **figures.as_json(),
            "waiting": sum(one.waiting for one in self.live if one.job_type == name),
            "running": sum(one.number for one in self.live if (one.job_type, one.status) == (name, "running")),
            "failed_jobs": dead.failed_jobs,
            "open_dead_letters": dead.open,
            "completion_rate": rounded(share(figures.completed, ended), 4),
            "dlq_rate": rounded(share(dead.failed_jobs, ended), 4),
        }


@dataclass(frozen=True, slots=True)
class PlaneReport:
    """Say whether the job plane is well, by what signs, and what to do."""

    status: PlaneHealth
    signs: HealthSigns
    readings: Readings
    alerts: Sequence[Alert]
    checked_at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "status": str(self.status),
            **asdict(self.signs),
            "alerts": [asdict(alert) for alert in self.alerts],
            **json_row({"checked_at": self.checked_at}),
        }


def show_statistics(
    db: Connection, window: timedelta = DAY, job_type: str | None = None, *, now: datetime, tenant: str | None = None
) -> Statistics:
    """Return the statistics up to now, by minutes, hours or days, from the start of the window's first period."""
    period = period_of(window)
    since = floor(now - window, period)
    values = {"since": since, "until": now, "job_type": job_type, "tenant": tenant, "now": now}
    with db.transaction():
        # A job that ends between two of the statements would else be counted twice, or not at all.
        db.execute(SQL["take_snapshot"])
        return _read_statistics(db, period, values)


def _read_statistics(db: Connection, period: Period, values: Mapping[str, Any]) -> Statistics:
    since, now, job_type, tenant = (values[name] for name in ("since", "until", "job_type", "tenant"))
    by_type: dict[str, list[Figures]] = {}
    by_window: dict[datetime, list[Figures]] = {}
    hours_since, rows = _list_figures(db, period, values)
    hours = []
    for starts_at, name, *numbers in rows:
        figures = _figures(numbers)
        by_type.setdefault(name, []).append(figures)
        by_window.setdefault(floor(starts_at, period), []).append(figures)
        if starts_at >= hours_since:
            hours.append((starts_at, figures))
    totals = {name: add_up(found) for name, found in by_type.items()}
    [silence] = db.execute(SQL["count_silent"], values).fetchall()
    [(cancelled,)] = db.execute(SQL["count_cancelled"], values).fetchall()
    return Statistics(
        since=since,
        until=now,
        period=period,
        job_type=job_type,
        tenant=tenant,
        total=add_up(totals.values()),
        by_type=totals,
        by_window={starts_at: add_up(found) for starts_at, found in by_window.items()},
        live=count_live(db, now, job_type, tenant),
        dead_letters=count_dead_letters(db, since, now, job_type, tenant),
        cancelled=cancelled,
        silence=Silence(*silence),
        hours=HourFigures(hours_since, hours),
    )


def list_tenants(db: Connection, *, now: datetime) -> list[dict[str, Any]]:
    """Return the tenants that have waiting or running jobs, or open dead letters."""
    with db.cursor(row_factory=dict_row) as cursor:
        return [json_row(row) for row in cursor.execute(SQL["list_tenants"], {"now": now}).fetchall()]


def _list_figures(db: Connection, period: Period, values: Mapping[str, Any]) -> tuple[datetime, list[tuple[Any, ...]]]:
    """Return since which full hour no row is of more than an hour, and the rows.

    They are of whole periods, then of shorter ones, then of the attempts not yet rolled up.
    """
    since, now = values["since"], values["until"]
    live = {**values, "bounds": list(BOUNDS), "longest": LONGEST}
    # In binary, since each row has 128 numbers of histograms.
    cursor = db.cursor(binary=True)
    hours_since = since if since == floor(since, "hour") else floor(since, "hour") + timedelta(hours=1)
    if values["tenant"] is not None:
        return hours_since, cursor.execute(SQL["count_attempts"], live).fetchall()
    [(newest,)] = db.execute(SQL["find_counted"], {"until": now}).fetchall()
    counted = max(since, floor(now - LIVE_AT_MOST, "minute"), newest or since)
    if newest is None or hours_since > floor(newest, "hour"):  # the hours before may not have been rolled up
        hours_since = now + LONGEST
    rolled_up: list[tuple[Any, ...]] = []
    start = since
    for shorter in PERIODS[PERIODS.index(period) :]:
        part = {"period": shorter, "since": start, "until": max(start, floor(counted, shorter))}
        rolled_up += cursor.execute(SQL["list_figures"], {**values, **part}).fetchall()
        start = part["until"]
        if shorter == "day":
            hours_since = start
    return hours_since, rolled_up + cursor.execute(SQL["count_attempts"], live | {"since": counted}).fetchall()


def show_health(db: Connection, *, now: datetime) -> PlaneReport:
    """Judge the plane by the figures of the last day; failures are those of the last hour."""
    return judge(db, show_statistics(db, DAY, now=now))


def health_beside(db: Connection, found: Statistics) -> PlaneReport:
    """Judge the plane where the statistics of another window are known: only the day's other hours are read."""
    since, known = floor(found.until - DAY, "hour"), found.hours
    if known is None or known.since > floor(found.until, "hour"):
        return show_health(db, now=found.until)
    values = {"period": "hour", "since": since, "until": max(since, known.since), "job_type": None}
    rows = db.cursor(binary=True).execute(SQL["list_figures"], values).fetchall()
    hours = [_figures(numbers) for _, _, *numbers in rows]
    total = add_up([*hours, *(figures for starts_at, figures in known.rows if starts_at >= since)])
    return judge(db, replace(found, total=total))


def judge(db: Connection, statistics: Statistics) -> PlaneReport:
    """Return what the statistics of the last day say about the plane."""
    now = statistics.until
    signs = HealthSigns(
        stale_jobs=statistics.silence.stale,
        open_dead_letters=statistics.open_dead_letters,
        failed_last_hour=sum(found.failed_last_hour for found in statistics.dead_letters.values()),
    )
    total = statistics.total
    readings = Readings(
        waiting=statistics.waiting,
        completed=total.completed,
        failed=total.failed + total.timed_out,
        p95_ms=total.duration_ms(0.95),
        pending_dead_letters=statistics.pending_dead_letters,
        silent_workers=statistics.silence.stale_workers,
        standing_lanes=_standing_lanes(db, statistics.live, now),
    )
    return PlaneReport(plane_health(signs), signs, readings, alerts(readings), now)


def figures_between(db: Connection, since: datetime, until: datetime) -> Figures:
    """Return the figures of all jobs, from the minutes of a short time."""
    values = {"period": "minute", "since": since, "until": until, "job_type": None}
    return add_up(_figures(numbers) for _, _, *numbers in db.execute(SQL["list_figures"], values).fetchall())


def count_live(db: Connection, now: datetime, job_type: str | None = None, tenant: str | None = None) -> list[Live]:
    """Count the jobs that have not ended."""
    values = {"now": now, "job_type": job_type, "tenant": tenant}
    return [Live(*row) for row in db.execute(SQL["count_live"], values).fetchall()]


def count_dead_letters(
    db: Connection, since: datetime, until: datetime, job_type: str | None = None, tenant: str | None = None
) -> dict[str, DeadLetters]:
    """Count dead letters by type."""
    values = {"since": since, "until": until, "job_type": job_type, "tenant": tenant}
    values["lately"] = until - timedelta(hours=1)
    return {name: DeadLetters(*rest) for name, *rest in db.execute(SQL["count_dead_letters"], values).fetchall()}


def period_of(window: timedelta) -> Period:
    """Return the finest period that gives at most some two hundred points and is kept for that long."""
    if window <= timedelta(hours=3):
        return "minute"
    return "hour" if window <= timedelta(days=8) else "day"


def floor(instant: datetime, period: Period) -> datetime:
    """Return the start of the period, in UTC."""
    found = instant.astimezone(UTC).replace(second=0, microsecond=0)
    if period == "minute":
        return found
    return found.replace(minute=0) if period == "hour" else found.replace(minute=0, hour=0)


def _standing_lanes(db: Connection, live: Sequence[Live], now: datetime) -> tuple[str, ...]:
    rows = db.execute(SQL["list_begun"], {"since": now - STANDS_AFTER, "until": now}).fetchall()
    busy = {lane for lane, begun in rows if begun}
    return tuple(sorted({one.lane for one in live if one.oldest and one.oldest < now - STANDS_AFTER} - busy))


def _figures(numbers: Sequence[Any]) -> Figures:
    return Figures(**dict(zip(_COLUMNS, numbers, strict=True)))
