"""What operators ask of the job plane: how much, how fast, how well, by type and over time; and whether it is healthy.

Read from what roll_up_metrics has added up, so at most five minutes old, and from the partial indexes over the jobs
that are not done with: the jobs that are, however many, are never scanned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from signalbox.database import Connection
from signalbox.jobs.alerts import Alert, Readings, alerts
from signalbox.jobs.figures import Figures, add_up, rounded, share
from signalbox.jobs.health import PlaneHealth, Signs, plane_health
from signalbox.queries import load_queries
from signalbox.row import as_json

SQL = load_queries(__file__)
Period = Literal["minute", "hour", "day"]
DAY = timedelta(days=1)
# A lane stands still if jobs have waited in it for so long, and roll-ups of as long know of none that has begun.
STANDS_AFTER = timedelta(minutes=15)
_COLUMNS = tuple(column.name for column in fields(Figures))  # in the order of list_figures
LIVE = ("pending", "queued", "running", "paused")


@dataclass(frozen=True, slots=True)
class Live:
    """Jobs of one status, lane and type."""

    status: str
    lane: str
    job_type: str
    number: int
    waiting: int  # those of them that are due and have not begun
    oldest: datetime | None  # since when the first of these is due


def longest_wait(live: Iterable[Live], now: datetime) -> timedelta | None:
    """For how long the job has been due that has been for longest; None where none is due."""
    due = [one.oldest for one in live if one.oldest]
    return max(timedelta(0), now - min(due)) if due else None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """How many wait for somebody, how many somebody looks at, and how many jobs failed for good in the window."""

    pending: int = 0
    investigating: int = 0
    buried: int = 0

    @property
    def open(self) -> int:
        return self.pending + self.investigating


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of all jobs, or of one type."""

    since: datetime
    until: datetime
    period: Period
    job_type: str | None
    total: Figures
    by_type: Mapping[str, Figures]
    by_window: Mapping[datetime, Figures]
    live: Sequence[Live]
    dead_letters: Mapping[str, DeadLetters] = field(default_factory=dict)  # by type
    stale: int = 0
    silent_workers: int = 0

    @property
    def by_status(self) -> dict[str, int]:
        """What waits and runs now, and what ended in the window."""
        live = {status: sum(one.number for one in self.live if one.status == status) for status in LIVE}
        ended = {"completed": self.total.completed, "failed": self.buried, "cancelled": self.total.cancelled}
        return live | ended

    @property
    def buried(self) -> int:
        return sum(found.buried for found in self.dead_letters.values())

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
        """For how long the job has been due that has been for longest."""
        return longest_wait(self.live, self.until)

    @property
    def throughput_per_minute(self) -> float:
        """Jobs completed."""
        return self.total.completed / max(1.0, (self.until - self.since) / timedelta(minutes=1))

    @property
    def completion_rate(self) -> float | None:
        """The share of the jobs that succeeded, of those that succeeded or failed for good."""
        return share(self.total.completed, self.total.completed + self.buried)

    @property
    def dlq_rate(self) -> float | None:
        """The share of them that failed for good."""
        return share(self.buried, self.total.completed + self.buried)

    def as_json(self) -> dict[str, Any]:
        oldest = self.oldest_waiting
        return {
            **as_json({"since": self.since, "until": self.until}),
            "period": self.period,
            "job_type": self.job_type,
            "total": sum(self.by_status.values()),
            "by_status": self.by_status,
            "waiting": self.waiting,
            "oldest_waiting_seconds": None if oldest is None else round(oldest.total_seconds()),
            "stale": self.stale,
            "throughput_per_minute": round(self.throughput_per_minute, 2),
            "completion_rate": rounded(self.completion_rate, 4),
            "dlq_rate": rounded(self.dlq_rate, 4),
            "dead_letters": {
                "pending": self.pending_dead_letters,
                "investigating": self.open_dead_letters - self.pending_dead_letters,
            },
            **self.total.as_json(),
            "by_type": [self._of_type(name) for name in sorted(self.by_type.keys() | self.dead_letters.keys())],
            "by_window": [
                as_json({"starts_at": starts_at}) | figures.as_json() for starts_at, figures in self.by_window.items()
            ],
        }

    def _of_type(self, name: str) -> dict[str, Any]:
        figures, dead = self.by_type.get(name, Figures()), self.dead_letters.get(name, DeadLetters())
        ended = figures.completed + dead.buried
        return {
            "job_type": name,
            **figures.as_json(),
            "waiting": sum(one.waiting for one in self.live if one.job_type == name),
            "running": sum(one.number for one in self.live if (one.job_type, one.status) == (name, "running")),
            "buried": dead.buried,
            "open_dead_letters": dead.open,
            "completion_rate": rounded(share(figures.completed, ended), 4),
            "dlq_rate": rounded(share(dead.buried, ended), 4),
        }


@dataclass(frozen=True, slots=True)
class PlaneReport:
    """Whether the job plane is well, by what signs, and what to do."""

    status: PlaneHealth
    signs: Signs
    readings: Readings
    alerts: Sequence[Alert]
    checked_at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "status": str(self.status),
            **asdict(self.signs),
            "alerts": [asdict(alert) for alert in self.alerts],
            **as_json({"checked_at": self.checked_at}),
        }


def show_statistics(
    db: Connection, window: timedelta = DAY, job_type: str | None = None, *, now: datetime
) -> Statistics:
    """Of the time up to now, in minutes, hours or days, from the start of the period in which the window begins."""
    period = period_of(window)
    since = floor(now - window, period)
    values = {"period": period, "since": since, "until": now, "job_type": job_type, "now": now}
    by_type: dict[str, list[Figures]] = {}
    by_window: dict[datetime, list[Figures]] = {}
    for starts_at, name, *numbers in db.execute(SQL["list_figures"], values).fetchall():
        figures = _figures(numbers)
        by_type.setdefault(name, []).append(figures)
        by_window.setdefault(starts_at.astimezone(UTC), []).append(figures)
    totals = {name: add_up(found) for name, found in by_type.items()}
    [(stale, silent_workers)] = db.execute(SQL["count_silent"], values).fetchall()
    return Statistics(
        since=since,
        until=now,
        period=period,
        job_type=job_type,
        total=add_up(totals.values()),
        by_type=totals,
        by_window={starts_at: add_up(found) for starts_at, found in by_window.items()},
        live=count_live(db, now, job_type),
        dead_letters=count_dead_letters(db, since, now, job_type),
        stale=stale,
        silent_workers=silent_workers,
    )


def show_health(db: Connection, *, now: datetime) -> PlaneReport:
    """By the figures of the last day; failures are those of the last hour."""
    return judge(db, show_statistics(db, DAY, now=now))


def judge(db: Connection, statistics: Statistics) -> PlaneReport:
    """What the statistics of the last day say of the plane."""
    now = statistics.until
    failed = count_dead_letters(db, now - timedelta(hours=1), now)
    signs = Signs(
        stale_jobs=statistics.stale,
        open_dead_letters=statistics.open_dead_letters,
        failed_last_hour=sum(found.buried for found in failed.values()),
    )
    total = statistics.total
    readings = Readings(
        waiting=statistics.waiting,
        completed=total.completed,
        failed=total.failed + total.timed_out,
        p95_ms=total.duration_ms(0.95),
        pending_dead_letters=statistics.pending_dead_letters,
        silent_workers=statistics.silent_workers,
        standing_lanes=_standing_lanes(db, statistics.live, now),
    )
    return PlaneReport(plane_health(signs), signs, readings, alerts(readings), now)


def figures_between(db: Connection, since: datetime, until: datetime) -> Figures:
    """Of all jobs, from the minutes of a short time."""
    values = {"period": "minute", "since": since, "until": until, "job_type": None}
    return add_up(_figures(numbers) for _, _, *numbers in db.execute(SQL["list_figures"], values).fetchall())


def count_live(db: Connection, now: datetime, job_type: str | None = None) -> list[Live]:
    """The jobs that are not done with."""
    return [Live(*row) for row in db.execute(SQL["count_live"], {"now": now, "job_type": job_type}).fetchall()]


def count_dead_letters(
    db: Connection, since: datetime, until: datetime, job_type: str | None = None
) -> dict[str, DeadLetters]:
    """By type."""
    values = {"since": since, "until": until, "job_type": job_type}
    return {name: DeadLetters(*rest) for name, *rest in db.execute(SQL["count_dead_letters"], values).fetchall()}


def period_of(window: timedelta) -> Period:
    """The finest that gives a window at most some two hundred points, and that is kept for so long."""
    if window <= timedelta(hours=3):
        return "minute"
    return "hour" if window <= timedelta(days=8) else "day"


def floor(instant: datetime, period: Period) -> datetime:
    """The start of the period, in UTC."""
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
