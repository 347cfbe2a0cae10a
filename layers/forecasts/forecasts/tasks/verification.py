"""Have yesterday's forecasts compared with observations, once a day (OBS-005), and check the canaries.

    note the runs due → ask RunPod what became of those without a result → see whether the observations are there
    → ask RunPod, once a run and window → check the canaries

Complete runs between one day old and two are due. One whose observations have not come yet waits for the days after.
RunPod's worker writes its results itself; if it ended without one, it is asked again. Whatever else fails, the canaries
are checked.
"""

from __future__ import annotations

from collections import Counter

from forecasts.errors import RunPodUnavailable
from forecasts.quality.canaries import check_canaries
from forecasts.runs import verifications
from forecasts.runs.runpod import open_runpod
from forecasts.settings import settings_of
from forecasts.sources.observations import Observations
from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context, Done


def verification(context: Context) -> Done:
    """Items are the verifications that RunPod was asked for."""
    counts: Counter[str] = Counter()
    fault: SignalboxError | None = None
    try:
        if _verify(context, counts):
            return Done(counts["requested"], more=True, detail=dict(counts))
    except SignalboxError as error:
        fault = error
    counts.update(check_canaries(context))
    if fault is not None:
        raise fault
    return Done(counts["requested"], detail=dict(counts))


def _verify(context: Context, counts: Counter[str]) -> bool:
    """Verify; say whether requests are left because time ran out."""
    verifications.note_due(context)
    _report(context, counts, "abandoned", verifications.abandon_old(context))
    _report(context, counts, "unconfirmed", verifications.count_unconfirmed(context))
    left = _take_back_all(context, counts) or _request_all(context, counts)
    _report(context, counts, "waiting", counts["waiting"])
    return left


def _take_back_all(context: Context, counts: Counter[str]) -> bool:
    unanswered = verifications.list_unanswered(context)
    _report(context, counts, "unanswered", len(unanswered))
    if not unanswered:
        return False
    runpod = open_runpod(context)
    for one in unanswered:
        if not context.budget.allows(runpod.longest_call):
            return True
        try:
            verifications.take_back(context, runpod, one)
        except RunPodUnavailable as error:
            # The next run looks again; due requests are sent all the same.
            context.log.warning("verification.unreachable", extra={"external_id": one.external_id, "why": str(error)})
            break
    return False


def _request_all(context: Context, counts: Counter[str]) -> bool:
    observations, runpod = Observations(settings_of(context)), None
    for verification in verifications.list_waiting(context):
        if context.budget.spent:
            return True
        references = observations.of(verification.window)
        if references is None:
            counts["waiting"] += 1
            continue
        runpod = runpod or open_runpod(context)
        if not context.budget.allows(runpod.longest_call):
            return True
        counts["requested"] += verifications.request(context, runpod, verification, references)
    return False


def _report(context: Context, counts: Counter[str], what: str, number: int) -> None:
    counts[what] = number
    if number:
        context.metrics.count(f"Verifications{what.capitalize()}", number)
