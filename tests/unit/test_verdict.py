"""What becomes of a job is decided by the type of what it answered or raised, and never by words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.errors import DatabaseUnavailable, JobRefused
from signalbox.jobs.job import Job
from signalbox.jobs.job_type import JobType
from signalbox.jobs.outcome import JobCancelled, JobTimedOut, Permanent, RateLimited, Transient
from signalbox.jobs.retry_policy import RetryPolicy
from signalbox.jobs.verdict import fingerprint, of_error

TYPE = JobType(
    "send", "sends", "nowhere", retry=RetryPolicy(base=timedelta(seconds=10), jitter="none"), severity="critical"
)
NOW = datetime(2026, 3, 10, tzinfo=UTC)


def job(attempt: int = 1, max_attempts: int = 3) -> Job:
    empty = (None,) * 5
    return Job("id", "send", "normal", 5, {}, 1, *empty, attempt, attempt, max_attempts, 1000, NOW, NOW, None)


@pytest.mark.parametrize(
    "error",
    [
        Transient("no"),
        RuntimeError("invalid input, permission denied, 404 not found"),
        ConnectionResetError(),
        KeyError("subject"),
        DatabaseUnavailable("away"),
        psycopg.OperationalError("gone"),
        psycopg.errors.DeadlockDetected("stuck"),
        psycopg.errors.UniqueViolation("twice"),
    ],
)
def test_what_may_work_the_next_time_is_tried_again(error: Exception) -> None:
    verdict = of_error(TYPE, job(), error, 0.5)
    assert (verdict.status, verdict.execution, verdict.counts) == ("pending", "failed", None)
    assert verdict.delay == timedelta(seconds=10)


@pytest.mark.parametrize(
    "error",
    [
        Permanent("timeout, connection reset, please retry"),
        JobRefused("wrong"),
        NotImplementedError(),
        psycopg.errors.UndefinedTable("no such table"),
        psycopg.errors.NumericValueOutOfRange("too large"),
    ],
)
def test_what_would_fail_the_same_way_is_buried_at_once(error: Exception) -> None:
    verdict = of_error(TYPE, job(), error, 0.5)
    assert (verdict.status, verdict.reason, verdict.severity) == ("failed", "permanent", "critical")


@pytest.mark.parametrize(("attempt", "status"), [(1, "pending"), (2, "pending"), (3, "failed"), (4, "failed")])
def test_the_last_attempt_is_the_last(attempt: int, status: str) -> None:
    assert of_error(TYPE, job(attempt), Transient("no"), 0.5).status == status


@pytest.mark.parametrize(("attempt", "reason"), [(1, None), (3, "timeout")])
def test_a_time_out_is_told_apart(attempt: int, reason: str | None) -> None:
    verdict = of_error(TYPE, job(attempt), JobTimedOut("long"), 0.5)
    assert (verdict.execution, verdict.reason) == ("timeout", reason)


def test_throttling_spends_nothing_however_often_it_comes() -> None:
    verdict = of_error(TYPE, job(99), RateLimited("slow down", timedelta(seconds=77)), 0.5)
    assert (verdict.status, verdict.counts, verdict.delay) == ("pending", "not", timedelta(seconds=77))


def test_the_other_sides_wish_counts_where_it_is_longer() -> None:
    for asked, waits in ((5, 10), (60, 60)):
        verdict = of_error(TYPE, job(), Transient("no", timedelta(seconds=asked)), 0.5)
        assert verdict.delay == timedelta(seconds=waits)


def test_a_cancelled_job_is_no_failure() -> None:
    assert of_error(TYPE, job(), JobCancelled("asked"), 0.5).status == "cancelled"


@given(st.integers(0, 10**12), st.uuids(), st.text(alphabet="abc", max_size=5))
def test_failures_that_differ_by_ids_and_numbers_alone_have_one_fingerprint(
    number: int, uuid: object, word: str
) -> None:
    def told(message: str) -> dict[str, str]:
        return {"type": "Transient", "message": message}

    first = fingerprint("send", told("order 1 of 00000000-0000-4000-8000-000000000000 'x' refused"))
    assert first == fingerprint("send", told(f"order {number} of {uuid} '{word}' refused"))
    assert first != fingerprint("receive", told("order 1 of 00000000-0000-4000-8000-000000000000 'x' refused"))
    assert first != fingerprint("send", {"type": "Permanent", "message": "order 1 refused"})
