"""The breaker opens after failures in a row, lets one probe through, and closes with the first success."""

from __future__ import annotations

from signalbox.job_types.webhooks.breaker import FAILURES_IN_A_ROW, WAIT_SECONDS, Breaker


class Clock:
    """Move only by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def failing(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES_IN_A_ROW):
        assert breaker.wait_for("a") == 0
        breaker.note_failure("a")
    return breaker


def test_receiver_is_left_alone_after_failures_in_a_row() -> None:
    breaker = failing(Clock())
    assert breaker.wait_for("a") == WAIT_SECONDS
    assert breaker.wait_for("b") == 0


def test_success_in_between_resets_the_count() -> None:
    breaker = Breaker(Clock())
    for _ in range(3 * FAILURES_IN_A_ROW):
        breaker.note_failure("a")
        breaker.note_success("a")
    assert breaker.wait_for("a") == 0


def test_one_delivery_probes_and_the_others_wait() -> None:
    clock = Clock()
    breaker = failing(clock)
    clock.now += WAIT_SECONDS
    assert [breaker.wait_for("a") for _ in range(3)] == [0, WAIT_SECONDS, WAIT_SECONDS]
    breaker.note_success("a")
    assert breaker.wait_for("a") == 0
