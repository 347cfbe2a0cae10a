"""Delete the stored data of old forecasts, once a night (MAINT-001): nowcasts after a week, others after a season.

    list what is due → see that no other run's data lies there → delete all versions → see that nothing is left → mark

Complete and failed runs alike: a failed one may have stored data before its end. A run is marked `deleted` only once S3
lists nothing of it any more. One that can't be deleted is reported and keeps its status; the next run tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from forecasts.runs.inference_payload import Model
from forecasts.settings import settings_of
from signalbox.aws.s3_folder import Folder, empty
from signalbox.errors import FolderKept, FolderRefused, SignalboxError
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PAGE = 100
# If S3 fails for this many runs in a row, S3 is at fault, not the runs.
OUTAGE = 5


@dataclass(frozen=True, slots=True)
class ExpiredRun:
    """Describe a forecast run whose data is old enough."""

    id: UUID
    model: Model
    run_timestamp: str
    storage_prefix: str | None

    @property
    def ids(self) -> dict[str, str]:
        return {"forecast_run_id": str(self.id), "model": self.model, "run_timestamp": self.run_timestamp}


@dataclass(slots=True)
class TransitionResult:
    """Count what became of the due runs."""

    deleted: int = 0
    kept: int = 0
    failed_in_a_row: int = 0


def transition_forecasts(context: Context) -> Done:
    """Items are the runs whose data is gone."""
    bucket, tally = settings_of(context).forecast_bucket, TransitionResult()
    for run in _due(context):
        if context.budget.spent or not _take(context, bucket, run, tally):
            return Done(tally.deleted, more=True, detail=_detail(tally))
    if tally.kept and tally.failed_in_a_row == tally.kept and not tally.deleted:
        raise FolderKept(f"the data of none of {tally.kept} runs could be deleted; the log says why, for each")
    reason = f"{tally.kept} runs keep their data; the log says why, for each" if tally.kept else None
    return Done(tally.deleted, reason=reason, detail=_detail(tally))


def _detail(tally: TransitionResult) -> dict[str, int]:
    return {"deleted": tally.deleted, "kept": tally.kept}


def _due(context: Context) -> Iterator[ExpiredRun]:
    """Yield due runs page by page, each after the last: those that keep their data stay due."""
    days: dict[Model, int] = {
        "nowcast": settings_of(context).retention_nowcast_days,
        "medium_range": settings_of(context).retention_medium_range_days,
    }
    for model, kept in days.items():
        values = {"model": model, "before": context.now - timedelta(days=kept), "after": "-infinity", "page": PAGE}
        while rows := context.db.execute(SQL["list_due"], values).fetchall():
            yield from (ExpiredRun(*row) for row in rows)
            values["after"] = rows[-1][2]


def _take(context: Context, bucket: str, run: ExpiredRun, tally: TransitionResult) -> bool:
    """Delete one run's data; errors that concern it alone end here. Return False if the budget ended first."""
    try:
        folder = _folder(context, run)
        if not empty(context.clients.s3, bucket, folder, context.budget):
            return False
    except FolderRefused as error:
        _keep(context, run, tally, error)
    except FolderKept as error:
        _keep(context, run, tally, error)
        tally.failed_in_a_row += 1
        if tally.failed_in_a_row >= OUTAGE:
            raise FolderKept(f"{error}; {OUTAGE} runs in a row: the rest is deleted once it works") from None
    else:
        tally.deleted += _mark(context, run)
        tally.failed_in_a_row = 0
    return True


def _folder(context: Context, run: ExpiredRun) -> Folder:
    """Return the run's folder; raise if it is not its own alone."""
    folder = Folder.of(run.storage_prefix)
    other = context.db.execute(SQL["find_sharer"], {"id": run.id, "folder": folder.name}).fetchone()
    if other is not None:
        raise FolderRefused(f"{folder.prefix} holds data of run {other[0]}, too: give each a storage_prefix of its own")
    return folder


def _mark(context: Context, run: ExpiredRun) -> int:
    """Mark the run; return 0 if another worker has marked it."""
    marked = context.db.execute(SQL["mark_deleted"], {"id": run.id}).rowcount
    if marked:
        context.log.info("forecast.deleted", extra=run.ids)
    return marked


def _keep(context: Context, run: ExpiredRun, tally: TransitionResult, error: SignalboxError) -> None:
    tally.kept += 1
    context.metrics.count("ForecastsKept")
    context.log.warning("forecast.kept", extra={**run.ids, "reason": str(error)})
