"""CodeDeploy's part of a gradual deploy, played from the template: the alias's steps, alarms after each, the way back.

A step lasts a minute of made-up time, in which a test sends what it likes. What was invoked, and what the functions
wrote as metrics, is measured as CloudWatch would; then the template's own alarms are asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from local.conditions import Decided
from local.transform import package, parameters_of, transform
from tests.support.alarms import MINUTE, Metric, Series, state_of
from tests.support.template import ALARM, ALIAS, ROOT, VARIANTS, Template, referred, source

LIVE = "live"
GROUP = "AWS::CodeDeploy::DeploymentGroup"
_CONFIG = re.compile(r"(AllAtOnce|Canary(?P<canary>\d+)Percent\w+|Linear(?P<linear>\d+)Percent\w+)")

Figures = Callable[[], list[dict[str, Any]]]


@cache
def gradual_template(preference: str = "Linear10PercentEvery1Minute") -> Template:
    """The template as a deploy with that preference transforms it."""
    written = source()
    package(written, ROOT)
    parameters = parameters_of(written, {**VARIANTS["engine"], "DeploymentPreference": preference})
    return Template(Decided(transform(written, parameters), parameters).resources())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a deploy went: the weights that the new version had, and the alarms that stopped it."""

    weights: tuple[int, ...]
    alarms: tuple[str, ...] = ()

    @property
    def rolled_back(self) -> bool:
        return bool(self.alarms)


@dataclass(slots=True)
class Measured:
    """What CloudWatch would have, of one function. `names` says how the template writes what is deployed."""

    figures: Figures
    names: Mapping[str, str]
    series: Series = field(default_factory=Series)
    _before: dict[tuple[str, str, str], dict[str, int]] = field(default_factory=dict)
    _lines: int = 0

    def at(self, second: int, log: Iterable[str] = ()) -> None:
        """Take down what has come since the last time."""
        for one in self.figures():
            key = one["function"], one["qualifier"] or "", one["version"]
            before = self._before.get(key, {})
            now = {name: one.get(name, 0) for name in ("Invocations", "Errors")}
            if grown := now["Invocations"] - before.get("Invocations", 0):
                self._put("Invocations", key, second, grown)
                self._put("Errors", key, second, now["Errors"] - before.get("Errors", 0))
            self._before[key] = now
        lines = list(log)
        for metric, value in _embedded(lines[self._lines :]):
            spelled = frozenset((name, self._spell(worth)) for name, worth in metric.dimensions)
            self.series.put(Metric(metric.namespace, metric.name, spelled), second, value)
        self._lines = len(lines)

    def _put(self, name: str, key: tuple[str, str, str], second: int, value: float) -> None:
        """By function, by alias, and by the version that the alias came to: as Lambda has it."""
        function, qualifier, version = key
        dimensions = [("FunctionName", self._spell(function))]
        for more in (
            [],
            [("Resource", f"{self._spell(function)}:{qualifier}")],
            [("ExecutedVersion", self._spell(version))],
        ):
            dimensions = [*dimensions, *more]
            self.series.put(Metric("AWS/Lambda", name, frozenset(dimensions)), second, value)

    def _spell(self, value: str) -> str:
        return self.names.get(value, value)


@dataclass(frozen=True, slots=True)
class CodeDeploy:
    """Moves the alias of one function of the template, which is deployed under a name of the test's."""

    template: Template
    function: str  # its logical id
    name: str
    lambda_: Any

    @property
    def group(self) -> dict[str, Any]:
        """What the alias's own update policy names."""
        found = next(
            id_ for id_, one in self.template.of(ALIAS).items() if referred(one["FunctionName"]) == self.function
        )
        update = self.template.resources[found]["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        group: dict[str, Any] = self.template.of(GROUP)[referred(update["DeploymentGroupName"]) or ""]
        return group

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        named = [referred(one["Name"]) or "" for one in self.group["AlarmConfiguration"]["Alarms"]]
        return {name: self.template.of(ALARM)[name] for name in named}

    def names(self, old: str, new: str, stack: str = "") -> dict[str, str]:
        """How the template writes the deployed function and its versions."""
        alias = next(one for one in self.template.of(ALIAS).values() if referred(one["FunctionName"]) == self.function)
        version = f"${{{referred(alias['FunctionVersion'])}.Version}}"
        return {stack: "${AWS::StackName}", self.name: f"${{{self.function}}}", old: "the old one", new: version}

    def weights(self) -> Iterator[int]:
        """The percentages of the new version, by the group's configuration."""
        _, named = self.group["DeploymentConfigName"]["Fn::Sub"]
        found = _CONFIG.fullmatch(named["ConfigName"])
        assert found, named
        if found["linear"]:
            yield from range(int(found["linear"]), 100, int(found["linear"]))
        elif found["canary"]:
            yield int(found["canary"])
        yield 100

    def deploy(
        self,
        old: str,
        new: str,
        measured: Measured,
        traffic: Callable[[], None],
        log: Callable[[], Iterable[str]] = list,
    ) -> Ended:
        """Step by step, until the new version has everything or an alarm sounds."""
        measured.at(0, log())
        measured.series.values.clear()
        given: list[int] = []
        for minute, weight in zip(count(), self.weights(), strict=False):
            self._point(old, new, weight)
            given.append(weight)
            traffic()
            measured.at(minute * MINUTE, log())
            now = (minute + 1) * MINUTE
            sounding = [name for name, alarm in self.alarms.items() if state_of(alarm, measured.series, now) == "ALARM"]
            if sounding and "DEPLOYMENT_STOP_ON_ALARM" in self.group["AutoRollbackConfiguration"]["Events"]:
                self._point(old, new, 0)
                return Ended(tuple(given), tuple(sounding))
        return Ended(tuple(given))

    def _point(self, old: str, new: str, weight: int) -> None:
        shared = {new: weight / 100} if 0 < weight < 100 else {}
        self.lambda_.update_alias(
            FunctionName=self.name,
            Name=LIVE,
            FunctionVersion=new if weight == 100 else old,
            RoutingConfig={"AdditionalVersionWeights": shared},
        )


def _embedded(lines: Iterable[str]) -> Iterator[tuple[Metric, float]]:
    """The metrics in a log: each for each set of dimensions that the line has it for."""
    for line in lines:
        record = json.loads(line) if line.startswith("{") else {}
        for directive in record.get("_aws", {}).get("CloudWatchMetrics", []):
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, str(record[name])) for name in names)
                for metric in directive["Metrics"]:
                    yield (
                        Metric(directive["Namespace"], metric["Name"], dimensions),
                        sum(_values(record[metric["Name"]])),
                    )


def _values(given: Any) -> list[float]:
    return given if isinstance(given, list) else [given]
