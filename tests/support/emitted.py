"""Find the code's metrics by emitting them: each counted name goes through the emitter that it uses.

The stack is called ${AWS::StackName} here, so that what comes out compares with what the template says.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import cache

from signalbox.runtime.job_metrics import NAMES, count_dead_letters, write_metrics
from signalbox.runtime.metrics import TaskMetrics, write_line
from signalbox.stats.alerts import Readings
from signalbox.stats.figures import Figures
from signalbox.stats.gauges import Connections, read_off
from signalbox.stats.health import HealthSigns, PlaneHealth
from signalbox.stats.statistics import PlaneReport, Statistics
from tests.support.template import ROOT
from tests.support.watched import Metric

STACK = "${AWS::StackName}"
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
_CALL = re.compile(r"metrics\.count\(([^\n]*)")
_NAME = re.compile(r'"([A-Z][A-Za-z0-9]+)"')
_BEGUN = re.compile(r'f"([A-Z][A-Za-z]+)\{')
# What the names that are put together end in.
_ENDS = {"Verifications": ["Waiting", "Abandoned", "Unanswered"], "CalibrationCoefficients": ["Invalid", "Leapt"]}


@cache
def emitted() -> frozenset[Metric]:
    """Return all metrics with their dimensions."""
    out = io.StringIO()
    with redirect_stdout(out):
        metrics = TaskMetrics(STACK, "any_task")
        for name in sorted(counted_names()):
            metrics.count(name)
        metrics.write()
        write_metrics(STACK, {("any_type", execution): 1 for execution in NAMES}, 1, 1)
        write_line(STACK, "plane.measured", gauges())
        write_line(STACK, "database.unreachable", {"DatabaseUnreachable": 1})
        write_line(STACK, "request.counted", {"RequestsFailed": 1})
        write_line(
            STACK, "model.asked", {f"Model{name}": 1 for name in ("InputTokens", "OutputTokens", "CostMicroUsd")}
        )
        count_dead_letters(STACK, "critical", 1)
    return frozenset(metric for line in out.getvalue().splitlines() for metric in _metrics_of(json.loads(line)))


def counted_names() -> set[str]:
    """Return what tasks count: names that the code spells, and those that it puts together."""
    code = "".join(path.read_text("utf-8") for path in ROOT.glob("layers/*/*/**/*.py"))
    calls = _CALL.findall(code)
    names = {name for call in calls for name in _NAME.findall(call)}
    names |= {f"{begun}{end}" for call in calls for begun in _BEGUN.findall(call) for end in _ENDS[begun]}
    return names | set(re.findall(r'Verdict\.\w+: "(Calibration\w+)"', code))


def gauges() -> dict[str, float]:
    """Return the job plane's readings of every five minutes."""
    day = Statistics(NOON, NOON, "hour", None, None, Figures(), {}, {}, [])
    report = PlaneReport(PlaneHealth.HEALTHY, HealthSigns(0, 0, 0), Readings(), [], NOON)
    return read_off(day, report, Figures(), Figures(), Connections(1, 100))


def _metrics_of(line: dict[str, object]) -> Iterator[Metric]:
    told = line["_aws"]
    assert isinstance(told, dict)
    for directive in told["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            found = frozenset((name, str(line[name])) for name in dimensions)
            for metric in directive["Metrics"]:
                yield Metric(directive["Namespace"], metric["Name"], found)
