"""Grow expressions at random: mostly well typed, of few and awkward literals, over a few facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from passports.rules.evaluate import RuleFact

NUMBERS = [0, -0.0, 1, 1.0, 2.5, 0.125, 2.675, -7, 0.1, 0.2, 1e21, 2**53 - 1, 1e308, -1e308, 5e-324, 1e-7, 12.5]
TEXTS = ["", "a", "b", "mass", "Zelle", "é", "\uffff", "\U0001f50b", "a\u0301", "1"]
NAMES = ["mass", "sku", "parts", "inner", "none"]
PRODUCT = {"sku": "BP-1", "mass": 40, "none": None, "parts": ["a", 1, 1.0, None, True], "inner": {"mass": 2.5}}
FACTS = [
    RuleFact("A", "\U0001f50b", {"mass": 12.5, "sku": "C-1", "inner": {"mass": 1e308}}),
    RuleFact("A", "\uffff", {"mass": 1, "sku": "C-2", "parts": [1, 2.5, 0.1]}),
    RuleFact("A", "a", {"mass": None, "inner": {"inner": {"mass": 1.0}}, "parts": []}),
    RuleFact("B", "a", {"mass": -0.0, "sku": "", "parts": [{"mass": 1}, {"mass": 1.0}, {"mass": "1"}]}),
    RuleFact("B", "b", {"mass": 7.25, "none": [None]}),
]
Grow = Callable[["Grower", int], Any]


class Grower:
    """Grow expressions that may name these values."""

    def __init__(self, random: Random, values: Sequence[str] = (), junk: float = 0.0) -> None:
        self.random, self.values, self.junk, self.has_item = random, values, junk, False

    def grow(self, wanted: str, depth: int) -> Any:
        """Grow an expression, nearly always of the wanted type, of at most so many arrays in one another."""
        if self.random.random() < self.junk:
            return self.random.choice(
                [{}, [], ["what", 1], ["not"], ["item"], [["add"], 1], ["round", 1, 10], ["get", 1]]
            )
        if self.random.random() < 0.04:
            wanted = self.random.choice([*_LITERALS])
        if depth == 0 or self.random.random() < 0.15:
            return self.random.choice(_LITERALS[wanted])
        return self.random.choice(_OPERATIONS[wanted])(self, depth - 1)

    def some(self, wanted: str, depth: int, least: int = 1) -> list[Any]:
        return [self.grow(wanted, depth) for _ in range(self.random.randint(least, 3))]

    def each(self, operator: str, wanted: str, depth: int) -> list[Any]:
        """Grow an operation for each element of a list; `item` is known in its second operand alone."""
        elements, outer = self.grow("list", depth), self.has_item
        self.has_item = True
        body = self.grow(wanted, depth)
        self.has_item = outer
        return [operator, elements, body]

    def known(self, depth: int) -> list[Any]:
        """Grow what may be of any type: a value, an item, or a member of the product, an item or a fact."""
        value = ["value", self.random.choice(self.values)] if self.values else ["product"]
        item = ["item"] if self.has_item else ["product"]
        fact = ["fact", self.random.choice("ABC"), self.random.choice(["a", "b", "\uffff"])]
        whole = self.random.choice([value, item, item, ["product"], fact])
        names = [self.random.choice(NAMES) for _ in range(self.random.randint(1, 2))]
        return ["get", whole, *names] if self.random.random() < 0.7 or depth == 0 else whole


def _of(operator: str, *wanted: str) -> Grow:
    return lambda grower, depth: [operator, *(grower.grow(one, depth) for one in wanted)]


def _many(operator: str, wanted: str, least: int = 1) -> Grow:
    return lambda grower, depth: [operator, *grower.some(wanted, depth, least)]


def _each(operator: str, wanted: str) -> Grow:
    return lambda grower, depth: grower.each(operator, wanted, depth)


def _shared(wanted: str) -> list[Grow]:
    """Return the operations that are of the type of their operands."""
    return [_of("if", "boolean", wanted, wanted), _many("coalesce", wanted), lambda grower, depth: grower.known(depth)]


_LITERALS: dict[str, list[Any]] = {
    "number": NUMBERS,
    "text": TEXTS,
    "boolean": [True, False],
    "null": [None],
    "list": [["list"], ["facts", "A"], ["facts", "B"], ["facts", "C"]],
}
_LITERALS["any"] = [*NUMBERS, *TEXTS, True, False, None]
_OPERATIONS: dict[str, list[Grow]] = {
    "number": [
        *(_many(operator, "number") for operator in ("add", "mul", "min", "max")),
        *(_of(operator, "number", "number") for operator in ("sub", "div")),
        _of("abs", "number"),
        _of("count", "list"),
        _of("length", "text"),
        lambda grower, depth: ["round", grower.grow("number", depth), grower.random.randint(0, 9)],
        lambda grower, depth: ["sum", grower.each("map", "number", depth)],
        *_shared("number"),
    ],
    "text": [_many("concat", "text"), *_shared("text")],
    "boolean": [
        _of("not", "boolean"),
        _many("and", "boolean"),
        _many("or", "boolean"),
        *(_of(operator, "any", "any") for operator in ("eq", "ne")),
        *(_of(operator, wanted, wanted) for operator in ("lt", "le", "gt", "ge") for wanted in ("number", "text")),
        _of("in", "any", "list"),
        _each("all", "boolean"),
        _each("any", "boolean"),
        *_shared("boolean"),
    ],
    "list": [
        _many("list", "any", 0),
        _each("map", "any"),
        _each("map", "number"),
        _each("filter", "boolean"),
        lambda grower, _: ["facts", grower.random.choice("ABC")],
        *_shared("list"),
    ],
    "null": [lambda grower, depth: grower.known(depth)],
}
_OPERATIONS["any"] = [
    lambda grower, depth: grower.known(depth),
    *(_shared("any")),
    *(_of("coalesce", wanted) for wanted in ("number", "text", "boolean", "list")),
]
