"""What a template deploys that costs something, or limits something: read from the file, with given parameters.

Nothing of AWS is asked and nothing is built: conditions are decided as the laptop's deploy decides them, and SAM's
globals are laid below each function. What has no place here costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from local.conditions import Decided
from local.errors import DeployFailed, ParameterRefused
from local.parameters import faults_of
from local.transform import Template, read_template
from signalbox.schedule import Schedule

# A week that begins on a Monday: what fires weekly fires once in it.
_MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_EACH_DAY = " * * ? *)"
# Of a mapping without a maximum of its own, in Lambda's standard mode.
_MOST_CONCURRENCY = 1250


@dataclass(frozen=True, slots=True)
class Function:
    """One function."""

    name: str
    memory_mb: int
    architecture: str
    timeout_seconds: int
    traced: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One schedule, by how often it fires and in how many of a day's hours."""

    task: str
    function: str
    fires_a_day: float
    hours_a_day: float


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue; `reuse_seconds` is 0 where no key of one's own encrypts it."""

    name: str
    visibility_seconds: int
    reuse_seconds: int


@dataclass(frozen=True, slots=True)
class Lane:
    """How a queue's messages come to a function."""

    queue: str
    function: str
    batch_size: int
    window_seconds: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class Stack:
    """All of it."""

    functions: Mapping[str, Function]
    rules: tuple[Rule, ...]
    queues: Mapping[str, Queue]
    mappings: tuple[Lane, ...]
    alarm_metrics: int
    composite_alarms: int
    dashboards: int
    metrics_from_logs: int
    keys: int
    secrets: int
    endpoint_zones: int  # of interface endpoints, one a subnet each
    least_acu: float | None  # of an Aurora that the stack makes
    instances: int  # of it
    proxied: bool
    events: str  # of a job that are published
    log_days: int

    def lane(self, name: str) -> Lane:
        """The mapping that reads one."""
        for one in self.mappings:
            if one.queue == f"{name.capitalize()}Lane":
                return one
        raise DeployFailed(f"the template has no mapping for the lane {name}: no queue {name.capitalize()}Lane is read")


def parameters_of(path: Path) -> dict[str, Any]:
    """Those that the template declares, by name."""
    return read_template(path).get("Parameters") or {}


def read_stack(path: Path, given: Mapping[str, str]) -> Stack:
    """As it would be deployed with these parameters; what has no default and is not given does not matter here."""
    template = read_template(path)
    declared = template.get("Parameters") or {}
    if faults := faults_of(declared, given):
        raise ParameterRefused("; ".join(faults))
    parameters = {name: str(given.get(name, one.get("Default", "given"))) for name, one in declared.items()}
    return _Reader(template, parameters).stack()


class _Reader:
    """One template with its conditions decided."""

    def __init__(self, template: Template, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters
        self._globals = template.get("Globals", {}).get("Function", {})
        self._resources = Decided(template, parameters).resources()

    def stack(self) -> Stack:
        functions = {name: self._function(name, own) for name, own in self._of("AWS::Serverless::Function")}
        return Stack(
            functions=functions,
            rules=tuple(self._rule(one, functions) for _, one in self._of("AWS::Events::Rule")),
            queues={name: self._queue(name, one) for name, one in self._of("AWS::SQS::Queue")},
            mappings=tuple(self._mapping(one, functions) for _, one in self._of("AWS::Lambda::EventSourceMapping")),
            alarm_metrics=sum(_alarm_metrics(one) for _, one in self._of("AWS::CloudWatch::Alarm")),
            composite_alarms=self._count("AWS::CloudWatch::CompositeAlarm"),
            dashboards=self._count("AWS::CloudWatch::Dashboard"),
            metrics_from_logs=len({name for _, one in self._of("AWS::Logs::MetricFilter") for name in _metrics(one)}),
            keys=self._count("AWS::KMS::Key"),
            secrets=self._count("AWS::SecretsManager::Secret") + self._given_secrets() + self._managed_secrets(),
            endpoint_zones=sum(self._zones(one) for _, one in self._of("AWS::EC2::VPCEndpoint")),
            least_acu=self._least_acu(),
            instances=self._count("AWS::RDS::DBInstance"),
            proxied=bool(self._count("AWS::RDS::DBProxy")),
            events=self._parameters.get("JobEvents", "all") if self._count("AWS::Events::EventBus") else "none",
            log_days=int(self._parameters.get("LogRetentionDays", "30")),
        )

    def _of(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        found = self._resources.items()
        yield from ((name, one.get("Properties", {})) for name, one in found if one["Type"] == kind)

    def _count(self, kind: str) -> int:
        return len(list(self._of(kind)))

    def _function(self, name: str, own: Mapping[str, Any]) -> Function:
        all_of = self._globals | own
        return Function(
            name=name,
            memory_mb=self._number(all_of.get("MemorySize", 128)),
            architecture=all_of.get("Architectures", ["x86_64"])[0],
            timeout_seconds=self._number(all_of.get("Timeout", 3)),
            traced=all_of.get("Tracing") == "Active",
        )

    def _rule(self, rule: Mapping[str, Any], functions: Mapping[str, Function]) -> Rule:
        disabled = self._value(rule.get("State", "ENABLED")) == "DISABLED"
        fires, hours = (0.0, 0.0) if disabled else _a_day(rule["ScheduleExpression"])
        function = _named(rule["Targets"][0]["Arn"], functions)
        return Rule(_text(rule["Name"]).rpartition("-")[2], function, fires, hours)

    def _queue(self, name: str, queue: Mapping[str, Any]) -> Queue:
        reuse = queue.get("KmsDataKeyReusePeriodSeconds", 300) if "KmsMasterKeyId" in queue else 0
        return Queue(name, self._number(queue.get("VisibilityTimeout", 30)), self._number(reuse))

    def _mapping(self, mapping: Mapping[str, Any], functions: Mapping[str, Function]) -> Lane:
        return Lane(
            queue=_named(mapping["EventSourceArn"], [name for name, _ in self._of("AWS::SQS::Queue")]),
            function=_named(mapping["FunctionName"], functions),
            batch_size=self._number(mapping.get("BatchSize", 10)),
            window_seconds=self._number(mapping.get("MaximumBatchingWindowInSeconds", 0)),
            concurrency=self._number(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", _MOST_CONCURRENCY)),
        )

    def _given_secrets(self) -> int:
        """The stack reads one at least that is not its own, unless it makes its database."""
        return 0 if self._least_acu() is not None else 1

    def _managed_secrets(self) -> int:
        """That RDS makes for a cluster."""
        return sum(bool(cluster.get("ManageMasterUserPassword")) for _, cluster in self._of("AWS::RDS::DBCluster"))

    def _zones(self, endpoint: Mapping[str, Any]) -> int:
        return len(endpoint.get("SubnetIds", [])) if endpoint.get("VpcEndpointType") == "Interface" else 0

    def _least_acu(self) -> float | None:
        for _, cluster in self._of("AWS::RDS::DBCluster"):
            return float(self._value(cluster["ServerlessV2ScalingConfiguration"]["MinCapacity"]))
        return None

    def _number(self, value: Any) -> int:
        return int(self._value(value))

    def _value(self, value: Any) -> str:
        return self._parameters[value["Ref"]] if isinstance(value, dict) and "Ref" in value else str(value)


@cache
def _a_day(expression: str) -> tuple[float, float]:
    """How often it fires, and in how many hours: on a Monday, unless the days differ."""
    days = 1 if expression.endswith(_EACH_DAY) else 7
    until = _MONDAY + timedelta(days=days) - _MINUTE
    fires = list(Schedule.parse(expression).between(_MONDAY - _MINUTE, until))
    return len(fires) / days, len({fire.replace(minute=0) for fire in fires}) / days


def _alarm_metrics(alarm: Mapping[str, Any]) -> int:
    """An alarm over an expression costs as much as each of its metrics."""
    return sum("MetricStat" in one for one in alarm["Metrics"]) if "Metrics" in alarm else 1


def _metrics(log_filter: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a filter makes; filters of several groups may make the same."""
    for one in log_filter["MetricTransformations"]:
        yield str(one["MetricNamespace"]), one["MetricName"]


def _named(reference: Any, names: Iterable[str]) -> str:
    """Which of these a reference means; one to a function's alias begins with the function's name."""
    found = reference.get("Ref") or reference.get("Fn::GetAtt", [""])[0]
    matching = [name for name in names if str(found).startswith(name)]
    if not matching:
        raise DeployFailed(f"the template refers to {found or reference}, which is none of {', '.join(names)}")
    return max(matching, key=len)


def _text(value: Any) -> str:
    return str(value["Fn::Sub"]) if isinstance(value, dict) else str(value)
