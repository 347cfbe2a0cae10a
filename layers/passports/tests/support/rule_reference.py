"""Evaluate rules a second time, by the contract's text alone: exact fractions, canonical bytes, and nothing remembered.

It is slow, recursive and short. Numbers are made of exact results, rounded once to the nearest double, and two values
are equal if they have one type and the same canonical bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import rfc8785

from passports.rules.evaluate import RuleFact
from passports.rules.language import Rules

EXACT = Context(prec=2000, Emax=10_000, Emin=-10_000)


class NoValue(Exception):
    """An expression has no value; the first argument is the kind of the error."""


@dataclass
class Reference:
    """Evaluate one set of rules."""

    facts: list[RuleFact]
    product: Any
    values: dict[str, Any] = field(default_factory=dict)
    evaluations: int = 0

    def outcome(self, rules: Rules) -> tuple[Any, ...]:
        """Return the canonical values and the failed checks, or the kind of the error and where it was."""
        name, failed = "", []
        try:
            for name, expression in rules.values:
                self.values[name] = self.value_of(expression, (), 1)
            for name, expression in rules.checks:
                if not typed(self.value_of(expression, (), 1), "boolean"):
                    failed.append(name)
        except NoValue as error:
            return (error.args[0], name)
        return bytes_of({name: value for name, value in self.values.items() if value is not None}), failed

    def value_of(self, expression: Any, items: tuple[Any, ...], nested: int) -> Any:
        self.evaluations += 1
        limit(self.evaluations <= 100_000)
        limit(not isinstance(expression, list) or nested <= 32)
        value = self.operation(expression, items, nested + 1) if isinstance(expression, list) else expression
        limit(not isinstance(value, str) or len([*value]) <= 65_536)
        limit(not isinstance(value, list) or len(value) <= 10_000)
        return value

    def operation(self, expression: list[Any], items: tuple[Any, ...], nested: int) -> Any:  # noqa: C901, PLR0911, PLR0912
        def now(one: Any) -> Any:
            return self.value_of(one, items, nested)

        def each(elements: Any, body: Any) -> Iterator[tuple[Any, Any]]:
            for one in typed(now(elements), "list"):
                yield one, self.value_of(body, (*items, one), nested)

        match expression:
            case ["facts", kind]:
                found = [fact for fact in self.facts if fact.type == kind]
                return [fact.payload for fact in sorted(found, key=lambda fact: fact.key.encode("utf-8"))]
            case ["fact", kind, key]:
                found = [fact for fact in self.facts if fact.type == kind and fact.key == key]
                return found[0].payload if found else None
            case ["product"]:
                return self.product
            case ["value", name]:
                return self.values[name]
            case ["item"]:
                return items[-1]
            case ["get", start, *names]:
                here = now(start)
                for name in names:
                    here = here[name] if kind_of(here) == "object" and name in here else None
                return here
            case ["if", condition, then, otherwise]:
                return now(then) if typed(now(condition), "boolean") else now(otherwise)
            case ["and", *operands]:
                return not any(not typed(now(one), "boolean") for one in operands)
            case ["or", *operands]:
                return any(typed(now(one), "boolean") for one in operands)
            case ["coalesce", *operands]:
                return next((value for value in map(now, operands) if value is not None), None)
            case ["map", elements, body]:
                return [value for _, value in each(elements, body)]
            case ["filter", elements, body]:
                return [one for one, value in each(elements, body) if typed(value, "boolean")]
            case ["all", elements, body]:
                return not any(not typed(value, "boolean") for _, value in each(elements, body))
            case ["any", elements, body]:
                return any(typed(value, "boolean") for _, value in each(elements, body))
            case ["round", number, digits]:
                step = Decimal(1).scaleb(-int(digits))
                exact = Decimal(double(now(number)))
                return float(exact.quantize(step, ROUND_HALF_EVEN, EXACT))
        return applied(expression[0], [now(one) for one in expression[1:]])


def applied(operator: str, operands: list[Any]) -> Any:  # noqa: C901, PLR0911
    """Return the result of an operator whose operands are all evaluated."""
    match operator, operands:
        case "list", _:
            return operands
        case "concat", _:
            parts = [typed(one, "text") for one in operands]
            limit(sum(map(len, parts)) <= 65_536)
            return "".join(parts)
        case "eq", [left, right]:
            return same(left, right)
        case "ne", [left, right]:
            return not same(left, right)
        case "in", [one, elements]:
            return any(same(one, other) for other in typed(elements, "list"))
        case "not", [one]:
            return not typed(one, "boolean")
        case "count", [one]:
            return len(typed(one, "list"))
        case "length", [one]:
            return len(typed(one, "text"))
        case "lt" | "le" | "gt" | "ge", [left, right]:
            return compared(operator, left, right)
    numbers = typed(operands[0], "list") if operator == "sum" else operands
    return computed(operator, [double(one) for one in numbers])


def compared(operator: str, left: Any, right: Any) -> bool:
    kind = kind_of(left)
    check(kind in ("number", "text") and kind_of(right) == kind, "TYPE_ERROR")
    first, second = ([float(ord(one)) for one in side] if kind == "text" else [double(side)] for side in (left, right))
    below, level = first < second, first == second
    return {"lt": below, "le": below or level, "gt": not below and not level, "ge": not below}[operator]


def computed(operator: str, numbers: list[float]) -> float:
    match operator:
        case "sum" | "add":
            total = 0.0
            for one in numbers:
                total = nearest(Fraction(total) + Fraction(one))
            return total
        case "mul":
            product = 1.0
            for one in numbers:
                product = nearest(Fraction(product) * Fraction(one))
            return product
        case "sub":
            return nearest(Fraction(numbers[0]) - Fraction(numbers[1]))
        case "div":
            check(numbers[1] != 0, "DIVISION_BY_ZERO")
            return nearest(Fraction(numbers[0]) / Fraction(numbers[1]))
        case "abs":
            return -numbers[0] if numbers[0] < 0 else numbers[0]
    return sorted(numbers)[0 if operator == "min" else -1]


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise NoValue("NOT_FINITE") from None


def kind_of(value: Any) -> str:
    if value is None or value is True or value is False:
        return "null" if value is None else "boolean"
    return next(name for name, types in KINDS.items() if isinstance(value, types))


KINDS: dict[str, Any] = {"number": (int, float), "text": str, "list": list, "object": dict}


def typed(value: Any, wanted: str) -> Any:
    check(kind_of(value) == wanted, "TYPE_ERROR")
    return value


def double(value: Any) -> float:
    return float(typed(value, "number"))


def bytes_of(value: Any) -> bytes:
    return rfc8785.dumps(value)


def same(left: Any, right: Any) -> bool:
    return kind_of(left) == kind_of(right) and bytes_of(left) == bytes_of(right)


def check(holds: bool, kind: str) -> None:
    if not holds:
        raise NoValue(kind)


def limit(holds: bool) -> None:
    check(holds, "LIMIT")
