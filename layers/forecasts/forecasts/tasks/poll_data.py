"""Look for new upstream data each quarter of an hour and trigger forecast runs (FCST-003).

    window → known runs → what upstream offers → submitted runs

A run is a row before RunPod hears of it, so two pollers never trigger it twice. The next poll takes runs that RunPod
surely did not take; those it may have taken are left to reconcile_forecasts. The oldest runs go first, so that a poll
which ends early leaves nothing behind that the next one would not find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from pydantic import Field

from forecasts.errors import PollFailed
from forecasts.runs.inference_payload import Model
from forecasts.runs.poll_runs import PollResult, RunPoll
from forecasts.runs.store import REFUSED, KnownRun
from forecasts.settings import settings_of
from forecasts.sources.candidates import OFFERS, Window
from signalbox.errors import SignalboxError, Unavailable
from signalbox.ledger.context import Context, Done
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# No poll looks further back, or can be asked to: for longer, backfill the task itself.
LONGEST = timedelta(days=31)
# For this long a run that RunPod did not take is retried by itself.
PATIENCE = timedelta(hours=24)
# A poll's error names at most this many causes.
MOST_NAMED = 5


class Params(Payload):
    """Read the poller's payload."""

    force_retry: bool = False  # trigger the window's failed runs again
    backfill_hours: int = Field(0, ge=0, le=LONGEST // timedelta(hours=1))
    limit: int | None = Field(None, ge=0, le=1000)  # triggers, over both models; 0: no limit


def poll_data(context: Context) -> Done:
    """Items are the runs triggered."""
    run_poll, faults = RunPoll(context, context.params.limit or None), dict[str, Exception]()
    tallies: dict[str, PollResult] = {}
    for model in OFFERS:
        tally = tallies[model] = PollResult()
        try:
            _poll(context, model, run_poll, tally)
        except Exception as error:
            # A failure of one model must not stop the other's runs.
            if not isinstance(error, SignalboxError):
                context.log.exception("model.failed", extra={"model": model})
            faults[model] = error
    return _conclude(context, run_poll, tallies, faults)


def since_of(
    now: datetime, newest: datetime | None, refused: datetime | None, lookback: timedelta, backfill: timedelta
) -> datetime:
    """Return where a poll begins: the look-back before the newest run, or earlier for a backfill or a refused run."""
    starts = [(newest or now) - lookback, now - backfill]
    if refused is not None:
        starts.append(refused - timedelta(microseconds=1))
    return max(min(starts), now - LONGEST)


def _poll(context: Context, model: Model, run_poll: RunPoll, tally: PollResult) -> None:
    if context.budget.spent:
        raise Unavailable("no time was left to look")
    window, force = _window(context, model), context.params.force_retry
    known = _list_known(context, model, window)
    failed = {run.run_timestamp: run for run in known if window.holds(run.run_timestamp) and _is_due_again(run, force)}
    offer = OFFERS[model](context, window, [run for run in known if run.run_timestamp not in failed])
    tally.found = len(offer.candidates) + offer.skipped + offer.left_over
    tally.skipped, tally.left_over = offer.skipped, offer.left_over
    runs = [(candidate, failed.get(candidate.run_timestamp)) for candidate in offer.candidates]
    run_poll.submit_all(runs, tally, reset_retries=force)


def _window(context: Context, model: Model) -> Window:
    values = {"model": model, "now": context.now, "refused": REFUSED, "patience": PATIENCE}
    newest, refused = context.db.execute(SQL["find_ends"], values).fetchone() or (None, None)
    given = settings_of(context)
    hours = given.nowcast_lookback_hours if model == "nowcast" else given.upstream_lookback_hours
    backfill = timedelta(hours=context.params.backfill_hours)
    since = since_of(context.now, newest, refused, timedelta(hours=hours), backfill)
    return Window(since.astimezone(UTC), context.now)


def _list_known(context: Context, model: Model, window: Window) -> list[KnownRun]:
    """Return the window's runs, and those beyond its ends that may have a radar instant inside it."""
    reach = timedelta(seconds=2 * settings_of(context).nowcast_tolerance_seconds)
    values = {"model": model, "since": window.since - reach, "until": window.until + reach}
    rows = context.db.execute(SQL["list_known"], values).fetchall()
    return [KnownRun(row[0], row[1].astimezone(UTC), row[2] and row[2].astimezone(UTC), *row[3:]) for row in rows]


def _is_due_again(run: KnownRun, force: bool) -> bool:
    return run.status == "failed" and (force or run.failure_reason == REFUSED)


def _conclude(
    context: Context, run_poll: RunPoll, tallies: Mapping[str, PollResult], faults: Mapping[str, Exception]
) -> Done:
    """Return the poll's answer, or raise its errors now that everything possible is done."""
    detail = {model: asdict(tally) for model, tally in tallies.items()}
    context.log.info("forecasts.polled", extra={"models": detail})
    errors = [*faults.values(), *run_poll.faults]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        named = [f"{model}: {error}" for model, error in faults.items()] + [str(error) for error in run_poll.faults]
        raise PollFailed("; ".join(named[:MOST_NAMED]))
    triggered = sum(tally.triggered for tally in tallies.values())
    left_over = sum(tally.left_over for tally in tallies.values())
    # Out of time, or more cycles than one poll lists: the slot continues. A limit is for the whole slot.
    more = bool(triggered and left_over and not context.params.limit)
    return Done(triggered, more=more, detail=detail)
