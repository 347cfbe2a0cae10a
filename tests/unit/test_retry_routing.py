"""Retries of up to a quarter of an hour go by message; later ones wait for dispatch_jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from signalbox.jobs.retry_routing import LOST_AFTER, SQS_MAX_DELAY, delay_seconds, goes_by_message, look_after

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("delay", "by_message", "looked_for"),
    [
        (timedelta(0), True, LOST_AFTER),
        (SQS_MAX_DELAY, True, SQS_MAX_DELAY + LOST_AFTER),
        (SQS_MAX_DELAY + SECOND, False, SQS_MAX_DELAY + SECOND),
    ],
)
def test_only_what_has_a_message_is_looked_for_later(delay: timedelta, by_message: bool, looked_for: timedelta) -> None:
    assert (goes_by_message(delay), look_after(delay)) == (by_message, looked_for)


@pytest.mark.parametrize(
    ("delay", "seconds"), [(-SECOND, 0), (0.1 * SECOND, 1), (2 * SECOND, 2), (SQS_MAX_DELAY * 2, 900)]
)
def test_sqs_is_never_asked_for_less_than_the_delay(delay: timedelta, seconds: int) -> None:
    assert delay_seconds(delay) == seconds
