"""Write rows of verification_requests on their way to RunPod: each is in the table before RunPod hears of it.

waiting → unconfirmed, then RunPod is asked → it takes it: requested
                                            → it surely does not: waiting again, or refused
                                            → unknown: unconfirmed for good, and never asked again
requested, and no result in time → RunPod has ended the job: waiting again, until the days allowed are over
                                 → the job is running: left alone
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs.inference_payload import InferencePayload, InputConfig, Model, TimeRange
from forecasts.runs.runpod import RunPod, RunPodState
from forecasts.settings import settings_of
from signalbox.ledger.context import Context
from signalbox.postgres.queries import load_queries
from signalbox.postgres.retry import through_restart

SQL = load_queries(__file__)
YOUNGEST, OLDEST = timedelta(hours=24), timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class Verification:
    """Describe a run, and the window after it, to be compared with observations."""

    forecast_run_id: UUID
    model: Model
    run_timestamp: datetime
    storage_prefix: str | None
    window: TimeRange

    @property
    def ids(self) -> dict[str, str]:
        return {
            "forecast_run_id": str(self.forecast_run_id),
            "model": self.model,
            "run_timestamp": self.run_timestamp.isoformat(),
        }

    @property
    def key(self) -> dict[str, Any]:
        return {"forecast_run_id": self.forecast_run_id, "window_start": self.window.start}

    def payload(self, references: tuple[str, ...]) -> InferencePayload:
        return InferencePayload(
            task_type="verification",
            model=self.model,
            run_timestamp=self.run_timestamp,
            forecast_run_id=str(self.forecast_run_id),
            input_config=InputConfig(references=references),
            verification_window=self.window,
            storage_prefix=self.storage_prefix,
        )


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Describe a request that RunPod has taken and not answered in time."""

    forecast_run_id: UUID
    window_start: datetime
    external_id: str


def note_due(context: Context) -> None:
    """Add a row for each complete run that is between one day old and two."""
    context.db.execute(SQL["note_due"], _times(context))


def list_waiting(context: Context) -> list[Verification]:
    """Return this day's requests, and those of earlier days whose observations had not come, oldest first."""
    rows = context.db.execute(SQL["list_waiting"], _times(context)).fetchall()
    return [
        Verification(id_, model, at, prefix, TimeRange(start=start, end=end))
        for id_, model, at, prefix, start, end in rows
    ]


def abandon_old(context: Context) -> int:
    """Give up requests that have waited for longer than the days allowed."""
    rows = context.db.execute(SQL["abandon_old"], _times(context)).fetchall()
    for forecast_run_id, window_start in rows:
        extra = {"forecast_run_id": str(forecast_run_id), "window_start": window_start.isoformat()}
        context.log.warning("verification.abandoned", extra=extra)
    return len(rows)


def count_unconfirmed(context: Context) -> int:
    """Count recent requests that RunPod may have taken and has not answered."""
    row = context.db.execute(SQL["count_unconfirmed"], _times(context)).fetchone()
    return int(row[0]) if row else 0


def list_unanswered(context: Context) -> list[Unanswered]:
    """Return recent requests whose results have not come in time, oldest first."""
    return [Unanswered(*row) for row in context.db.execute(SQL["list_unanswered"], _times(context)).fetchall()]


def take_back(context: Context, runpod: RunPod, unanswered: Unanswered) -> None:
    """Let it wait again if RunPod has ended its job. A running job is never requested twice."""
    state = runpod.status(unanswered.external_id).state
    ids = {"forecast_run_id": str(unanswered.forecast_run_id), "external_id": unanswered.external_id}
    context.log.warning("verification.unanswered", extra={**ids, "state": str(state)})
    if state is not RunPodState.UNFINISHED:
        context.db.execute(SQL["take_back"], asdict(unanswered))


def request(context: Context, runpod: RunPod, verification: Verification, references: tuple[str, ...]) -> bool:
    """Ask RunPod for it. Return False if another worker has, or RunPod refuses this one; raise if RunPod is away."""
    if not context.db.execute(SQL["begin"], {**verification.key, "now": context.now}).rowcount:
        return False
    time_out = timedelta(minutes=settings_of(context).verification_timeout_minutes)
    try:
        external_id = runpod.trigger(verification.payload(references), time_out)
    except RunPodRefused as error:
        context.db.execute(SQL["give_up"], {**verification.key, "status": "refused"})
        context.log.warning("verification.refused", extra={**verification.ids, "why": str(error)})
        context.metrics.count("VerificationsRefused")
        return False
    except (RunPodDenied, RunPodUnavailable):
        context.db.execute(SQL["give_up"], {**verification.key, "status": "waiting"})
        raise
    except TriggerUnconfirmed as error:
        context.log.error("verification.unconfirmed", extra={**verification.ids, "why": str(error)})
        raise
    # Log the id before it is stored, to have it if storing fails.
    context.log.info("verification.requested", extra={**verification.ids, "external_id": external_id})
    values = {**verification.key, "external_id": external_id}
    through_restart(context.resources.database, lambda db: db.execute(SQL["confirm"], values))
    return True


def _times(context: Context) -> dict[str, Any]:
    settings, oldest = settings_of(context), context.now - OLDEST
    return {
        "now": context.now,
        "oldest": oldest,
        "youngest": context.now - YOUNGEST,
        "overdue": context.now - timedelta(minutes=settings.verification_timeout_minutes),
        "patience": oldest - timedelta(days=settings.verification_patience_days),
        "nowcast": timedelta(hours=settings.verification_hours_nowcast),
        "medium_range": timedelta(hours=settings.verification_hours_medium_range),
    }
