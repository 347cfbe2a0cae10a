"""A function as Lambda starts it: `awslambdaric` with its folder and layers, asked once, timed to its first answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from local.lambda_service.invocation import Invocation
from local.lambda_service.runtime_api import Offer, Ready, Responded, RuntimeApi, Signal

ROOT = Path(__file__).parents[1]


def seconds_to_first_answer(
    function: str, payload: dict[str, Any], path: Sequence[Path], environ: Mapping[str, str]
) -> float:
    """Starts the function's process, hands it the payload, and answers how long the answer took from the start."""
    signals: SimpleQueue[Signal] = SimpleQueue()
    api = RuntimeApi(signals.put)
    invocation = Invocation(request_id="bench", payload=json.dumps(payload).encode())
    api.offer(Offer(invocation, "arn:aws:lambda:us-east-1:123456789012:function:bench", _deadline()))
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "awslambdaric", "handler.handler"],
        cwd=ROOT / "functions" / function,
        env=_environment(function, path, api.address) | dict(environ),
        stdout=subprocess.DEVNULL,
    )
    try:
        while not isinstance(signal := signals.get(timeout=30), Responded):
            if not isinstance(signal, Ready):
                raise RuntimeError(f"{function} did not answer: {signal}")
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        api.close()


def bare_environment() -> dict[str, str]:
    """Nothing of the shell's but what finds programs."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def _environment(function: str, path: Sequence[Path], address: str) -> dict[str, str]:
    task_root = ROOT / "functions" / function
    return bare_environment() | {
        "AWS_LAMBDA_RUNTIME_API": address,
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "LAMBDA_TASK_ROOT": str(task_root),
        "PYTHONPATH": os.pathsep.join(map(str, [task_root, *path])),
        "SIGNALBOX_STACK": "bench",
    }


def _deadline() -> int:
    return int(datetime.now(UTC).timestamp() * 1000) + 60_000
