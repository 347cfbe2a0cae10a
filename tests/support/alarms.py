"""CloudWatch's evaluation of alarms over series that a test makes up: statistics, metric math, M of N, missing data.

It takes an alarm's properties as the template has them, so that what is tried is what is deployed. It leaves out what
CloudWatch does beyond that: periods are aligned to the moment of the evaluation, and late data never come.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

Properties = Mapping[str, Any]
MINUTE = 60

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Average": lambda values: sum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
}
_FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {"SUM": sum, "MAX": max, "MIN": min}
_OPERATORS: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric is told apart by. A value of a dimension is written as the template has it: ${AWS::StackName}."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class Series:
    """What has been measured, second by second since any moment. What nothing was measured of is missing."""

    values: dict[Metric, list[tuple[int, float]]] = field(default_factory=dict)

    def put(self, metric: Metric, at: int, value: float) -> None:
        self.values.setdefault(metric, []).append((at, value))

    def between(self, metric: Metric, start: int, end: int) -> list[float]:
        return [value for at, value in self.values.get(metric, ()) if start <= at < end]


def written(value: Any) -> str:
    """A value of the template as text: Ref and GetAtt as Sub would have them."""
    if isinstance(value, dict):
        [(function, argument)] = value.items()
        if function == "Fn::GetAtt":
            return "${" + ".".join(argument) + "}"
        if function in ("Ref", "Fn::Sub"):
            return str(argument) if function == "Fn::Sub" else "${" + str(argument) + "}"
    return str(value)


def metrics_of(alarm: Properties) -> list[Metric]:
    """All that the alarm looks at."""
    return [_metric(query["MetricStat"]["Metric"]) for query in _queries(alarm) if "MetricStat" in query]


def window_of(alarm: Properties) -> int:
    """The seconds that one evaluation looks back."""
    return _period(alarm) * int(alarm["EvaluationPeriods"])


def state_of(alarm: Properties, series: Series, now: int, before: str = "INSUFFICIENT_DATA") -> str:
    """OK, ALARM or INSUFFICIENT_DATA; `before` is the state until then, which ignored data keep."""
    periods = [value_at(alarm, series, now - _period(alarm) * back) for back in range(int(alarm["EvaluationPeriods"]))]
    missing = alarm.get("TreatMissingData", "missing")
    if all(value is None for value in periods) and missing in ("missing", "ignore"):
        return before if missing == "ignore" else "INSUFFICIENT_DATA"
    compare = _COMPARISONS[alarm["ComparisonOperator"]]
    threshold = float(alarm["Threshold"])
    breaching = [missing == "breaching" if value is None else compare(value, threshold) for value in periods]
    return "ALARM" if sum(breaching) >= int(alarm.get("DatapointsToAlarm", len(periods))) else "OK"


def value_at(alarm: Properties, series: Series, end: int) -> float | None:
    """What the period that ends then comes to; None where it is missing."""
    queries = _queries(alarm)
    [wanted] = [query for query in queries if query.get("ReturnData", True)]
    return _Calculation(queries, series, end).result(wanted["Id"])


def seconds_to_alarm(alarm: Properties, series: Series, most: int) -> int | None:
    """After how long it is in alarm, looked at each minute (of long periods, less often), from second 0 on."""
    step = max(MINUTE, _period(alarm) // 15)
    return next((now for now in range(0, most + 1, step) if state_of(alarm, series, now) == "ALARM"), None)


def _metric(given: Properties) -> Metric:
    dimensions = frozenset((one["Name"], written(one["Value"])) for one in given.get("Dimensions", ()))
    return Metric(written(given["Namespace"]), given["MetricName"], dimensions)


def _queries(alarm: Properties) -> list[dict[str, Any]]:
    """An alarm on one metric is one with one query."""
    if "Metrics" in alarm:
        return list(alarm["Metrics"])
    statistic = alarm.get("ExtendedStatistic") or alarm["Statistic"]
    stat = {"Metric": alarm, "Period": alarm["Period"], "Stat": statistic}
    return [{"Id": "only", "MetricStat": stat, "ReturnData": True}]


def _period(alarm: Properties) -> int:
    [period] = {int(query["MetricStat"]["Period"]) for query in _queries(alarm) if "MetricStat" in query}
    return period


@dataclass(frozen=True, slots=True)
class _Calculation:
    queries: Sequence[Mapping[str, Any]]
    series: Series
    end: int

    def result(self, id_: str) -> float | None:
        [query] = [query for query in self.queries if query["Id"] == id_]
        if "Expression" in query:
            return self._of(ast.parse(query["Expression"].strip(), mode="eval").body)
        stat = query["MetricStat"]
        period = int(stat["Period"])
        values = self.series.between(_metric(stat["Metric"]), self.end - period, self.end)
        return _statistic(stat["Stat"], values) if values else None

    def _of(self, node: ast.AST) -> float | None:
        match node:
            case ast.Constant(value=float() | int() as value):
                return float(value)
            case ast.Name(id=id_):
                return self.result(id_)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _divide(self._of(left), self._of(right))
            case ast.BinOp(left=left, op=how, right=right):
                return _apply(how, self._of(left), self._of(right))
            case ast.Compare(left=left, ops=[how], comparators=[right]):
                return _apply(how, self._of(left), self._of(right))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(function, arguments)
        raise ValueError(
            f"this evaluator does not know {ast.dump(node)}: teach it, or write the expression another way"
        )

    def _call(self, function: str, arguments: Sequence[ast.AST]) -> float | None:
        if function == "IF":
            chosen = self._of(arguments[0])
            return None if chosen is None else self._of(arguments[1] if chosen else arguments[2])
        if function == "FILL":
            value = self._of(arguments[0])
            return self._of(arguments[1]) if value is None else value
        values = [value for value in map(self._of, _members(arguments)) if value is not None]
        if function in _FOLDS:
            return float(_FOLDS[function](values)) if values else None
        raise ValueError(f"this evaluator does not know the function {function}: teach it")


def _members(arguments: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Of an array of series."""
    [array] = arguments
    if not isinstance(array, ast.List):
        raise ValueError("over one series these functions give a number for all time: give them an array")
    yield from array.elts


def _apply(how: ast.AST, left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else float(_OPERATORS[type(how)](left, right))


def _divide(left: float | None, right: float | None) -> float | None:
    return None if left is None or not right else left / right


def _statistic(name: str, values: Sequence[float]) -> float:
    if name in _STATISTICS:
        return float(_STATISTICS[name](values))
    rank = ceil(float(name.removeprefix("p")) / 100 * len(values))
    return sorted(values)[max(0, rank - 1)]
