"""The record of an attempt's end, which the function `end_attempts` reads as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from signalbox.jobs.retry_routing import look_after
from signalbox.jobs.verdict import COMPLETED, Verdict

_FIELDS = (
    "charge",
    "result",
    "output_files",
    "files",
    "cursor",
    "error",
    "percent",
    "message",
    "wait_key",
    "wait_until",
)
_COMPLETED = '"status":"completed","execution":"completed"}'  # by far the most
_MILLISECOND = timedelta(milliseconds=1)


class Cost(NamedTuple):
    """Measure an attempt. Its times count from its claim, since the database has the clock."""

    began_ms: float
    ended_ms: float
    cpu_ms: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class EndRecord:
    """Describe the end of one attempt: its token, its verdict, what it took, and the job's notes on a failure."""

    job_id: str
    token: str
    verdict: Verdict
    cost: Cost | None = None
    notes: dict[str, Any] | None = None

    def to_json(self) -> str:
        """Return the object that `end_attempts` reads. No other code writes one."""
        ids = f'{{"id":"{self.job_id}","token":"{self.token}",'
        return ids + _cost(self.cost) + _notes(self.notes) + _verdict(self.verdict)


def to_array(records: Iterable[EndRecord]) -> str:
    """Return the argument of `end_attempts`."""
    return f"[{','.join(record.to_json() for record in records)}]"


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return ""
    began, ended, cpu, memory = cost
    return f'"began_ms":{began:.3f},"ended_ms":{ended:.3f},"cpu_ms":{cpu:.3f},"memory_mb":{memory},'


def _notes(notes: dict[str, Any] | None) -> str:
    return "" if notes is None else f'"metadata":{json.dumps(notes)},'


def _verdict(verdict: Verdict) -> str:
    """Return the verdict's members and the closing brace."""
    if verdict is COMPLETED:
        return _COMPLETED
    record: dict[str, Any] = {"status": verdict.status, "execution": verdict.execution}
    if verdict.status == "pending":
        record |= {"delay_ms": verdict.delay / _MILLISECOND, "look_ms": look_after(verdict.delay) / _MILLISECOND}
    if verdict.failure is not None:
        record |= verdict.failure._asdict()
    for name in _FIELDS:
        if (value := getattr(verdict, name)) is not None:
            record[name] = value
    return json.dumps(record)[1:]
