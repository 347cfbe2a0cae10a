"""A lost job's fate follows from its attempts, its type and any request to cancel it."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from signalbox.packs.job_type import JobType
from signalbox.packs.registries import JobTypeRegistry
from signalbox.packs.retry_policy import RetryPolicy
from signalbox.tasks.rescue_jobs import Lost, judge

FIXED = RetryPolicy(backoff="fixed", base=timedelta(seconds=30), jitter="none")
REGISTRY = JobTypeRegistry([JobType("sign", "signs", "signing", retry=FIXED, severity="critical")])


def lost(**fields: object) -> Lost:
    values = {
        "id": "a",
        "job_type": "sign",
        "lane": "normal",
        "tenant": None,
        "attempt": 1,
        "max_attempts": 3,
        "worker_id": "request/ab12",
        "token": str(uuid.UUID(int=1)),
        "unwanted": False,
        "notes": None,
    }
    return Lost(**{**values, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(("attempt", "status"), [(1, "pending"), (2, "pending"), (3, "failed"), (4, "failed")])
def test_a_job_is_tried_again_while_it_has_attempts_left(attempt: int, status: str) -> None:
    verdict = judge(REGISTRY, lost(attempt=attempt))
    assert (verdict.status, verdict.execution) == (status, "lost")
    assert verdict.delay == timedelta(0)


def test_poison_is_as_severe_as_its_type_says() -> None:
    verdict = judge(REGISTRY, lost(attempt=3))
    assert verdict.failure is not None
    assert (verdict.failure.reason, verdict.failure.severity) == ("lost", "critical")
    unknown = judge(REGISTRY, lost(attempt=3, job_type="unheard_of"))
    assert unknown.failure is not None
    assert (unknown.failure.reason, unknown.failure.severity) == ("lost", "warning")


def test_whichever_worker_it_killed_poison_is_of_one_kind() -> None:
    failures = {
        judge(REGISTRY, lost(attempt=attempt, max_attempts=attempt, worker_id=worker)).failure
        for attempt, worker in [(3, "request/ab12"), (5, "other-request/99")]
    }
    assert None not in failures
    assert len(failures) == 1


def test_lost_job_with_a_cancel_request_is_cancelled() -> None:
    for attempt in (1, 3):
        assert judge(REGISTRY, lost(attempt=attempt, unwanted=True)).status == "cancelled"
