"""Metrics in the embedded format: CloudWatch reads them out of the log, so that counting costs no call.

Each is given twice, for the stack and for the task, because an alarm can't add up over a dimension. The line that
carries a run's metrics is also the log's record of its end: one line a run, found by its ids like any other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

NAMESPACE = "Signalbox"


class TaskMetrics:
    """What one run counts for one task; written out once, when the run has ended."""

    def __init__(self, stack: str, task: str) -> None:
        self._stack, self._task = stack, task
        self._counted: list[tuple[str, MetricUnit, float]] = []
        self._event: dict[str, Any] = {}

    def count(self, name: str, value: float = 1) -> None:
        self._counted.append((name, MetricUnit.Count, value))

    def milliseconds(self, name: str, value: float) -> None:
        self._counted.append((name, MetricUnit.Milliseconds, value))

    def seconds(self, name: str, value: float) -> None:
        self._counted.append((name, MetricUnit.Seconds, value))

    def of(self, task: str) -> TaskMetrics:
        """Metrics that one task's run counts for another task."""
        return TaskMetrics(self._stack, task)

    def tell(self, event: str, **fields: Any) -> None:
        """Names the event that the line of metrics records."""
        self._event = {"message": event, **fields}

    def write(self) -> None:
        """Prints what was counted, if anything was, and starts anew."""
        if not self._counted:
            return
        metrics = _emitter(self._stack)
        metrics.add_dimensions(service=self._stack)
        metrics.add_dimension("task", self._task)
        for name, unit, value in self._counted:
            metrics.add_metric(name, unit, value)
        for name, value in self._event.items():
            metrics.add_metadata(name, value)
        metrics.flush_metrics()
        self._counted.clear()
        self._event = {}


@cache
def _emitter(stack: str) -> EphemeralMetrics:
    # Ephemeral: the usual kind mixes what is counted anywhere in the process, and a run may count for several tasks.
    return EphemeralMetrics(namespace=NAMESPACE, service=stack)
