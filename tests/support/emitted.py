"""The metrics that the code emits, found by letting it: each name that it counts goes through the emitter that it uses.

The stack is called ${AWS::StackName} here, so that what comes out compares with what the template says.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import cache
from typing import get_args

from forecasts.tasks import TASKS as FORECASTS_TASKS
from signalbox.jobs.alerts import Readings
from signalbox.jobs.figures import Figures
from signalbox.jobs.gauges import Connections, Measure, read_off, read_off_lanes
from signalbox.jobs.health import PlaneHealth, Signs
from signalbox.jobs.histogram import BUCKETS
from signalbox.jobs.job_type import Severity
from signalbox.jobs.metrics import NAMES, count_dead_letters, write_lanes, write_metrics, write_plane
from signalbox.jobs.statistics import PlaneReport, Statistics
from signalbox.ledger import RunStatus
from signalbox.metrics import TaskMetrics
from signalbox.packs import registry_of
from tests.support.alarms import Metric
from tests.support.template import ROOT

STACK = "${AWS::StackName}"
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
_CALL = re.compile(r"metrics\.(?:count|percent|seconds|milliseconds)\(([^\n]*)")
_NAME = re.compile(r'"([A-Z][A-Za-z0-9]+)"')
_BEGUN = re.compile(r'f"([A-Z][A-Za-z]+)\{')
# What the names that are put together end in.
_ENDS = {
    "Runs": [status.capitalize() for status in RunStatus],
    "Verifications": ["Waiting", "Abandoned", "Unanswered"],
    "CalibrationCoefficients": ["Invalid", "Leapt"],
}


@cache
def emitted() -> frozenset[Metric]:
    """All, with each set of dimensions that they have."""
    out = io.StringIO()
    with redirect_stdout(out):
        for task in {task.name for task in (*registry_of([]), *FORECASTS_TASKS)}:
            _count_for(task)
        write_metrics(STACK, {("any_type", execution): 1 for execution in NAMES}, 1, 1)
        write_plane(STACK, _gauges())
        write_lanes(STACK, read_off_lanes([], NOON))
        for severity in get_args(Severity):
            count_dead_letters(STACK, severity, 1)
    return frozenset(metric for line in out.getvalue().splitlines() for metric in _metrics_of(json.loads(line)))


def counted_names() -> set[str]:
    """By tasks: those that the code spells, and those that it puts together."""
    code = "".join(path.read_text("utf-8") for path in ROOT.glob("layers/*/*/**/*.py"))
    calls = _CALL.findall(code)
    names = {name for call in calls for name in _NAME.findall(call)}
    names |= {f"{begun}{end}" for call in calls for begun in _BEGUN.findall(call) for end in _ENDS[begun]}
    return names | set(re.findall(r'Verdict\.\w+: "(Calibration\w+)"', code))


def gauged_names() -> set[str]:
    """Those that are read off the job plane every five minutes."""
    return {name for gauges in _gauges().values() for name in gauges}


def _count_for(task: str) -> None:
    metrics = TaskMetrics(STACK, task)
    for name in sorted(counted_names()):
        metrics.count(name)
    metrics.write()


def _gauges() -> dict[Measure, Mapping[str, float]]:
    day = Statistics(NOON, NOON, "hour", None, None, Figures(), {}, {}, [])
    report = PlaneReport(PlaneHealth.HEALTHY, Signs(0, 0, 0), Readings(), [], NOON)
    lately = Figures(durations=(1,) * BUCKETS, most_ms=1)
    return read_off(day, report, lately, Connections(1, 100))


def _metrics_of(line: dict[str, object]) -> Iterator[Metric]:
    told = line["_aws"]
    assert isinstance(told, dict)
    for directive in told["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            found = frozenset((name, str(line[name])) for name in dimensions)
            for metric in directive["Metrics"]:
                yield Metric(directive["Namespace"], metric["Name"], found)
