"""Write metrics in the embedded format: CloudWatch reads them from the log, so that counting costs no call.

Each metric has the stack as its only dimension, since each set of dimensions is paid for as a metric of its own. There
are few: what alarms look at and the dashboard shows. Everything else is a field of the same line, for saved queries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NAMESPACE = "Signalbox"


def write_line(stack: str, event: str, counts: Mapping[str, float], **fields: Any) -> None:
    """Write one line of the log, from which CloudWatch also takes its counts."""
    if not counts:
        line = {"timestamp": datetime.now(UTC).isoformat(), "service": stack, "message": event, **fields}
        sys.stdout.write(json.dumps(line, separators=(",", ":"), default=str) + "\n")
        return
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    # Ephemeral: the usual kind mixes everything counted in the process, and a run may count for several tasks.
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=stack)
    for name, value in counts.items():
        metrics.add_metric(name, MetricUnit.Count, value)
    for name, value in {"message": event, **fields}.items():
        metrics.add_metadata(name, value)
    metrics.flush_metrics()


class TaskMetrics:
    """Collect what one run counts for one task, and write it once, when the run has ended."""

    def __init__(self, stack: str, task: str) -> None:
        self._stack, self._task = stack, task
        self._counts: dict[str, float] = {}
        self._event: dict[str, Any] = {}

    def count(self, name: str, value: float = 1) -> None:
        """Add to a count. A zero is not written, and so is not paid for."""
        if value:
            self._counts[name] = self._counts.get(name, 0) + value

    def of(self, task: str) -> TaskMetrics:
        """Return metrics that one task's run counts for another task."""
        return TaskMetrics(self._stack, task)

    def note(self, event: str, **fields: Any) -> None:
        """Name the event that the line records, and add fields to it."""
        self._event |= {"event": event, **fields}

    def write(self) -> None:
        """Print the counts and the event, if there are any, and reset both."""
        if not self._counts and not self._event:
            return
        event = self._event.pop("event", "task.counted")
        write_line(self._stack, event, self._counts, task=self._task, **self._event)
        self._counts, self._event = {}, {}
