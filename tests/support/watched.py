"""What the template watches, resolved as far as a test needs it: alarms by name, the dashboard as JSON, saved queries.

References to resources and to AWS's own values stay as Sub writes them: ${ArchiverFunction}, ${AWS::StackName}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from local.conditions import Decided
from local.transform import package, parameters_of, transform
from tests.support.alarms import Metric, written
from tests.support.template import ROOT, SECRET, TOPIC, Template, source

ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
PREFIX = "${AWS::StackName}-"
DEPLOYS = "deploy-"
_VARIABLE = re.compile(r"\$\{(\w+)\}")

# All that a condition about watching can make of the template.
AURORA = {"Database": "aurora"}
EXISTING = {"DatabaseSecretArn": SECRET}
PACK = {"ForecastsPack": "on"}
COMBINATIONS: Mapping[str, Mapping[str, str]] = {
    "least": EXISTING,
    "silent": {**EXISTING, "RuleState": "DISABLED"},
    "pack": {**EXISTING, **PACK},
    "aurora": {**AURORA, "DatabaseProxy": "off"},
    "proxy": {**AURORA, "DatabaseProxy": "on"},
    "all": {
        **AURORA,
        "DatabaseProxy": "on",
        **PACK,
        "OperatorsEmail": "operators@example.com",
        "RunbookUrl": "https://docs.example.com/runbook",
    },
    "topic": {**EXISTING, "OperatorsTopicArn": f"{TOPIC}:operators", "OperatorsEmail": "operators@example.com"},
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """As it is deployed; the name without the stack's."""

    id: str
    name: str
    description: str
    properties: Mapping[str, Any]

    @property
    def severity(self) -> str:
        return self.description.partition(".")[0].lower()

    @property
    def anchor(self) -> str:
        return self.description.rpartition("#")[2]


@cache
def watched(combination: str = "all") -> Template:
    """The template with the parameters of one combination."""
    template = source()
    package(template, ROOT)
    parameters = parameters_of(template, COMBINATIONS[combination])
    return Template(Decided(transform(template, parameters), parameters).resources())


def alarms(combination: str = "all", kind: str = ALARM) -> dict[str, Alarm]:
    """By name. Those that only a deploy asks are not among them: they tell nobody, and are tested with it."""
    found = _alarms(watched(combination), kind)
    return {alarm.name: alarm for alarm in found if not alarm.name.startswith(DEPLOYS)}


def dashboard(combination: str = "all") -> list[dict[str, Any]]:
    """The widgets."""
    [found] = watched(combination).of("AWS::CloudWatch::Dashboard").values()
    widgets: list[dict[str, Any]] = json.loads(substituted(found["DashboardBody"]))["widgets"]
    return widgets


def metrics_of_widget(widget: Mapping[str, Any]) -> Iterator[Metric]:
    """Those that it shows, or calculates with."""
    for line in widget["properties"].get("metrics", ()):
        if not isinstance(line[0], dict):
            namespace, name, *rest = [part for part in line if not isinstance(part, dict)]
            yield Metric(namespace, name, frozenset(zip(rest[::2], rest[1::2], strict=True)))


def filtered(template: Template | None = None) -> set[Metric]:
    """What metric filters make of the logs."""
    return {
        Metric(substituted(one["MetricNamespace"]), one["MetricName"])
        for properties in (template or watched()).of("AWS::Logs::MetricFilter").values()
        for one in properties["MetricTransformations"]
    }


def substituted(value: Any) -> str:
    """A Sub with its own variables in their places."""
    if not isinstance(value, dict) or not isinstance(value.get("Fn::Sub"), list):
        return written(value)
    text, variables = value["Fn::Sub"]
    known = {name: substituted(given) for name, given in variables.items()}
    return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)


def _alarms(template: Template, kind: str) -> Iterator[Alarm]:
    for id_, properties in template.of(kind).items():
        name = substituted(properties["AlarmName"]).removeprefix(PREFIX)
        yield Alarm(id_, name, substituted(properties.get("AlarmDescription", "")), properties)
