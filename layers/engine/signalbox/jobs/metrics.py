"""Metrics of jobs in the embedded format: a line for each job type of a batch, which is also the log's record of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from signalbox.metrics import NAMESPACE

if TYPE_CHECKING:
    from signalbox.jobs.gauges import LaneGauges, Measure

NAMES = {
    "completed": "JobsCompleted",
    "failed": "AttemptsFailed",
    "timeout": "AttemptsTimedOut",
    "cancelled": "JobsCancelled",
    "continued": "JobsContinued",
    "snoozed": "JobsSnoozed",
    "throttled": "JobsThrottled",
    "released": "JobsReleased",
}
UNITS: Mapping[Measure, MetricUnit] = {
    "count": MetricUnit.Count,
    "percent": MetricUnit.Percent,
    "seconds": MetricUnit.Seconds,
    "milliseconds": MetricUnit.Milliseconds,
}


def write_metrics(stack: str, counts: Mapping[tuple[str, str], int], messages: int, claimed: int) -> None:
    """By type and by stack, since an alarm can't add up over a dimension."""
    by_type: dict[str, dict[str, int]] = {}
    for (job_type, execution), number in counts.items():
        by_type.setdefault(job_type, {})[execution] = number
    for job_type, ended in by_type.items():
        metrics = _emitter(stack)
        metrics.add_dimensions(service=stack)
        metrics.add_dimension("job_type", job_type)
        for execution, number in ended.items():
            metrics.add_metric(NAMES[execution], MetricUnit.Count, number)
        metrics.add_metadata("message", "batch.ended")
        metrics.add_metadata("messages", messages)
        metrics.add_metadata("claimed", claimed)
        metrics.flush_metrics()


def count_dead_letters(stack: str, severity: str, number: int) -> None:
    """Those that the operators have just been told of, by severity, for alarms that some of it is worth."""
    metrics = _emitter(stack)
    metrics.add_dimensions(service=stack)
    metrics.add_dimension("severity", severity)
    metrics.add_metric("DeadLettersNew", MetricUnit.Count, number)
    metrics.add_metadata("message", "dead_letters.told")
    metrics.flush_metrics()


def write_plane(stack: str, gauges: Mapping[Measure, Mapping[str, float]]) -> None:
    """Of the stack alone: by task they would be the same, and be paid for twice."""
    metrics = _emitter(stack)
    for measure, found in gauges.items():
        for name, value in found.items():
            metrics.add_metric(name, UNITS[measure], value)
    metrics.add_metadata("message", "plane.measured")
    metrics.flush_metrics()


def write_lanes(stack: str, lanes: Mapping[str, LaneGauges]) -> None:
    """How many jobs of each lane wait and run, and for how long the first is due."""
    for lane, found in lanes.items():
        metrics = _emitter(stack)
        metrics.add_dimension("lane", lane)
        for name, number in found.jobs.items():
            metrics.add_metric(name, MetricUnit.Count, number)
        metrics.add_metric("OldestWaiting", MetricUnit.Seconds, found.oldest_seconds)
        metrics.add_metadata("message", "lane.measured")
        metrics.flush_metrics()


@cache
def _emitter(stack: str) -> EphemeralMetrics:
    return EphemeralMetrics(namespace=NAMESPACE, service=stack)
