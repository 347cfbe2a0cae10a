"""Each of the six rules fires at its threshold and not before, and says what to do."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox.stats.alerts import RULES, Readings, alerts


def names(**readings: Any) -> list[str]:
    return [alert.name for alert in alerts(Readings(**readings))]


def test_with_nothing_the_matter_nobody_is_called() -> None:
    assert names() == []


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ({"waiting": 1000}, {"waiting": 1001}, ["high_queue_depth"]),
        ({"waiting": 1001}, {"waiting": 5001}, ["critical_queue_depth"]),
        ({"silent_workers": 0}, {"silent_workers": 1}, ["worker_down"]),
        ({"standing_lanes": ()}, {"standing_lanes": ("high",)}, ["worker_down"]),
        ({"completed": 91, "failed": 10}, {"completed": 90, "failed": 11}, ["high_failure_rate"]),
        ({"completed": 900, "failed": 100}, {"completed": 899, "failed": 101}, ["high_failure_rate"]),
        ({"completed": 0, "failed": 100}, {"completed": 0, "failed": 101}, ["high_failure_rate"]),
        ({"pending_dead_letters": 50}, {"pending_dead_letters": 51}, ["dlq_accumulation"]),
        ({"p95_ms": 60_000}, {"p95_ms": 60_001}, ["slow_jobs"]),
        ({"p95_ms": None}, {"p95_ms": 90_000}, ["slow_jobs"]),
    ],
)
def test_a_rule_calls_above_its_threshold(below: dict[str, Any], above: dict[str, Any], expected: list[str]) -> None:
    assert [name for name in names(**above) if name not in names(**below)] == expected


def test_what_is_critical_calls_as_a_warning_too() -> None:
    assert names(waiting=5001) == ["high_queue_depth", "critical_queue_depth"]
    assert [alert.severity for alert in alerts(Readings(waiting=5001))] == ["warning", "critical"]


def test_an_alert_says_how_much_and_what_to_do() -> None:
    [alert] = alerts(Readings(completed=300, failed=100))
    assert alert.message == "100 of 400 attempts failed, more than 10 %"
    assert alert.advice.startswith("check the failures by type")
    [down] = alerts(Readings(silent_workers=2, standing_lanes=("high", "low")))
    assert "2 workers" in down.message
    assert "high, low" in down.message


def test_the_rules_are_the_six_of_the_architecture() -> None:
    assert {rule.name: rule.severity for rule in RULES} == {
        "high_queue_depth": "warning",
        "critical_queue_depth": "critical",
        "worker_down": "critical",
        "high_failure_rate": "warning",
        "dlq_accumulation": "warning",
        "slow_jobs": "warning",
    }
    assert all(rule.advice for rule in RULES)
