"""Hand one attempt to RunPod and store the id it gets. Between the two lies the only gap that nothing can close.

RunPod takes no idempotency key, so a run lost in that gap is never sent again by itself: its row stays `running`
without an id, and reconcile_forecasts ends it as unconfirmed. To keep the gap small, all else is ready before the row.
"""

from __future__ import annotations

from typing import Any

from forecasts.errors import TriggerUnconfirmed
from forecasts.runs import store
from forecasts.runs.runpod import RunPod
from forecasts.runs.store import RunAttempt
from forecasts.settings import settings_of
from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context
from signalbox.postgres.retry import through_restart


def submit_run(context: Context, runpod: RunPod, attempt: RunAttempt, calibration: dict[str, Any]) -> None:
    """Submit a run. Errors are those of `trigger`; the caller then decides about the row."""
    try:
        external_id = runpod.trigger(attempt.payload(calibration), settings_of(context).timeout_of(attempt.model))
    except TriggerUnconfirmed as error:
        context.log.error("forecast.unconfirmed", extra={**attempt.ids, "why": str(error)})
        context.metrics.count("TriggersUnconfirmed")
        raise
    # Log the id before it is stored, to have it if storing fails.
    context.log.info("forecast.triggered", extra={**attempt.ids, "external_id": external_id})
    context.metrics.count("ForecastsTriggered")
    if not through_restart(context.resources.database, lambda db: store.confirm(db, attempt, external_id)):
        _abandon(context, runpod, attempt, external_id)


def _abandon(context: Context, runpod: RunPod, attempt: RunAttempt, external_id: str) -> None:
    """Cancel RunPod's job: the attempt was given up meanwhile, and no row would know of its job."""
    context.log.warning("forecast.abandoned", extra={**attempt.ids, "external_id": external_id})
    try:
        runpod.cancel(external_id)
    except SignalboxError:
        context.log.exception("forecast.leaked", extra={**attempt.ids, "external_id": external_id})
