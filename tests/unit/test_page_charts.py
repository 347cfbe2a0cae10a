"""The shapes of the charts on the pages."""

from __future__ import annotations

import pytest

from signalbox.pages.charts import bars, line, nice_span
from signalbox.pages.render import show_duration


def test_bars_are_scaled_to_the_highest_and_leave_out_what_is_empty() -> None:
    assert bars([(3, 1), (0, 0), (1, 1)]) == [(0.0, 170.0, 75.0, 25.0), (400.0, 170.0, 25.0, 25.0)]
    assert bars([]) == bars([(0, 0)]) == []


def test_line_is_broken_where_a_value_is_missing() -> None:
    assert line([10, 5, None, 10], 10) == "M75.0 0.0h0.01L225.0 50.0M525.0 0.0h0.01"


@pytest.mark.parametrize(("seconds", "span"), [(0, 1), (1.5, 2), (61, 120), (86400, 86400), (86401, 172800)])
def test_axis_of_a_job_that_goes_on_grows_in_steps(seconds: float, span: float) -> None:
    assert nice_span(seconds) == span


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(None, "–"), (0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (60_000, "1 min"), (3_725_000, "1 h 2 min"),
     (86_400_000, "24 h"), (180_000_000, "2 d 2 h")],
)  # fmt: skip
def test_durations_have_two_units_at_most(milliseconds: float | None, text: str) -> None:
    assert show_duration(milliseconds) == text
