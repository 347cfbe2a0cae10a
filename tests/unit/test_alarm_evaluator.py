"""The evaluator that the alarms are tried with judges as CloudWatch documents that it does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.alarms import Metric, Series, metrics_of, seconds_to_alarm, state_of, value_at, window_of

ERRORS, CALLS = Metric("AWS/Lambda", "Errors"), Metric("AWS/Lambda", "Invocations")


def alarm(**changed: Any) -> dict[str, Any]:
    return {
        "Namespace": "AWS/Lambda",
        "MetricName": "Errors",
        "Statistic": "Sum",
        "Period": 300,
        "EvaluationPeriods": 3,
        "DatapointsToAlarm": 2,
        "Threshold": 5,
        "ComparisonOperator": "GreaterThanThreshold",
        **changed,
    }


def math(expression: str) -> dict[str, Any]:
    base = {name: value for name, value in alarm().items() if name not in ("MetricName", "Statistic", "Period")}
    rate = {"Id": "rate", "Expression": expression, "ReturnData": True}
    return {**base, "Metrics": [_sum("errors", "Errors"), _sum("calls", "Invocations"), rate]}


def _sum(id_: str, name: str) -> dict[str, Any]:
    stat = {"Metric": {"Namespace": "AWS/Lambda", "MetricName": name}, "Period": 60, "Stat": "Sum"}
    return {"Id": id_, "MetricStat": stat, "ReturnData": False}


def measured(errors: list[float | None], calls: list[float | None] | None = None, every: int = 300) -> Series:
    """Oldest first; the last period ends at second 0."""
    series = Series()
    for metric, values in ((ERRORS, errors), (CALLS, calls or [])):
        for back, value in enumerate(reversed(values), 1):
            if value is not None:
                series.put(metric, -back * every, value)
    return series


@pytest.mark.parametrize(
    ("errors", "state"),
    [([0, 0, 0], "OK"), ([9, 0, 0], "OK"), ([9, 0, 9], "ALARM"), ([9, None, None], "OK"), ([5, 5, 5], "OK")],
)
def test_as_many_periods_must_breach_as_the_alarm_says(errors: list[float | None], state: str) -> None:
    assert state_of(alarm(TreatMissingData="notBreaching"), measured(errors), now=0) == state


@pytest.mark.parametrize(
    ("treated", "state"),
    [("breaching", "ALARM"), ("notBreaching", "OK"), ("missing", "INSUFFICIENT_DATA"), ("ignore", "before")],
)
def test_missing_data_are_what_the_alarm_takes_them_for(treated: str, state: str) -> None:
    assert state_of(alarm(TreatMissingData=treated), Series(), now=0, before="before") == state


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("100 * errors / calls", 25.0),
        ("IF(errors > 3, 100 * errors / calls, 0)", 0.0),
        ("IF(errors >= 3, 1, 0)", 1.0),
        ("MAX([errors, calls])", 12.0),
        ("SUM([errors, calls])", 15.0),
    ],
)
def test_expressions_are_calculated(expression: str, value: float) -> None:
    assert value_at(math(expression), measured([3], [12], every=60), end=0) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("errors + calls", None),
        ("FILL(errors, 0) + calls", 12.0),
        ("calls / FILL(errors, 0)", None),
        ("IF(errors > 3, 1, 0)", None),
        ("MAX([errors, calls])", 12.0),
    ],
)
def test_what_is_missing_makes_missing_what_is_calculated_from_it(expression: str, value: float | None) -> None:
    assert value_at(math(expression), measured([None], [12], every=60), end=0) == value


def test_a_percentile_is_the_value_that_so_many_do_not_exceed() -> None:
    series = Series({ERRORS: [(-second, float(second)) for second in range(1, 101)]})
    by_percentile = {**alarm(), "ExtendedStatistic": "p95"}
    del by_percentile["Statistic"]

    assert value_at(by_percentile, series, end=0) == 95


def test_it_says_after_how_long_an_alarm_rings_and_at_what_it_looks() -> None:
    series = Series({ERRORS: [(second, 9.0) for second in range(0, 3600, 60)]})

    assert seconds_to_alarm(alarm(TreatMissingData="notBreaching"), series, most=3600) == 360
    assert seconds_to_alarm(alarm(TreatMissingData="notBreaching"), Series(), most=3600) is None
    assert metrics_of(math("errors / calls")) == [ERRORS, CALLS]
    assert window_of(alarm()) == 900


@pytest.mark.parametrize("expression", ["RATE(errors)", "MAX(errors)", "'text'"])
def test_what_it_does_not_know_it_refuses(expression: str) -> None:
    with pytest.raises(ValueError, match=r"evaluator|array"):
        value_at(math(expression), measured([3], [12], every=60), end=0)
