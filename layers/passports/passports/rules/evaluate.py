"""Evaluate rules over facts and a product. It ends for every input: what costs too much is a LIMIT.

Operands are evaluated from left to right before their operator is applied, but for those that it may not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any

from passports.rules.language import Rules
from passports.rules.memory import MOST_DEEP, Memory
from passports.rules.operators import APPLY, Fault, Kind, check_limits, check_type, round_to
from signalbox import Permanent

MOST_EVALUATIONS = 100_000
MOST_NESTED = 32  # arrays
# All values together. It is far above what a payload may have, and keeps values that share their parts from growing
# when they are written down.
MOST_SIZE = 2**24
_SIZE_OF_ONE = 8


@dataclass(frozen=True, slots=True)
class RuleFact:
    """Hold a fact as rules see it."""

    type: str
    key: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Hold the values that are not null, and the names of the checks that are false."""

    values: dict[str, Any]
    failed: list[str]


class RuleError(Permanent):
    """A value or a check can't be evaluated."""

    def __init__(self, kind: Kind, name: str, why: str) -> None:
        super().__init__(f"RULE_ERROR: {kind} in {name}: {why}")
        self.kind = kind
        self.name = name


def evaluate(rules: Rules, facts: Sequence[RuleFact], product: Mapping[str, Any]) -> Evaluation:
    """Evaluate all values and checks."""
    return Evaluator(facts, dict(product)).run(rules)


class Evaluator:
    """Own what the expressions of one compile or test case share: facts, values, and what they may still spend."""

    def __init__(self, facts: Sequence[RuleFact], product: Any, variables: Mapping[str, Any] | None = None) -> None:
        self._product = product
        self._variables = variables or {}
        self._payloads = {(fact.type, fact.key): fact.payload for fact in facts}
        self._lists: dict[str, list[Any]] = {}
        for fact in sorted(facts, key=lambda fact: fact.key):  # code points and UTF-8 have one order
            self._lists.setdefault(fact.type, []).append(fact.payload)
        self._values: dict[str, Any] = {}
        self._item: Any = None
        self._memory = Memory()
        self.evaluations = 0
        self._size = 0

    def run(self, rules: Rules) -> Evaluation:
        for name, expression in rules.values:
            self._values[name] = self._name_faults(name, self._value, expression)
        values = {name: value for name, value in self._values.items() if value is not None}
        return Evaluation(values, [name for name, expression in rules.checks if not self.is_true(name, expression)])

    def is_true(self, name: str, expression: Any) -> bool:
        """Evaluate a condition, which is called by this name in an error."""
        return bool(self._name_faults(name, self._condition, expression, 1))

    def are_equal(self, name: str, left: Any, right: Any) -> bool:
        """Compare a value of this name with another one."""
        return bool(self._name_faults(name, self._same, left, right))

    def _name_faults(self, name: str, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except Fault as fault:
            raise RuleError(fault.kind, name, str(fault)) from None

    def _value(self, expression: Any) -> Any:
        value = self._evaluate(expression, 1)
        self._add_size(value)
        return value

    def _add_size(self, value: Any) -> None:
        left = [(value, 0)]
        while left:
            one, depth = left.pop()
            self._size += _SIZE_OF_ONE + (len(one) if isinstance(one, str) else 0)
            if self._size > MOST_SIZE or depth > MOST_DEEP:
                raise Fault("LIMIT", f"the values are larger than {MOST_SIZE:,} or nested more than {MOST_DEEP} deep")
            if isinstance(one, dict):
                self._size += sum(map(len, one))
                left += [(inner, depth + 1) for inner in one.values()]
            elif isinstance(one, list):
                left += [(inner, depth + 1) for inner in one]

    def _evaluate(self, expression: Any, nested: int) -> Any:
        self.evaluations += 1
        if self.evaluations > MOST_EVALUATIONS:
            raise Fault("LIMIT", f"more than {MOST_EVALUATIONS:,} expressions are evaluated")
        if not isinstance(expression, list):
            return check_limits(expression)
        if nested > MOST_NESTED:
            raise Fault("LIMIT", f"more than {MOST_NESTED} arrays are nested")
        operator = expression[0]
        if (own := _OWN.get(operator)) is not None:
            return check_limits(own(self, expression, nested + 1))
        return check_limits(APPLY[operator](self._operands(expression, nested + 1)))

    def _operands(self, operation: list[Any], nested: int) -> list[Any]:
        return [self._evaluate(one, nested) for one in islice(operation, 1, None)]

    def _condition(self, expression: Any, nested: int) -> bool:
        return bool(check_type(self._evaluate(expression, nested), "boolean"))

    # ---- what there is

    def _facts(self, operation: list[Any], _: int) -> list[Any]:
        return self._lists.get(operation[1], [])

    def _fact(self, operation: list[Any], _: int) -> Any:
        return self._payloads.get((operation[1], operation[2]))

    def _known_product(self, _: list[Any], __: int) -> Any:
        return self._product

    def _known_value(self, operation: list[Any], _: int) -> Any:
        return self._values[operation[1]]

    def _known_item(self, _: list[Any], __: int) -> Any:
        return self._item

    def _known_variable(self, operation: list[Any], _: int) -> Any:
        return self._variables[operation[1]]

    def _get(self, operation: list[Any], nested: int) -> Any:
        found = self._evaluate(operation[1], nested)
        for name in islice(operation, 2, None):
            found = found.get(name) if isinstance(found, dict) else None
            if found is None:
                return None
        return found

    # ---- what is made of operands that are all evaluated

    def _eq(self, operation: list[Any], nested: int) -> bool:
        return self._same(*self._operands(operation, nested))

    def _same(self, left: Any, right: Any) -> bool:
        return bool(self._memory.key(left) == self._memory.key(right))

    def _ne(self, operation: list[Any], nested: int) -> bool:
        return not self._eq(operation, nested)

    def _in(self, operation: list[Any], nested: int) -> bool:
        value, elements = self._operands(operation, nested)
        return self._memory.is_in(value, check_type(elements, "list"))

    def _sum(self, operation: list[Any], nested: int) -> float:
        return self._memory.total(self._list(operation, nested))

    def _round(self, operation: list[Any], nested: int) -> float:
        return round_to(self._evaluate(operation[1], nested), operation[2])

    # ---- what stops once it is decided

    def _if(self, operation: list[Any], nested: int) -> Any:
        return self._evaluate(operation[2 if self._condition(operation[1], nested) else 3], nested)

    def _and(self, operation: list[Any], nested: int) -> bool:
        return all(self._condition(one, nested) for one in islice(operation, 1, None))

    def _or(self, operation: list[Any], nested: int) -> bool:
        return any(self._condition(one, nested) for one in islice(operation, 1, None))

    def _coalesce(self, operation: list[Any], nested: int) -> Any:
        for one in islice(operation, 1, None):
            if (value := self._evaluate(one, nested)) is not None:
                return value
        return None

    # ---- what is done for each element

    def _map(self, operation: list[Any], nested: int) -> list[Any]:
        return self._each(self._list(operation, nested), operation[2], nested, self._evaluate)

    def _filter(self, operation: list[Any], nested: int) -> list[Any]:
        elements = self._list(operation, nested)
        return list(compress(elements, self._each(elements, operation[2], nested, self._condition)))

    def _all(self, operation: list[Any], nested: int) -> bool:
        return all(self._each(self._list(operation, nested), operation[2], nested, self._condition, until=False))

    def _any(self, operation: list[Any], nested: int) -> bool:
        return any(self._each(self._list(operation, nested), operation[2], nested, self._condition, until=True))

    def _list(self, operation: list[Any], nested: int) -> list[Any]:
        """Return the first operand, which is a list."""
        elements: list[Any] = check_type(self._evaluate(operation[1], nested), "list")
        return elements

    def _each(
        self, elements: list[Any], expression: Any, nested: int, evaluate: Callable[[Any, int], Any], until: Any = ...
    ) -> list[Any]:
        """Evaluate the expression for each item, until a result is the one that decides."""
        outer, results = self._item, []
        for item in elements:
            self._item = item
            results.append(evaluate(expression, nested))
            if results[-1] is until:
                break
        self._item = outer
        return results


# Operators that do more than to apply a function to their operands.
_OWN: dict[str, Callable[[Evaluator, list[Any], int], Any]] = {
    "facts": Evaluator._facts,
    "fact": Evaluator._fact,
    "product": Evaluator._known_product,
    "value": Evaluator._known_value,
    "item": Evaluator._known_item,
    "var": Evaluator._known_variable,
    "get": Evaluator._get,
    "eq": Evaluator._eq,
    "ne": Evaluator._ne,
    "in": Evaluator._in,
    "sum": Evaluator._sum,
    "round": Evaluator._round,
    "if": Evaluator._if,
    "and": Evaluator._and,
    "or": Evaluator._or,
    "coalesce": Evaluator._coalesce,
    "map": Evaluator._map,
    "filter": Evaluator._filter,
    "all": Evaluator._all,
    "any": Evaluator._any,
}
