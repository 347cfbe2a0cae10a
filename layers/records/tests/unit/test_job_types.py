"""The job types run where, how often and how many at once as the contract has it."""

from __future__ import annotations

from datetime import timedelta

from records.job_types import JOB_TYPES
from records.passes import question


def test_each_type_has_four_attempts_five_minutes_apart() -> None:
    minutes = timedelta(minutes=5)
    policies = {(one.retry.max_attempts, one.retry.base, one.retry.cap, one.retry.jitter) for one in JOB_TYPES}
    assert policies == {(4, minutes, minutes, "twenty_percent")}


def test_files_are_read_two_at_once_since_each_may_fill_the_memory() -> None:
    assert [one.side_by_side for one in JOB_TYPES] == [2, 50]


def test_model_has_most_of_an_attempts_time() -> None:
    assert vars(question)["_MOST_SECONDS"] == 280
