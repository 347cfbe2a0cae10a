"""Doctor judges the jobs by their health and statistics."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox_cli.doctor.jobs import judge_jobs

HEALTH: dict[str, Any] = {"status": "healthy", "open_dead_letters": 0, "failed_last_hour": 0, "alerts": []}
STATISTICS: dict[str, Any] = {
    "by_status": {"pending": 3, "queued": 0, "running": 1},
    "silent": 0,
    "longest_silent_seconds": None,
}


def test_healthy_jobs_are_one_finding() -> None:
    [found] = judge_jobs(HEALTH, STATISTICS)
    assert (found.verdict, found.detail) == ("ok", "3 pending, 0 queued, 1 running; no open dead letters")


@pytest.mark.parametrize(
    ("health", "statistics", "verdict", "detail"),
    [
        ({"open_dead_letters": 41}, {}, "warn", "41 open dead letters"),
        ({"open_dead_letters": 51, "status": "unhealthy"}, {}, "fail", "51 open dead letters"),
        ({"failed_last_hour": 1}, {}, "warn", "1 job failed in the last hour"),
        ({}, {"silent": 2, "longest_silent_seconds": 62}, "warn", "2 running jobs silent for up to 1 min 2 s"),
        (
            {"alerts": [{"name": "worker_down", "severity": "critical", "message": "gone", "advice": "look"}]},
            {},
            "fail",
            "worker_down: gone",
        ),
    ],
)
def test_each_fault_is_a_finding_with_advice(
    health: dict[str, Any], statistics: dict[str, Any], verdict: str, detail: str
) -> None:
    [found] = judge_jobs(HEALTH | health, STATISTICS | statistics)
    assert (found.verdict, found.detail) == (verdict, detail)
    assert found.advice
