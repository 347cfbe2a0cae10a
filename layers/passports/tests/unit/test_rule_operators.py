"""Each operator, each of its errors, and what is not evaluated."""

from __future__ import annotations

import math
from typing import Any

import pytest

from passports.encoding.canonical import canonical
from passports.rules.evaluate import RuleError, RuleFact, evaluate
from signalbox import Permanent
from tests.support.rule_sources import error_of, rules_of, value_of

FACTS = [
    RuleFact("Battery", "\U0001f50b", {"mass": 3}),
    RuleFact("Battery", "\uffff", {"mass": 2, "maker": {"name": "Zelle", "none": None}}),
    RuleFact("Battery", "b", {"mass": 1, "parts": [1, "1"]}),
    RuleFact("Other", "b", None),
]
PRODUCT = {"sku": "BP-1", "": 0, "one": [1]}
CRASH = ["div", 1, 0]  # what must not be evaluated


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (["map", ["facts", "Battery"], ["get", ["item"], "mass"]], [1, 2, 3]),
        (["facts", "Unknown"], []),
        (["facts", "Other"], [None]),
        (["get", ["fact", "Battery", "b"], "mass"], 1),
        (["fact", "Battery", "c"], None),
        (["fact", "Other", "b"], None),
        (["product"], PRODUCT),
        (["get", ["product"], ""], 0),
        (["get", ["fact", "Battery", "\uffff"], "maker", "name"], "Zelle"),
        (["get", ["fact", "Battery", "\uffff"], "maker", "none", "name"], None),
        (["get", ["fact", "Battery", "b"], "parts", "0"], None),
        (["get", None, "a"], None),
        (["get", "text", "a"], None),
        (["not", True], False),
        (["abs", -2.5], 2.5),
        (["count", ["list", 1, None, "a"]], 3),
        (["length", "e\u0301\U0001f50b"], 3),
        (["sum", ["list"]], 0),
        (["sum", ["list", 0.1, 0.2, 0.3]], 0.6000000000000001),
        (["sum", ["list", 1, 1e16, -1e16]], 0),
        (["add", 1, 1e16, -1e16], 0),
        (["add", 0.1, 0.2], 0.30000000000000004),
        (["add", 2**53 - 1, 1, 1, 1], 2**53),
        (["mul", 2, 3, 0.5], 3),
        (["sub", 1, 3], -2),
        (["div", 1, 3], 1 / 3),
        (["min", 3, -1, 2], -1),
        (["max", 3, -1, 2], 3),
        (["round", 2.5, 0], 2),
        (["round", 3.5, 0], 4),
        (["round", -0.5, 0], 0),
        (["round", 2.675, 2], 2.67),
        (["round", 0.125, 2], 0.12),
        (["round", 1.0000000004, 9], 1.0),
        (["round", 1.7976931348623157e308, 9], 1.7976931348623157e308),
        (["concat", "a", "", "b"], "ab"),
        (["list"], []),
        (["filter", ["list", 1, 2, 3], ["gt", ["item"], 1]], [2, 3]),
        (["all", ["list"], CRASH], True),
        (["any", ["list"], CRASH], False),
        (["map", ["list", 1, 2], ["count", ["filter", ["list", 5, 6], ["eq", ["item"], 5]]]], [1, 1]),
        (
            ["map", ["list", 1, 2], ["list", ["map", ["list", ["item"]], ["add", ["item"], 1]], ["item"]]],
            [[[2], 1], [[3], 2]],
        ),
        (["map", ["list", 1, 2, 1], ["eq", ["list", ["item"]], ["get", ["product"], "one"]]], [True, False, True]),
        (["map", ["list", 1, 2, 1], ["in", 1, ["list", ["item"]]]], [True, False, True]),
        (["map", ["list", 1, 2, 1], ["sum", ["list", ["item"]]]], [1, 2, 1]),
        (["if", True, 1, CRASH], 1),
        (["if", False, CRASH, 2], 2),
        (["and", True, False, CRASH], False),
        (["or", False, True, CRASH], True),
        (["all", ["list", 1, 0, "a"], ["eq", ["div", ["item"], 1], 1]], False),
        (["any", ["list", 0, 1, "a"], ["eq", ["div", ["item"], 1], 1]], True),
        (["coalesce", None, 0, CRASH], 0),
        (["coalesce", None, None], None),
        (["eq", 1, 1.0], True),
        (["eq", 0, -0.0], True),
        (["eq", 1, True], False),
        (["eq", 0, False], False),
        (["eq", "1", 1], False),
        (["eq", None, False], False),
        (["eq", None, ["list"]], False),
        (["eq", ["list", 1, ["list"]], ["list", 1.0, ["list"]]], True),
        (["eq", ["list", 1, True], ["list", 1, 1]], False),
        (["eq", ["product"], ["list", ["product"]]], False),
        (["ne", "a", "a\u0301"], True),
        (["in", 1.0, ["list", "1", True, 1]], True),
        (["in", True, ["list", 1, "true"]], False),
        (["in", ["product"], ["list", ["product"]]], True),
        (["in", None, ["list"]], False),
        (["lt", "\uffff", "\U0001f50b"], True),
        (["le", "a", "a"], True),
        (["gt", "a", "Z"], True),
        (["ge", 1, 1.0], True),
        (["lt", 1, 1], False),
    ],
)
def test_expression_has_its_value(expression: Any, value: Any) -> None:
    found = value_of(expression, FACTS, PRODUCT)
    assert canonical(found) == canonical(value)
    assert type(found) in (int, float) or type(found) is type(value)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        *(
            ([operator, None], "TYPE_ERROR")
            for operator in ("not", "abs", "count", "sum", "length", "add", "mul", "min")
        ),
        *(([operator, 1], "TYPE_ERROR") for operator in ("not", "count", "sum", "length", "and", "or", "concat")),
        *(([operator, True], "TYPE_ERROR") for operator in ("abs", "add", "mul", "min", "max")),
        *(
            ([operator, 1, "1"], "TYPE_ERROR")
            for operator in ("lt", "le", "gt", "ge", "sub", "div", "add", "in", "max")
        ),
        *(([operator, "1", 1], "TYPE_ERROR") for operator in ("lt", "le", "gt", "ge", "sub", "div", "mul", "min")),
        *(([operator, None, None], "TYPE_ERROR") for operator in ("lt", "ge", "sub", "in")),
        *(([operator, True, False], "TYPE_ERROR") for operator in ("lt", "ge", "div")),
        *(([operator, "ab", True], "TYPE_ERROR") for operator in ("map", "filter", "all", "any")),
        *(([operator, ["list", 1], None], "TYPE_ERROR") for operator in ("filter", "all", "any")),
        (["count", "text"], "TYPE_ERROR"),
        (["length", ["list"]], "TYPE_ERROR"),
        (["sum", ["list", 1, "1"]], "TYPE_ERROR"),
        (["sum", ["list", True]], "TYPE_ERROR"),
        (["round", "1", 0], "TYPE_ERROR"),
        (["if", 1, 1, 1], "TYPE_ERROR"),
        (["if", None, 1, 1], "TYPE_ERROR"),
        (["and", True, 1], "TYPE_ERROR"),
        (["or", False, None], "TYPE_ERROR"),
        (["concat", "a", ["list"]], "TYPE_ERROR"),
        (["lt", ["list"], ["list"]], "TYPE_ERROR"),
        (["div", 1, 0], "DIVISION_BY_ZERO"),
        (["div", 0, -0.0], "DIVISION_BY_ZERO"),
        (["div", "a", 0], "TYPE_ERROR"),
        (["div", 1e308, 0.1], "NOT_FINITE"),
        (["add", 1e308, 1e308, -1e308], "NOT_FINITE"),
        (["sum", ["list", 1e308, 1e308, -1e308]], "NOT_FINITE"),
        (["mul", 1e308, 10, 0], "NOT_FINITE"),
        (["sub", 1e308, -1e308], "NOT_FINITE"),
        (["add", 1e308, 1e308, "a"], "TYPE_ERROR"),
        (["add", "a", CRASH], "DIVISION_BY_ZERO"),
    ],
)
def test_expression_has_its_error(expression: Any, kind: str) -> None:
    assert error_of(expression) == kind


def test_null_values_are_known_but_left_out() -> None:
    rules = rules_of({"a": None, "b": ["coalesce", ["value", "a"], 1]}, {"c": ["eq", ["value", "a"], None]})
    found = evaluate(rules, [], {})
    assert (found.values, found.failed) == ({"b": 1}, [])


def test_failed_checks_stand_in_their_order() -> None:
    found = evaluate(rules_of({}, {"z": False, "m": True, "a": ["not", True]}), [], {})
    assert found.failed == ["z", "a"]


@pytest.mark.parametrize(
    ("values", "checks", "message"),
    [
        ({"a": 1, "b": CRASH}, {"c": 1}, "RULE_ERROR: DIVISION_BY_ZERO in b: "),
        ({"a": 1}, {"c": False, "d": 1}, "RULE_ERROR: TYPE_ERROR in d: "),
        ({}, {"c": None}, "RULE_ERROR: TYPE_ERROR in c: "),
    ],
)
def test_error_names_its_kind_and_place(values: dict[str, Any], checks: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError, match=f"^{message}") as raised:
        evaluate(rules_of(values, checks), [], {})
    assert isinstance(raised.value, Permanent)
    assert f"{raised.value.kind} in {raised.value.name}" in message


def test_integers_beyond_doubles_are_doubles() -> None:
    facts = [RuleFact("Battery", "a", {"mass": 10**20 + 1})]
    mass = ["get", ["fact", "Battery", "a"], "mass"]
    assert value_of(["eq", mass, 1e20], facts) is True
    assert value_of(["list", ["lt", 1e20, mass], ["in", mass, ["list", 1e20]]], facts) == [False, True]
    assert math.isclose(value_of(["add", mass, 0], facts), 1e20)
