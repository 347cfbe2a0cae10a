"""Wait for a job of a story, whose next step needs the result."""

from __future__ import annotations

import time
from typing import Any

from signalbox.client.http_client import HttpClient

_PATIENCE_SECONDS = 20.0


def result_of(api: HttpClient, job_id: str) -> dict[str, Any]:
    """Wait for a job, and return its result."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while (job := api.job(job_id)["job"])["status"] != "completed":
        if job["status"] in ("failed", "cancelled") or time.monotonic() > until:
            raise RuntimeError(f"job {job_id} of the story is {job['status']}")
        time.sleep(0.1)
    result: dict[str, Any] = job["result"]
    return result
