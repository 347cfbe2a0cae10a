"""Write the records that Lambda itself adds to a function's log."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from signalbox_laptop.lambda_control.function import Function
from signalbox_laptop.lambda_runtime.invocation import InvocationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Describe what one invocation took."""

    duration_ms: float
    memory_mb: int
    # Only the first invocation of an environment reports it.
    init_ms: float | None


def init_started(function: Function, now: datetime) -> str:
    record = {
        "initializationType": "on-demand",
        "phase": "init",
        "runtimeVersion": f"python:{platform.python_version()}",
        "runtimeVersionArn": "laptop",
        "functionName": function.name,
        "functionVersion": function.version,
    }
    return _record(now, "platform.initStart", record)


def started(function: Function, request_id: str, now: datetime) -> str:
    return _record(now, "platform.start", {"requestId": request_id, "version": function.version})


def ended(function: Function, request_id: str, outcome: InvocationResult, measured: Measured, now: datetime) -> str:
    """Return the report that follows an invocation."""
    metrics: dict[str, Any] = {
        "durationMs": round(measured.duration_ms, 3),
        "billedDurationMs": math.ceil(measured.duration_ms + (measured.init_ms or 0)),
        "memorySizeMB": function.memory,
        "maxMemoryUsedMB": measured.memory_mb,
    }
    if measured.init_ms is not None:
        metrics["initDurationMs"] = round(measured.init_ms, 3)
    record: dict[str, Any] = {"requestId": request_id, "metrics": metrics, "status": outcome.status}
    if outcome.status == "error":
        record["errorType"] = outcome.error_type
    return _record(now, "platform.report", record)


def _record(now: datetime, kind: str, record: dict[str, Any]) -> str:
    return json.dumps({"time": _instant(now), "type": kind, "record": record}, separators=(",", ":"))


def _instant(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
