"""Have RunPod recompute the calibration of tiles with enough verification, once a week (OBS-006).

    look through what has come back → find the tiles → note the request → ask RunPod, once a slot

RunPod's worker applies small changes itself and files large ones as candidates. Neither is trusted unchecked: see
`calibration_review`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.quality.calibration_review import review
from forecasts.runs.inference_payload import InferencePayload, Model, TimeRange
from forecasts.runs.runpod import RunPod, open_runpod
from forecasts.settings import settings_of
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries
from signalbox.postgres.retry import through_restart

SQL = load_queries(__file__)
# There is one set of coefficients per tile, and only nowcasts use it: another model's samples would spoil it.
MODEL: Model = "nowcast"


def update_calibration(context: Context) -> Done:
    """Items are the tiles that RunPod was asked to calibrate."""
    detail = review(context)
    period = TimeRange(start=context.now - timedelta(days=settings_of(context).calibration_days), end=context.now)
    tiles = _find_tiles(context, period)
    if not tiles:
        return Done(detail=detail)
    found = context.db.execute(SQL["find_request"], {"slot": context.slot}).fetchone()
    if found is not None:
        return Done(reason=_explain(context, found[0]), detail=detail)
    runpod = open_runpod(context)
    if not context.budget.allows(runpod.longest_call):
        return Done(more=True, detail=detail)
    asked = _request(context, runpod, period, tiles)
    return Done(len(tiles) if asked else 0, detail=detail)


def _find_tiles(context: Context, period: TimeRange) -> list[str]:
    least = settings_of(context).calibration_least_samples
    values = {"model": MODEL, "since": period.start, "until": period.end, "least": least}
    return [tile for (tile,) in context.db.execute(SQL["find_tiles"], values).fetchall()]


def _explain(context: Context, external_id: str | None) -> str:
    """Return why a slot that has asked before asks nothing."""
    if external_id is not None:
        return f"RunPod has been asked for this slot before, as job {external_id}"
    context.metrics.count("CalibrationsUnconfirmed")
    context.log.error("calibration.unconfirmed", extra={"slot": context.slot.isoformat()})
    return "RunPod may have accepted this slot before without an answer; its console shows it"


def _request(context: Context, runpod: RunPod, period: TimeRange, tiles: list[str]) -> bool:
    """Ask RunPod, after writing the row: it is never asked twice. Return False if another worker was quicker."""
    slot = {"slot": context.slot}
    if not context.db.execute(SQL["begin"], {**slot, "tiles": tiles}).rowcount:
        return False
    ids: dict[str, Any] = {"slot": context.slot.isoformat(), "tiles": len(tiles)}
    time_out = timedelta(minutes=settings_of(context).calibration_timeout_minutes)
    try:
        external_id = runpod.trigger(_payload(context, period, tiles), time_out)
    except (RunPodRefused, RunPodDenied, RunPodUnavailable):
        context.db.execute(SQL["withdraw"], slot)
        raise
    except TriggerUnconfirmed as error:
        context.metrics.count("CalibrationsUnconfirmed")
        context.log.error("calibration.unconfirmed", extra={**ids, "why": str(error)})
        raise
    # Log the id before it is stored, to have it if storing fails.
    context.log.info("calibration.requested", extra={**ids, "external_id": external_id})
    values = {**slot, "external_id": external_id}
    through_restart(context.resources.database, lambda db: db.execute(SQL["confirm"], values))
    return True


def _payload(context: Context, period: TimeRange, tiles: list[str]) -> InferencePayload:
    return InferencePayload(
        task_type="calibration",
        model=MODEL,
        run_timestamp=context.slot,
        calibration_time_range=period,
        tiles=tuple(tiles),
    )
