"""Write rows of forecast_runs on their way to RunPod: each attempt is in the table before RunPod hears of it.

    open or retake → RunPod takes it → confirm
                   → RunPod surely does not → refuse: failed, and the next poll takes it again
                   → unknown → running without an id, until reconcile_forecasts gives it up as unconfirmed

`triggered_at`, set by each attempt, is the attempt's token: a late write of an older attempt changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from forecasts.runs.inference_payload import InferencePayload, InputConfig, Model
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
REFUSED = "TriggerRefused"


@dataclass(frozen=True, slots=True)
class RunCandidate:
    """Describe a run that upstream has the data for."""

    model: Model
    run_timestamp: datetime
    references: tuple[str, ...]
    radar_timestamp: datetime | None = None

    @property
    def storage_prefix(self) -> str:
        """Return a folder of the run's own: the retention deletes by it."""
        tenth = f".{self.run_timestamp.microsecond // 100_000}" if self.run_timestamp.microsecond else ""
        return f"{self.model}/{self.run_timestamp:%Y%m%dT%H%M%S}{tenth}Z/"


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """Describe one try at a run; its row says `running`."""

    id: UUID
    model: Model
    run_timestamp: datetime
    references: tuple[str, ...]
    storage_prefix: str | None
    triggered_at: datetime

    @property
    def ids(self) -> dict[str, str]:
        return {"forecast_run_id": str(self.id), "model": self.model, "run_timestamp": self.run_timestamp.isoformat()}

    def payload(self, calibration: dict[str, Any]) -> InferencePayload:
        """Return the request; only nowcasts take calibration."""
        return InferencePayload(
            task_type="forecast",
            model=self.model,
            run_timestamp=self.run_timestamp,
            forecast_run_id=str(self.id),
            input_config=InputConfig(
                references=self.references, calibration=calibration if self.model == "nowcast" else {}
            ),
            storage_prefix=self.storage_prefix,
        )


@dataclass(frozen=True, slots=True)
class KnownRun:
    """Describe a run that the table already has."""

    id: UUID
    run_timestamp: datetime
    radar_timestamp: datetime | None
    status: str
    failure_reason: str | None
    triggered_at: datetime | None


def open_run(connection: Connection, candidate: RunCandidate, now: datetime) -> RunAttempt | None:
    """Begin a first attempt; return None if the run, or one of its instants, is already taken."""
    row = connection.execute(SQL["open"], _values(candidate, now)).fetchone()
    return None if row is None else _attempt(candidate, *row)


def retake(
    connection: Connection, known: KnownRun, candidate: RunCandidate, now: datetime, *, reset_retries: bool
) -> RunAttempt | None:
    """Begin another attempt at a failed run; `reset_retries` counts its retries from the beginning."""
    values = {"id": known.id, "seen": known.triggered_at, "reset_retries": reset_retries} | _values(candidate, now)
    try:
        row = connection.execute(SQL["retake"], values).fetchone()
    except psycopg.errors.UniqueViolation:
        return None
    return None if row is None else _attempt(candidate, *row)


def confirm(connection: Connection, attempt: RunAttempt, external_id: str) -> bool:
    """Note that RunPod has taken it. Return False if the attempt has been given up in the meantime."""
    values = {"id": attempt.id, "triggered_at": attempt.triggered_at, "external_id": external_id}
    return connection.execute(SQL["confirm"], values).rowcount == 1


def refuse(connection: Connection, attempt: RunAttempt) -> None:
    """Note that RunPod has not taken it."""
    values = {"id": attempt.id, "triggered_at": attempt.triggered_at, "reason": REFUSED}
    connection.execute(SQL["refuse"], values)


def read_calibration(connection: Connection) -> dict[str, Any]:
    """Return the coefficients of all tiles."""
    return dict(connection.execute(SQL["read_calibration"]).fetchall())


def _values(candidate: RunCandidate, now: datetime) -> dict[str, Any]:
    return {
        "model": candidate.model,
        "run_timestamp": candidate.run_timestamp,
        "radar_timestamp": candidate.radar_timestamp,
        "references": list(candidate.references),
        "storage_prefix": candidate.storage_prefix,
        "now": now,
    }


def _attempt(candidate: RunCandidate, run_id: UUID, storage_prefix: str, triggered_at: datetime) -> RunAttempt:
    return RunAttempt(
        run_id, candidate.model, candidate.run_timestamp, candidate.references, storage_prefix, triggered_at
    )
