"""Find out each hour what became of forecast runs that take longer than their model may (FCST-004).

    give up what RunPod never confirmed → ask RunPod about the others → complete, cancel, try again or fail

RunPod is asked outside of any transaction, and each change of a row names the attempt that was asked about, so that two
reconcilings never act twice on one. A run that RunPod does not answer about is left alone and reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any
from uuid import UUID

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs import store
from forecasts.runs.inference_payload import Model
from forecasts.runs.runpod import RunPod, RunPodJob, RunPodState, open_runpod
from forecasts.runs.store import RunAttempt, RunCandidate
from forecasts.runs.submit_run import submit_run
from forecasts.settings import settings_of
from forecasts.sources.candidates import likely_references
from signalbox.batches.drain import drain
from signalbox.ledger.context import Context, Done
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
BATCH = 100
# A reconciling this far behind the clock replays a past day by that day's times. A shorter delay is mere lateness, and
# it goes by how old attempts really are: a poll of a past slot triggers its jobs today.
REPLAY = timedelta(hours=2)
TIMEOUT = "Timeout"
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class NextStep(Enum):
    """Name what follows from RunPod's answer."""

    COMPLETE = auto()  # the worker's own report was lost
    CANCEL = auto()
    END = auto()  # it was cancelled, and its row does not say so yet
    RETRY = auto()
    FAIL = auto()


@dataclass(frozen=True, slots=True)
class Overdue:
    """Describe a run that RunPod has had for too long."""

    id: UUID
    model: Model
    run_timestamp: datetime
    external_id: str
    retry_count: int
    hung: bool  # we have begun to cancel it
    references: list[str]
    started_at: datetime | None
    triggered_at: datetime | None
    since: datetime

    @property
    def ids(self) -> dict[str, str]:
        return {"forecast_run_id": str(self.id), "model": self.model, "external_id": self.external_id}

    @property
    def key(self) -> dict[str, Any]:
        """Return the key by which a change of the row finds this attempt and no later one."""
        return {"id": self.id, "external_id": self.external_id, "triggered_at": self.triggered_at}


def reconcile_forecasts(context: Context) -> Done:
    """Items are the runs whose rows have changed."""
    unconfirmed = drain(context.budget, lambda: _give_up_unconfirmed(context), size=BATCH)
    counts = Counter(unconfirmed=unconfirmed.items)
    more = _reconcile_all(context, counts) or unconfirmed.more
    items = counts.total() - counts["unreachable"] - counts["overtaken"]
    # If nothing has moved, RunPod is away: ask it again only in the next hour.
    return Done(items, more=more and items > 0, detail={name: count for name, count in counts.items() if count})


def decide(state: RunPodState, retry_count: int, most_retries: int, *, hung: bool) -> NextStep:
    """Decide about a job beyond its time. A retry is checked, then counted, so the count never exceeds the most."""
    if state is RunPodState.COMPLETED:
        return NextStep.COMPLETE
    if state is RunPodState.UNFINISHED:
        return NextStep.CANCEL
    if hung:
        return NextStep.END
    return NextStep.RETRY if retry_count < most_retries else NextStep.FAIL


def _reconcile_all(context: Context, counts: Counter[str]) -> bool:
    """Reconcile all; say whether some are left because time ran out."""
    runpod: RunPod | None = None
    for run in _overdue(context):
        runpod = runpod or open_runpod(context)
        if not context.budget.allows(2 * runpod.longest_call):
            return True
        counts[_reconcile(context, runpod, run)] += 1
    return False


def _give_up_unconfirmed(context: Context) -> int:
    rows = context.db.execute(SQL["give_up_unconfirmed"], _limits(context)).fetchall()
    for run_id, model, run_timestamp in rows:
        ids = {"forecast_run_id": str(run_id), "model": model, "run_timestamp": run_timestamp.isoformat()}
        context.log.error("forecast.failed", extra={**ids, "reason": "Unconfirmed"})
        context.metrics.count("ForecastsUnconfirmed")
    return len(rows)


def _overdue(context: Context) -> Iterator[Overdue]:
    """Yield overdue runs in batches, each after the last, since those that are left alone stay overdue."""
    after: dict[str, Any] = {"after": BEGINNING, "after_id": UUID(int=0)}
    while True:
        rows = context.db.execute(SQL["list_overdue"], _limits(context) | after).fetchall()
        yield from (Overdue(*row) for row in rows)
        if len(rows) < BATCH:
            return
        after = {"after": rows[-1][-1], "after_id": rows[-1][0]}


def _limits(context: Context) -> dict[str, Any]:
    return {
        "now": context.now,
        "replay": REPLAY,
        "timeout": TIMEOUT,
        "nowcast": settings_of(context).timeout_of("nowcast"),
        "medium_range": settings_of(context).timeout_of("medium_range"),
        "batch": BATCH,
    }


def _reconcile(context: Context, runpod: RunPod, run: Overdue) -> str:
    """Reconcile one run and return a word for its end."""
    try:
        job = runpod.status(run.external_id)
        return _act(context, runpod, run, job)
    except (RunPodUnavailable, RunPodDenied) as error:
        context.log.warning("forecast.unreachable", extra={**run.ids, "why": str(error)})
        context.metrics.count("ForecastsUnreachable")
        return "unreachable"


def _act(context: Context, runpod: RunPod, run: Overdue, job: RunPodJob) -> str:
    match decide(job.state, run.retry_count, settings_of(context).most_retries, hung=run.hung):
        case NextStep.COMPLETE:
            return _complete(context, run)
        case NextStep.CANCEL:
            return _cancel(context, runpod, run)
        case NextStep.END:
            return _fail(context, run, TIMEOUT, "timed_out")
        case NextStep.RETRY:
            return _retry(context, runpod, run, job)
        case NextStep.FAIL:
            return _fail(context, run, f"{job.state}: {job.error}" if job.error else str(job.state), "failed")


def _cancel(context: Context, runpod: RunPod, run: Overdue) -> str:
    """Mark the row before cancelling: otherwise another reconciling could see the cancelled job and retry it."""
    if not context.db.execute(SQL["mark_hung"], run.key | {"reason": TIMEOUT}).rowcount:
        return "overtaken"
    runpod.cancel(run.external_id)
    return _fail(context, run, TIMEOUT, "timed_out")


def _complete(context: Context, run: Overdue) -> str:
    if not context.db.execute(SQL["complete"], run.key | {"now": context.now}).rowcount:
        return "overtaken"
    context.log.warning("forecast.completed", extra=run.ids)
    context.metrics.count("ForecastsCompletedLate")
    return "completed"


def _fail(context: Context, run: Overdue, reason: str, outcome: str) -> str:
    if not context.db.execute(SQL["fail"], run.key | {"reason": reason}).rowcount:
        return "overtaken"
    # Log only the reason's first word: what the provider says beyond that may contain anything.
    context.log.error("forecast.failed", extra={**run.ids, "reason": reason.partition(":")[0]})
    context.metrics.count("ForecastsLost")
    return outcome


def _retry(context: Context, runpod: RunPod, run: Overdue, job: RunPodJob) -> str:
    """Count the retry and ask RunPod; if RunPod takes nothing, restore the row."""
    calibration = store.read_calibration(context.db) if run.model == "nowcast" else {}
    attempt = _begin_retry(context, run)
    if attempt is None:
        return "overtaken"
    context.log.warning("forecast.retried", extra={**run.ids, "reason": job.state, "retry": run.retry_count + 1})
    try:
        submit_run(context, runpod, attempt, calibration)
    except TriggerUnconfirmed:
        return "in_doubt"
    except RunPodRefused as error:
        store.refuse(context.db, attempt)
        context.log.error("forecast.refused", extra={**attempt.ids, "why": str(error)})
        context.metrics.count("ForecastsRefused")
        return "refused"
    except (RunPodUnavailable, RunPodDenied):
        restored = {"started_at": run.started_at, "attempt": attempt.triggered_at}
        context.db.execute(SQL["restore"], run.key | restored)
        raise
    context.metrics.count("ForecastsRetried")
    return "retried"


def _begin_retry(context: Context, run: Overdue) -> RunAttempt | None:
    """Begin the next attempt, with the run's first input."""
    instant = run.run_timestamp.astimezone(UTC)
    references = tuple(run.references) or likely_references(settings_of(context), run.model, instant)
    prefix = RunCandidate(run.model, instant, references).storage_prefix
    values = run.key | {
        "now": context.now,
        "references": list(references),
        "storage_prefix": prefix,
        "timeout": TIMEOUT,
    }
    row = context.db.execute(SQL["begin_retry"], values).fetchone()
    return None if row is None else RunAttempt(run.id, run.model, instant, references, *row)
