"""The lines that Lambda itself writes into a function's log, in both of its formats."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.lambda_service.function import Function
from local.lambda_service.invocation import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one invocation took."""

    duration_ms: float
    memory_mb: int
    # Only the first invocation of an environment reports it.
    init_ms: float | None


def init_started(function: Function, now: datetime) -> str:
    version = f"python:{platform.python_version()}"
    if not function.logs_json:
        return f"INIT_START Runtime Version: {version}\tRuntime Version ARN: laptop"
    record = {
        "initializationType": "on-demand",
        "phase": "init",
        "runtimeVersion": version,
        "runtimeVersionArn": "laptop",
        "functionName": function.name,
        "functionVersion": function.version,
    }
    return _record(now, "platform.initStart", record)


def started(function: Function, request_id: str, now: datetime) -> str:
    if not function.logs_json:
        return f"START RequestId: {request_id} Version: {function.version}"
    return _record(now, "platform.start", {"requestId": request_id, "version": function.version})


def ended(function: Function, request_id: str, outcome: Outcome, measured: Measured, now: datetime) -> list[str]:
    """What follows an invocation: why it broke, if it did, and the report."""
    if function.logs_json:
        return [_json_report(function, request_id, outcome, measured, now)]
    return [
        *_failure(request_id, outcome, function.timeout, now),
        f"END RequestId: {request_id}",
        _text_report(function, request_id, outcome, measured),
    ]


def _failure(request_id: str, outcome: Outcome, timeout: float, now: datetime) -> list[str]:
    if outcome.status == "timeout":
        return [f"{_instant(now)} {request_id} Task timed out after {timeout:.2f} seconds"]
    if outcome.error_type == "Runtime.ExitError":
        return [f"{json.loads(outcome.payload)['errorMessage']}\nRuntime.ExitError"]
    return []


def _text_report(function: Function, request_id: str, outcome: Outcome, measured: Measured) -> str:
    parts = [
        f"REPORT RequestId: {request_id}",
        f"Duration: {measured.duration_ms:.2f} ms",
        f"Billed Duration: {_billed(measured)} ms",
        f"Memory Size: {function.memory} MB",
        f"Max Memory Used: {measured.memory_mb} MB",
    ]
    if measured.init_ms is not None:
        parts.append(f"Init Duration: {measured.init_ms:.2f} ms")
    if outcome.status != "success":
        parts.append(f"Status: {outcome.status}")
    if outcome.status == "error":
        parts.append(f"Error Type: {outcome.error_type}")
    return "\t".join(parts)


def _json_report(function: Function, request_id: str, outcome: Outcome, measured: Measured, now: datetime) -> str:
    metrics: dict[str, Any] = {
        "durationMs": round(measured.duration_ms, 3),
        "billedDurationMs": _billed(measured),
        "memorySizeMB": function.memory,
        "maxMemoryUsedMB": measured.memory_mb,
    }
    if measured.init_ms is not None:
        metrics["initDurationMs"] = round(measured.init_ms, 3)
    record: dict[str, Any] = {"requestId": request_id, "metrics": metrics, "status": outcome.status}
    if outcome.status == "error":
        record["errorType"] = outcome.error_type
    return _record(now, "platform.report", record)


def _billed(measured: Measured) -> int:
    return math.ceil(measured.duration_ms + (measured.init_ms or 0))


def _record(now: datetime, kind: str, record: dict[str, Any]) -> str:
    return json.dumps({"time": _instant(now), "type": kind, "record": record}, separators=(",", ":"))


def _instant(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
