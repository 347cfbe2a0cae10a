"""Resolve what the template watches as far as a test needs: alarms by name, the dashboard as JSON.

References stay as Sub writes them: ${ArchiverFunction}, ${AWS::StackName}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.template import package, parameters_of, transform
from tests.support.template import ALARM, ROOT, SECRET, SWITCHES, Template, source, spread

PREFIX = "${AWS::StackName}-"
EXISTING = {"DatabaseSecretArn": SECRET}
COMBINATIONS: Mapping[str, Mapping[str, str]] = {
    "least": EXISTING,
    "silent": {**EXISTING, "RuleState": "DISABLED"},
    "pack": {**EXISTING, **SWITCHES},
    "all": {
        **EXISTING,
        **SWITCHES,
        "OperatorsEmail": "operators@example.com",
        "RunbookUrl": "https://docs.example.com/runbook",
    },
}
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Metric(NamedTuple):
    """Name a metric that is written or looked at."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Alarm:
    """Hold an alarm as deployed; its name lacks the stack's."""

    name: str
    description: str
    properties: Mapping[str, Any]

    @property
    def severity(self) -> str:
        return self.description.partition(".")[0].lower()

    @property
    def metrics(self) -> list[Metric]:
        """Return all that it looks at."""
        stats = [query["MetricStat"]["Metric"] for query in self.properties.get("Metrics", []) if "MetricStat" in query]
        return [_metric(one) for one in stats or [self.properties]]


@cache
def watched(combination: str = "all") -> Template:
    """Return the template with the parameters of one combination."""
    template = source()
    package(template, ROOT)
    parameters = parameters_of(template, COMBINATIONS[combination])
    return Template(spread(Decided(transform(template, parameters), parameters)))


def alarms(combination: str = "all") -> dict[str, Alarm]:
    """Return the alarms by name."""
    found = (
        Alarm(
            substituted(given["AlarmName"]).removeprefix(PREFIX),
            substituted(given["AlarmDescription"]),
            given,
        )
        for given in watched(combination).of(ALARM).values()
    )
    return {alarm.name: alarm for alarm in found}


def dashboards(combination: str = "all") -> dict[str, list[dict[str, Any]]]:
    """Return the widgets of each, by its name."""
    found = watched(combination).of("AWS::CloudWatch::Dashboard").values()
    return {
        substituted(one["DashboardName"]): json.loads(substituted(one["DashboardBody"]))["widgets"] for one in found
    }


def shown(widgets: list[dict[str, Any]]) -> Iterator[Metric]:
    """Yield the metrics that they show."""
    for widget in widgets:
        for line in widget["properties"]["metrics"]:
            namespace, name, *rest = [part for part in line if not isinstance(part, dict)]
            yield Metric(namespace, name, frozenset(zip(rest[::2], rest[1::2], strict=True)))


def substituted(value: Any) -> str:
    """Return a Sub with its own variables in their places; Ref and GetAtt as Sub would have them."""
    if not isinstance(value, dict):
        return str(value)
    [(function, argument)] = value.items()
    if function == "Fn::Sub" and isinstance(argument, list):
        text, variables = argument
        known = {name: substituted(given) for name, given in variables.items()}
        return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)
    if function == "Fn::Sub":
        return str(argument)
    return "${" + (".".join(argument) if function == "Fn::GetAtt" else str(argument)) + "}"


def _metric(given: Mapping[str, Any]) -> Metric:
    dimensions = frozenset((one["Name"], substituted(one["Value"])) for one in given.get("Dimensions", ()))
    return Metric(substituted(given["Namespace"]), given["MetricName"], dimensions)
