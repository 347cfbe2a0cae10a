"""Run a function from its package alone: a process like Lambda's, fed by the laptop's Runtime API."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation
from signalbox_laptop.lambda_runtime.process import Runtime
from signalbox_laptop.lambda_runtime.runtime_api import Failed, InitFailed, Offer, Ready, Responded

PATIENCE_SECONDS = 30.0


class PackagedFunction:
    """Own the process, which serves one event after the other."""

    def __init__(self, command: Sequence[str], folder: Path, variables: dict[str, str]) -> None:
        self.logged: list[str] = []
        self._runtime = Runtime(
            "handler.handler", folder, variables, lambda line, _: self.logged.append(line), command=command
        )

    def fault_of(self, event: dict[str, Any]) -> str | None:
        """Return what was wrong with its answer, or None for a served event."""
        invocation = LambdaInvocation(payload=json.dumps(event).encode())
        deadline = int((time.time() + PATIENCE_SECONDS) * 1000)
        self._runtime.offer(Offer(invocation, "arn:aws:lambda:us-east-1:123456789012:function:packaged", deadline))
        while True:
            match self._runtime.signal(PATIENCE_SECONDS):
                case Ready():
                    continue
                case Responded(_, body):
                    return _fault_in(json.loads(body))
                case Failed(_, body) | InitFailed(body):
                    return body.decode()
                case other:
                    return f"{other}; it logged: {self.logged}"

    def close(self) -> None:
        self._runtime.close()


def _fault_in(answer: dict[str, Any]) -> str | None:
    """Return the fault: a run may have nothing to do, but no message of a batch may come back."""
    ran = "task" not in answer or answer["status"] in ("succeeded", "skipped", "requested")
    return None if ran and not answer.get("batchItemFailures") else str(answer)
