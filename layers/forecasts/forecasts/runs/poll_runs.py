"""Submit the runs of one poll: as many as its limit, its time and RunPod allow, over all models.

If RunPod refuses one run, the others go on. If RunPod is away, or does not say whether it took a run, the poll
submits no more: one run in doubt is better than all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs import store
from forecasts.runs.inference_payload import Model
from forecasts.runs.runpod import RunPod, open_runpod
from forecasts.runs.store import KnownRun, RunAttempt, RunCandidate
from forecasts.runs.submit_run import submit_run
from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context


@dataclass(slots=True)
class PollResult:
    """Count what became of the runs that a poll found for one model."""

    found: int = 0
    triggered: int = 0
    skipped: int = 0  # not complete or not matched, or another poller was quicker
    failed: int = 0  # RunPod did not take them, or did not say so
    left_over: int = 0  # for a later poll: the limit was reached, the time was up, RunPod was away


class RunPoll:
    """Launch runs until a limit, the budget or RunPod stops the poll."""

    def __init__(self, context: Context, limit: int | None) -> None:
        self._context, self._left = context, limit
        self._stopped = False
        self.faults: list[SignalboxError] = []

    def submit_all(
        self, runs: Sequence[tuple[RunCandidate, KnownRun | None]], tally: PollResult, *, reset_retries: bool
    ) -> None:
        """Submit the runs and count each in the tally; `reset_retries` gives failed runs all their retries again."""
        if not runs:
            return
        # Before the first row: once that is written, only the call must be left to do.
        calibration = self._calibration_of(runs[0][0].model)
        for number, (candidate, known) in enumerate(runs):
            if not self._may_go_on():
                tally.left_over += len(runs) - number
                return
            attempt = self._take(candidate, known, reset_retries)
            if attempt is None:
                tally.skipped += 1
            elif self._launch(attempt, calibration):
                tally.triggered += 1
            else:
                tally.failed += 1

    def _may_go_on(self) -> bool:
        if self._stopped or self._left == 0:
            return False
        try:
            needed = self._runpod.longest_call
        except SignalboxError as error:
            self._stop(error)
            return False
        return self._context.budget.allows(needed)

    @cached_property
    def _runpod(self) -> RunPod:
        return open_runpod(self._context)

    def _calibration_of(self, model: Model) -> dict[str, Any]:
        return store.read_calibration(self._context.db) if model == "nowcast" else {}

    def _take(self, candidate: RunCandidate, known: KnownRun | None, reset_retries: bool) -> RunAttempt | None:
        connection, now = self._context.db, self._context.now
        if known is None:
            return store.open_run(connection, candidate, now)
        return store.retake(connection, known, candidate, now, reset_retries=reset_retries)

    def _launch(self, attempt: RunAttempt, calibration: dict[str, Any]) -> bool:
        if self._left is not None:
            self._left -= 1
        try:
            submit_run(self._context, self._runpod, attempt, calibration)
        except TriggerUnconfirmed as error:
            self._stop(error)
            return False
        except (RunPodRefused, RunPodDenied, RunPodUnavailable) as error:
            self._refuse(attempt, error)
            return False
        return True

    def _refuse(self, attempt: RunAttempt, error: SignalboxError) -> None:
        store.refuse(self._context.db, attempt)
        self._context.log.warning("forecast.refused", extra={**attempt.ids, "why": str(error)})
        self._context.metrics.count("ForecastsRefused")
        if isinstance(error, RunPodRefused):
            self.faults.append(error)
        else:
            self._stop(error)

    def _stop(self, error: SignalboxError) -> None:
        self.faults.append(error)
        self._stopped = True
