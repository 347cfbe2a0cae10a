"""Start a function as Lambda does: AWS's runtime client with its package, asked once, timed to its first answer."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

from bench.stage.packages import built
from signalbox_laptop.lambda_runtime.invocation import LambdaInvocation
from signalbox_laptop.lambda_runtime.packages import Artefact
from signalbox_laptop.lambda_runtime.runtime_api import Offer, Ready, Responded, RuntimeApi, Signal


@dataclass(frozen=True, slots=True)
class Start:
    """Describe one start of a function, and its first payload."""

    artefact: Artefact
    payload: Mapping[str, Any]
    environ: Mapping[str, str]

    def seconds_to_first_answer(self) -> float:
        """Return the seconds from the start of its process."""
        signals: SimpleQueue[Signal] = SimpleQueue()
        api = RuntimeApi(signals.put)
        invocation = LambdaInvocation(request_id="bench", payload=json.dumps(self.payload).encode())
        api.offer(Offer(invocation, "arn:aws:lambda:us-east-1:123456789012:function:bench", _deadline()))
        began = time.perf_counter()
        process = subprocess.Popen(
            [*built().command(self.artefact), "handler.handler"],
            cwd=self.artefact.task_root,
            env=_environment(api.address) | dict(self.environ),
            stdout=subprocess.DEVNULL,
        )
        try:
            while not isinstance(signal := signals.get(timeout=30), Responded):
                if not isinstance(signal, Ready):
                    raise RuntimeError(f"{self.artefact.task_root.name} did not answer: {signal}")
            return time.perf_counter() - began
        finally:
            process.kill()
            process.wait()
            api.close()


def bare_environment() -> dict[str, str]:
    """Return only the variables of the shell that find programs."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def _environment(address: str) -> dict[str, str]:
    return bare_environment() | {
        "AWS_LAMBDA_RUNTIME_API": address,
        "AWS_LAMBDA_FUNCTION_NAME": "bench",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "AWS_DEFAULT_REGION": "us-east-1",
        "SIGNALBOX_STACK": "bench",
    }


def _deadline() -> int:
    return int(datetime.now(UTC).timestamp() * 1000) + 360_000
