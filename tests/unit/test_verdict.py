"""The type of what a job returned or raised decides its fate, never the words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from signalbox.errors import DatabaseUnavailable, JobRefused
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import check_pieces, fingerprint, of_error
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import Completed, JobCancelled, JobTimedOut, More, Permanent, RateLimited, Transient
from signalbox.packs.retry_policy import RetryPolicy

TYPE = JobType(
    "send", "sends", "nowhere", retry=RetryPolicy(base=timedelta(seconds=10), jitter="none"), severity="critical"
)
NOW = datetime(2026, 3, 10, tzinfo=UTC)


def denied(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "Publish")


def job(attempt: int = 1, max_attempts: int = 3) -> ClaimedJob:
    empty = (None,) * 5
    return ClaimedJob("id", "send", "normal", 5, {}, 1, *empty, attempt, attempt, max_attempts, 1000, NOW, NOW, None)


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
    verdict = of_error(TYPE, job(), error, 0.5, NOW)
    assert (verdict.status, verdict.execution, verdict.charge) == ("pending", "failed", None)
    assert verdict.delay == timedelta(seconds=10)


@pytest.mark.parametrize(
    "error",
    [
        Permanent("timeout, connection reset, please retry"),
        JobRefused("wrong"),
        NotImplementedError(),
        psycopg.errors.UndefinedTable("no such table"),
        psycopg.errors.NumericValueOutOfRange("too large"),
        ValidationError.from_exception_data("Order", []),
    ],
)
def test_failure_that_would_repeat_is_dead_lettered_at_once(error: Exception) -> None:
    verdict = of_error(TYPE, job(), error, 0.5, NOW)
    assert verdict.failure is not None
    assert (verdict.status, verdict.failure.reason, verdict.failure.severity) == ("failed", "permanent", "critical")


@pytest.mark.parametrize(("attempt", "status"), [(1, "pending"), (2, "pending"), (3, "failed"), (4, "failed")])
def test_the_last_attempt_is_the_last(attempt: int, status: str) -> None:
    assert of_error(TYPE, job(attempt), Transient("no"), 0.5, NOW).status == status


@pytest.mark.parametrize(("attempt", "reason"), [(1, None), (3, "timeout")])
def test_time_out_has_its_own_reason(attempt: int, reason: str | None) -> None:
    verdict = of_error(TYPE, job(attempt), JobTimedOut("long"), 0.5, NOW)
    assert (verdict.execution, verdict.failure and verdict.failure.reason) == ("timeout", reason)


def test_throttling_spends_no_attempt() -> None:
    verdict = of_error(TYPE, job(99), RateLimited("slow down", timedelta(seconds=77)), 0.5, NOW)
    assert (verdict.status, verdict.charge, verdict.delay) == ("pending", "refund", timedelta(seconds=77))


@pytest.mark.parametrize(("throttles", "seconds"), [(0, 30), (1, 60), (4, 480), (5, 900), (900, 900)])
def test_throttled_job_without_a_given_time_waits_longer_each_time(throttles: int, seconds: int) -> None:
    throttled = job()._replace(throttles=throttles)
    assert of_error(TYPE, throttled, RateLimited("slow down"), 0.5, NOW).delay == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("throttles", "hours", "status"), [(998, 24, "pending"), (999, 0, "failed"), (1, 25, "failed")]
)
def test_throttling_ends_after_so_often_or_so_long(throttles: int, hours: int, status: str) -> None:
    throttled = job()._replace(throttles=throttles, throttled_since=NOW - timedelta(hours=hours))
    verdict = of_error(TYPE, throttled, RateLimited("slow down"), 0.5, NOW)
    assert (verdict.status, verdict.execution) == (status, "throttled")
    assert (verdict.failure and verdict.failure.reason) == ("exhausted" if status == "failed" else None)


@pytest.mark.parametrize(("pieces", "days"), [(9_999, 0), (1, 8)])
def test_work_in_pieces_ends_after_so_many_or_so_long(pieces: int, days: int) -> None:
    long = job()._replace(pieces=pieces, first_started_at=NOW - timedelta(days=days))
    with pytest.raises(Permanent, match="a redrive continues from its cursor"):
        check_pieces(TYPE, long, More({}), NOW)
    check_pieces(TYPE, long, Completed(), NOW)


def test_work_in_pieces_goes_on_up_to_its_bounds() -> None:
    check_pieces(TYPE, job()._replace(pieces=9_998, first_started_at=NOW - timedelta(days=7)), More({}), NOW)


@pytest.mark.parametrize(
    "error", [PermissionError("/etc/shadow"), denied("AccessDenied"), denied("AuthorizationError")]
)
def test_missing_permission_is_permanent_unless_the_type_says_otherwise(error: Exception) -> None:
    failure = of_error(TYPE, job(), error, 0.5, NOW).failure
    assert failure is not None
    assert failure.reason == "permanent"
    patient = replace(TYPE, transient=frozenset({type(error).__name__}))
    assert of_error(patient, job(), error, 0.5, NOW).status == "pending"


def test_the_other_sides_wish_counts_where_it_is_longer() -> None:
    for asked, waits in ((5, 10), (60, 60)):
        verdict = of_error(TYPE, job(), Transient("no", timedelta(seconds=asked)), 0.5, NOW)
        assert verdict.delay == timedelta(seconds=waits)


def test_a_cancelled_job_is_no_failure() -> None:
    assert of_error(TYPE, job(), JobCancelled("asked"), 0.5, NOW).status == "cancelled"


@given(st.integers(0, 10**12), st.uuids(), st.text(alphabet="abc", max_size=5))
def test_failures_that_differ_by_ids_and_numbers_alone_have_one_fingerprint(
    number: int, uuid: object, word: str
) -> None:
    def described(message: str) -> dict[str, str]:
        return {"type": "Transient", "message": message}

    first = fingerprint("send", described("order 1 of 00000000-0000-4000-8000-000000000000 'x' refused"))
    assert first == fingerprint("send", described(f"order {number} of {uuid} '{word}' refused"))
    assert first != fingerprint("receive", described("order 1 of 00000000-0000-4000-8000-000000000000 'x' refused"))
    assert first != fingerprint("send", {"type": "Permanent", "message": "order 1 refused"})
