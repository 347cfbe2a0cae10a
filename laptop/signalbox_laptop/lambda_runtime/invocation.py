"""Describe one invocation: what the function is given, and the result."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from dataclasses import dataclass, field


def _new_request_id() -> str:
    return str(uuid.uuid4())


def _new_trace() -> str:
    return f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Parent={secrets.token_hex(8)};Sampled=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaInvocation:
    """Describe the input. A retry of an event keeps its request id."""

    payload: bytes
    request_id: str = field(default_factory=_new_request_id)
    trace: str = field(default_factory=_new_trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Describe the output: the function's answer, or its error if `function_error` is set."""

    request_id: str
    payload: bytes
    executed_version: str
    # "Unhandled", as Lambda now calls every error.
    function_error: str | None
    # The last 4 KB of the log, START and REPORT included.
    log_tail: bytes

    @property
    def failed(self) -> bool:
        return self.function_error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationResult:
    """Describe how the process handled an invocation: the payload it gave, or the error in its place."""

    payload: bytes
    # None for a success; else the error's type, as Lambda's REPORT line has it.
    error_type: str | None = None
    # "success", "error" or "timeout", as in Lambda's platform.report.
    status: str = "success"

    @staticmethod
    def error(error_type: str, message: str) -> InvocationResult:
        payload = json.dumps({"errorType": error_type, "errorMessage": message}).encode()
        return InvocationResult(payload=payload, error_type=error_type, status="error")

    @staticmethod
    def reported(payload: bytes) -> InvocationResult:
        """Return the result for an error that the runtime itself reported."""
        return InvocationResult(payload=payload, error_type=_error_type(payload), status="error")

    @staticmethod
    def timed_out(request_id: str, seconds: float) -> InvocationResult:
        message = f"RequestId: {request_id} Error: Task timed out after {seconds:.2f} seconds"
        payload = json.dumps({"errorType": "Sandbox.Timedout", "errorMessage": message}).encode()
        return InvocationResult(payload=payload, error_type="Sandbox.Timedout", status="timeout")

    @staticmethod
    def exited(request_id: str, how: str) -> InvocationResult:
        return InvocationResult.error("Runtime.ExitError", f"RequestId: {request_id} Error: {how}")


def _error_type(payload: bytes) -> str:
    try:
        error = json.loads(payload)
    except ValueError:
        return "Unhandled"
    return str(error.get("errorType", "Unhandled")) if isinstance(error, dict) else "Unhandled"
