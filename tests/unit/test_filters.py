"""Filters of dead letters, as an operator gives them."""

from __future__ import annotations

from signalbox.operate.filters import DeadLetterFilter


def test_one_status_of_dead_letters_is_a_list_of_one() -> None:
    assert DeadLetterFilter(status="pending").values["statuses"] == ["pending"]
    assert DeadLetterFilter().values["statuses"] is None
