"""Metrics of jobs in the embedded format: a line for each job type of a batch, which is also the log's record of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from signalbox.jobs.job_type import Lane
from signalbox.metrics import NAMESPACE

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


def write_version_metrics(stack: str, function: str, version: str, counts: Mapping[tuple[str, str], int]) -> None:
    """By version and for all together, so that a new version can be told from the one that it takes over from."""
    if not counts:
        return
    metrics = _emitter(stack)
    metrics.add_dimensions(service=stack, function=function)
    metrics.add_dimension("function", function)
    metrics.add_dimension("version", version)
    metrics.add_metric("VersionAttempts", MetricUnit.Count, sum(counts.values()))
    failed = sum(number for (_, execution), number in counts.items() if execution in ("failed", "timeout"))
    metrics.add_metric("VersionFailures", MetricUnit.Count, failed)
    metrics.add_metadata("message", "version.measured")
    metrics.flush_metrics()


def count_dead_letters(stack: str, severity: str, number: int) -> None:
    """Those that the operators have just been told of, by severity, for alarms that some of it is worth."""
    metrics = _emitter(stack)
    metrics.add_dimensions(service=stack)
    metrics.add_dimension("severity", severity)
    metrics.add_metric("DeadLettersNew", MetricUnit.Count, number)
    metrics.add_metadata("message", "dead_letters.told")
    metrics.flush_metrics()


def write_depths(stack: str, live: Iterable[tuple[str, str, int]]) -> None:
    """How many jobs of each lane wait and run, given as (lane, status, number); lanes without any are told as well."""
    depths: dict[str, Counter[str]] = {lane: Counter() for lane in Lane}
    for lane, status, number in live:
        depths[lane][status] += number
    for lane, numbers in depths.items():
        metrics = _emitter(stack)
        metrics.add_dimension("lane", lane)
        for status in ("pending", "queued", "running", "paused"):
            metrics.add_metric(f"Jobs{status.capitalize()}", MetricUnit.Count, numbers[status])
        metrics.add_metadata("message", "lane.measured")
        metrics.flush_metrics()


@cache
def _emitter(stack: str) -> EphemeralMetrics:
    return EphemeralMetrics(namespace=NAMESPACE, service=stack)
