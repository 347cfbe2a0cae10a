"""The wait before the next attempt stays within its bounds for every policy and chance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.packs.retry_policy import RetryPolicy, next_delay

SECOND = timedelta(seconds=1)
chances = st.floats(0, 1)
attempts = st.integers(1, 10_000)


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    base = draw(st.integers(1, 3600))
    return RetryPolicy(
        backoff=draw(st.sampled_from(["fixed", "exponential"])),
        base=base * SECOND,
        factor=draw(st.floats(1, 10)),
        cap=draw(st.integers(base, 86_400)) * SECOND,
        jitter=draw(st.sampled_from(["none", "full", "twenty_percent"])),
    )


@given(policies(), attempts, chances)
def test_a_delay_is_above_zero_and_within_the_cap_and_its_jitter(
    policy: RetryPolicy, attempt: int, chance: float
) -> None:
    delay = next_delay(policy, attempt, chance)
    most = policy.cap * (1.2 if policy.jitter == "twenty_percent" else 1)
    assert timedelta(0) < delay <= most + timedelta(microseconds=1)


@given(policies(), st.integers(1, 100), chances)
def test_a_later_attempt_never_waits_for_less(policy: RetryPolicy, attempt: int, chance: float) -> None:
    assert next_delay(policy, attempt + 1, chance) >= next_delay(policy, attempt, chance)


@given(attempts, chances)
def test_twenty_percent_is_twenty_percent(attempt: int, chance: float) -> None:
    plain = next_delay(RetryPolicy(jitter="none"), attempt, chance)
    delay = next_delay(RetryPolicy(jitter="twenty_percent"), attempt, chance)
    assert plain * 0.8 - SECOND / 1000 <= delay <= plain * 1.2 + SECOND / 1000


def test_two_to_the_power_of_the_attempt_as_the_documents_have_it() -> None:
    policy = RetryPolicy(base=2 * SECOND, cap=1024 * SECOND, jitter="none")
    waits = [next_delay(policy, attempt, 0.5) / SECOND for attempt in range(1, 13)]
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024]


def test_a_fixed_delay_is_always_the_same() -> None:
    policy = RetryPolicy(backoff="fixed", base=300 * SECOND, jitter="none")
    assert {next_delay(policy, attempt, 0.3) for attempt in (1, 2, 50)} == {300 * SECOND}


@pytest.mark.parametrize(
    "fields",
    [{"max_attempts": 0}, {"base": timedelta(0)}, {"factor": 0.5}, {"base": 10 * SECOND, "cap": 5 * SECOND}],
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not valid: attempts from 1"):
        RetryPolicy(**fields)
