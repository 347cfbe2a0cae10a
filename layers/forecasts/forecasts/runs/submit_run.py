"""Hands one attempt to RunPod and stores the id it gets. Between the two lies the only gap that nothing can close.

RunPod takes no idempotency key, so what fell into that gap is never sent again by itself: its row stays `running`
without an id, which reconcile_forecasts ends as unconfirmed. To keep the gap small, all else is ready before the row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from forecasts.errors import TriggerUnconfirmed
from forecasts.runs import store
from forecasts.runs.runpod import RunPod
from forecasts.runs.store import RunAttempt
from forecasts.settings import settings
from signalbox.errors import SignalboxError
from signalbox.ledger.context import Context
from signalbox.postgres.connection import Connection

# How often an id is stored before it is given up for lost, a second apart: a restart of the database takes a moment.
STORE_TRIES = 4


def submit_run(context: Context, runpod: RunPod, attempt: RunAttempt, calibration: dict[str, Any]) -> None:
    """Raises as `trigger` does; then the caller says what becomes of the row."""
    connect = _connector(context.db)
    try:
        external_id = runpod.trigger(attempt.payload(calibration), settings().timeout_of(attempt.model))
    except TriggerUnconfirmed as error:
        context.log.error("forecast.unconfirmed", extra={**attempt.ids, "why": str(error)})
        context.metrics.count("TriggersUnconfirmed")
        raise
    # Before it is stored: should that fail, the log still has the id.
    context.log.info("forecast.triggered", extra={**attempt.ids, "external_id": external_id})
    context.metrics.count("ForecastsTriggered")
    if not _store(context, connect, attempt, external_id):
        _abandon(context, runpod, attempt, external_id)


def _store(context: Context, connect: Callable[[], Connection], attempt: RunAttempt, external_id: str) -> bool:
    """On further connections where the run's own has broken. The run fails all the same, and has lost no id."""
    try:
        return store.confirm(context.db, attempt, external_id)
    except psycopg.OperationalError:
        context.log.warning("database.lost", extra=attempt.ids)
    for tries_left in reversed(range(STORE_TRIES)):
        try:
            with connect() as connection:
                return store.confirm(connection, attempt, external_id)
        except psycopg.OperationalError:
            if not tries_left:
                raise
            time.sleep(1)
    raise AssertionError("the last try raises")


def _connector(connection: Connection) -> Callable[[], Connection]:
    """Opens others like this one. Asked for while it is alive, as a dead one tells nothing of itself."""
    dsn, password = connection.info.dsn, connection.info.password
    return lambda: psycopg.connect(dsn, password=password, autocommit=True, prepare_threshold=None)


def _abandon(context: Context, runpod: RunPod, attempt: RunAttempt, external_id: str) -> None:
    """The attempt was given up while RunPod took it: its job would be one that nobody knows of."""
    context.log.warning("forecast.abandoned", extra={**attempt.ids, "external_id": external_id})
    try:
        runpod.cancel(external_id)
    except SignalboxError:
        context.log.exception("forecast.leaked", extra={**attempt.ids, "external_id": external_id})
