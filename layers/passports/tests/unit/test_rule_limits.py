"""Rules end for every input: each limit holds to the last one, and shared parts cost nothing twice."""

from __future__ import annotations

import time
from typing import Any

import pytest

from passports.rules.evaluate import MOST_SIZE, RuleError, RuleFact, evaluate
from tests.support.rule_sources import error_of, rules_of, value_of

TEXT = "\U0001f50b" * 65_536


def nested(depth: int) -> Any:
    expression: Any = 1
    for _ in range(depth):
        expression = ["list", expression]
    return expression


def facts(count: int) -> list[RuleFact]:
    return [RuleFact("Battery", f"{number:05}", number) for number in range(count)]


@pytest.mark.parametrize(
    ("expression", "count", "kind"),
    [
        (nested(32), 0, None),
        (nested(33), 0, "LIMIT"),
        (["if", True, 1, nested(33)], 0, None),
        (["add", *[1] * 99_999], 0, None),
        (["add", *[1] * 100_000], 0, "LIMIT"),
        (["count", ["map", ["facts", "Battery"], ["add", 1, 1, 1, 1, 1, 1, 1, 1]]], 10_000, None),
        (["count", ["map", ["facts", "Battery"], ["add", 1, 1, 1, 1, 1, 1, 1, 1, 1]]], 10_000, "LIMIT"),
        (["or", True, *[1] * 200_000], 0, None),
        (TEXT, 0, None),
        (TEXT + "a", 0, "LIMIT"),
        (["concat", TEXT, ""], 0, None),
        (["concat", TEXT, "a"], 0, "LIMIT"),
        (["concat", *["a"] * 65_536], 0, None),
        (["length", ["concat", *["ab"] * 32_769]], 0, "LIMIT"),
        (["facts", "Battery"], 10_000, None),
        (["count", ["facts", "Battery"]], 10_001, "LIMIT"),
        (["list", *[1] * 10_000], 0, None),
        (["count", ["list", *[1] * 10_001]], 0, "LIMIT"),
    ],
)
def test_limit_holds_to_the_last_one(expression: Any, count: int, kind: str | None) -> None:
    # The outermost add, count and map are evaluated, too: 3 + 10,000 * 9 and 3 + 10,000 * 10.
    assert error_of(expression, facts(count)) == kind


@pytest.mark.parametrize(
    ("payload", "kind"),
    [(TEXT, None), (TEXT + "a", "LIMIT"), ([0] * 10_000, None), ([0] * 10_001, "LIMIT"), ({"a": TEXT + "a"}, None)],
)
def test_limits_hold_for_what_facts_contain(payload: Any, kind: str | None) -> None:
    known = [RuleFact("Battery", "a", {"it": payload})]
    assert error_of(["eq", ["get", ["fact", "Battery", "a"], "it"], 1], known) == kind
    assert error_of(["eq", ["fact", "Battery", "a"], 1], known) is None


def test_evaluations_of_all_values_and_checks_count_together() -> None:
    many = ["gt", ["add", *[1] * 49_997], 0]
    assert evaluate(rules_of({"a": many}, {"b": many}), [], {}).failed == []
    with pytest.raises(RuleError, match="LIMIT in c"):
        evaluate(rules_of({"a": many}, {"b": many, "c": True}), [], {})


def doubling(times: int) -> dict[str, Any]:
    """Return values of which each holds the one before it twice."""
    values: dict[str, Any] = {"v0": ["list", 1]}
    for number in range(1, times):
        before = ["value", f"v{number - 1}"]
        values[f"v{number}"] = ["list", before, before]
    return values


def test_value_that_doubles_again_and_again_is_a_limit() -> None:
    assert evaluate(rules_of(doubling(12)), [], {}).failed == []
    with pytest.raises(RuleError, match=r"LIMIT in v\d+: the values are larger"):
        evaluate(rules_of(doubling(60)), [], {})


def test_value_of_very_many_shared_parts_compares_fast() -> None:
    expression: Any = ["list", 1]
    for _ in range(15):
        expression = ["map", ["list", expression], ["list", *[["item"]] * 50]]
    began = time.process_time()
    assert value_of(["eq", expression, expression]) is True  # of 50^15 elements
    assert time.process_time() - began < 5


def test_what_is_remembered_of_a_list_is_not_taken_for_another_one() -> None:
    known = [RuleFact("Battery", f"{number:05}", number * number % 11) for number in range(1000)]
    expression = ["map", ["facts", "Battery"], ["eq", ["list", ["item"]], ["get", ["product"], "four"]]]
    assert value_of(expression, known, {"four": [4]}) == [fact.payload == 4 for fact in known]


def test_values_may_not_nest_ever_deeper() -> None:
    values: dict[str, Any] = {"v0": ["list", 1]}
    for number in range(1, 200):
        values[f"v{number}"] = ["list", ["value", f"v{number - 1}"]]
    with pytest.raises(RuleError, match="LIMIT in v100: "):
        evaluate(rules_of(values), [], {})


def deep(levels: int) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    for _ in range(levels):
        payload = {"a": payload}
    return payload


@pytest.mark.parametrize(("levels", "kind"), [(64, None), (500, "LIMIT")])
def test_facts_that_are_too_deep_to_compare_are_a_limit(levels: int, kind: str | None) -> None:
    known = [RuleFact("Battery", "a", deep(levels))]
    assert error_of(["eq", ["facts", "Battery"], 1], known) == kind
    assert error_of(["fact", "Battery", "a"], known) == kind


def test_all_values_together_have_a_size() -> None:
    text = "a" * 65_536
    most = MOST_SIZE // (65_536 + 8)
    values = {f"v{number}": text for number in range(most + 1)}
    with pytest.raises(RuleError, match=f"LIMIT in v{most}: "):
        evaluate(rules_of(values), [], {})


@pytest.mark.parametrize(
    "operation",
    [
        ["eq", ["facts", "Battery"], ["get", ["product"], "all"]],
        ["in", ["item"], ["facts", "Battery"]],
        ["ge", ["sum", ["facts", "Battery"]], 0],
        ["or", True, *[1] * 9_000],
    ],
)
def test_long_list_that_is_used_often_costs_little(operation: Any) -> None:
    began = time.process_time()
    product = {"all": list(range(10_000))}
    assert value_of(["all", ["facts", "Battery"], operation], facts(10_000), product) is True
    assert time.process_time() - began < 5
