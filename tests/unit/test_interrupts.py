"""A request to stop is raised once, and never between a start and its record."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from signalbox_laptop.interrupts import Interrupts

REQUESTS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = {number: signal.getsignal(number) for number in REQUESTS}
    yield Interrupts()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("request_to_stop", REQUESTS)
def test_a_request_to_stop_interrupts(request_to_stop: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(request_to_stop)


@pytest.mark.usefixtures("interrupts")
def test_a_second_request_leaves_the_end_alone() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    for number in REQUESTS:
        signal.raise_signal(number)


def test_a_request_waits_until_a_beginning_is_whole(interrupts: Interrupts) -> None:
    begun: list[str] = []

    def begin() -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            begun.append("whole")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert begun == ["whole"]


def test_after_a_beginning_that_failed_requests_interrupt_again(interrupts: Interrupts) -> None:
    with pytest.raises(OSError, match="no thread"), interrupts.held():
        raise OSError("no thread")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_without_a_request_a_beginning_just_goes_on(interrupts: Interrupts) -> None:
    begun: list[str] = []
    with interrupts.held():
        begun.append("whole")
    assert begun == ["whole"]
