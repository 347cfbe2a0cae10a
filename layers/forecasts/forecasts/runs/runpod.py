"""Call RunPod's serverless endpoint over HTTP: run, status, cancel. Its own SDK imports slower than a poll runs.

The error says what a failed call may have left behind. If RunPod has surely taken nothing, it is RunPodUnavailable,
RunPodRefused or RunPodDenied, and the client itself tries again until its time is up. If RunPod may have taken the run,
it is TriggerUnconfirmed, at once: without an idempotency key a second call could start a second job.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from urllib.parse import quote

from forecasts.api_key import read_api_key
from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs.inference_payload import InferencePayload
from forecasts.settings import settings_of
from signalbox.budget import Budget
from signalbox.errors import SettingsRefused
from signalbox.http.client import HttpClient, Response
from signalbox.ledger.context import Context
from signalbox.runtime.log import Logger

TRIES = 4
FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
# Limits the provider's own words about a failure; they go into the row, not into a log.
LONGEST_REASON = 500
# How much longer than our own time-out RunPod lets a job live. If this were shorter, a hung job would be gone before
# the hourly reconciling could see it hang; it would then be taken for lost and retried.
GRACE = timedelta(hours=2)


class RunPodState(StrEnum):
    """Name a job's state. Any other state that RunPod may report counts as not final."""

    UNFINISHED = "UNFINISHED"  # queued, running, or in a state unknown to us
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"  # RunPod does not know the job, or no longer


@dataclass(frozen=True, slots=True)
class RunPodJob:
    """Describe RunPod's answer about one job."""

    state: RunPodState
    error: str = ""  # the provider's words


class RunPod:
    """Call one endpoint, for one run of a task: waits end with the run's budget."""

    def __init__(self, web: HttpClient, url: str, key: str, budget: Budget, log: Logger) -> None:
        self._web, self._url, self._budget, self._log = web, url, budget, log
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.longest_call = web.longest_call
        self.sleep: Callable[[float], object] = time.sleep

    def trigger(self, payload: InferencePayload, time_out: timedelta) -> str:
        """Start a job and return its id; it lives GRACE longer than the time-out at most."""
        life = int((time_out + GRACE) / timedelta(milliseconds=1))
        asked = {"input": payload.model_dump(mode="json"), "policy": {"executionTimeout": life, "ttl": life}}
        answer = self._ask("POST", "run", json.dumps(asked).encode(), once=True)
        if answer.status == 404:
            raise RunPodDenied("RunPod has no such endpoint: set FORECASTS_RUNPOD_ENDPOINT_ID to one of the account's")
        if not answer.good:
            what = f"{payload.task_type} of {payload.model} {payload.run_timestamp:%Y-%m-%dT%H:%M:%SZ}"
            raise RunPodRefused(f"RunPod refuses {what}: {answer.words}")
        external_id = answer.fields().get("id")
        if not isinstance(external_id, str) or not external_id:
            raise TriggerUnconfirmed(f"RunPod's answer to /run gives no id ({answer.words}): see its console")
        return external_id

    def status(self, external_id: str) -> RunPodJob:
        answer = self._ask("GET", f"status/{quote(external_id, safe='')}")
        if answer.status == 404:
            return RunPodJob(RunPodState.LOST)
        fields = answer.fields()
        if not answer.good or "status" not in fields:
            raise RunPodUnavailable(f"RunPod does not say how job {external_id} is: {answer.words}")
        return RunPodJob(_state_of(fields["status"]), str(fields.get("error") or "")[:LONGEST_REASON])

    def cancel(self, external_id: str) -> None:
        """End the job; one that RunPod no longer knows has ended."""
        answer = self._ask("POST", f"cancel/{quote(external_id, safe='')}")
        if not answer.good and answer.status != 404:
            raise RunPodUnavailable(f"RunPod does not cancel job {external_id}: {answer.words}")

    def _ask(self, method: str, path: str, body: bytes | None = None, *, once: bool = False) -> Response:
        """Return the first answer that a retry would not change; `once`: never resend what RunPod may have taken."""
        for attempt in range(TRIES):
            answer = self._web.send(method, f"{self._url}/{path}", body, self._headers)
            if answer.status in (401, 403):
                raise RunPodDenied(
                    f"RunPod does not take the key in the secret FORECASTS_RUNPOD_SECRET ({answer.words}): "
                    "put a valid one in"
                )
            if not answer.passing:
                return answer
            if once and answer.doubtful:
                raise TriggerUnconfirmed(f"RunPod may have taken the run: {answer.words}; its console shows it")
            self._wait(attempt, answer)
        raise AssertionError("the last try raises")

    def _wait(self, attempt: int, answer: Response) -> None:
        """Wait with full jitter, or as long as RunPod asks; raise if that takes too long."""
        wait = random.uniform(0, min(LONGEST_BACKOFF, FIRST_BACKOFF * 2**attempt))  # noqa: S311 - no secret
        if answer.retry_after is not None:
            wait = answer.retry_after
        if attempt + 1 == TRIES:
            raise RunPodUnavailable(f"RunPod still fails after {TRIES} tries: {answer.words}")
        if not self._budget.allows(wait + self.longest_call):
            raise RunPodUnavailable(f"RunPod fails, and there is no time to try again: {answer.words}")
        self._log.warning("runpod.delayed", extra={"why": answer.words, "seconds": round(wait, 1)})
        self.sleep(wait)


def open_runpod(context: Context) -> RunPod:
    """Return a client with the stack's endpoint and key. Without them, raise before anything is written."""
    given = settings_of(context)
    if not given.runpod_endpoint_id:
        raise SettingsRefused("the pack forecasts knows no RunPod endpoint: set FORECASTS_RUNPOD_ENDPOINT_ID")
    key = read_api_key(context.clients, given.runpod_secret)
    url = f"{given.runpod_base_url.rstrip('/')}/{given.runpod_endpoint_id}"
    return RunPod(HttpClient(given.runpod_timeout_seconds), url, key, context.budget, context.log)


def _state_of(given: object) -> RunPodState:
    try:
        return RunPodState(str(given))
    except ValueError:
        return RunPodState.UNFINISHED
