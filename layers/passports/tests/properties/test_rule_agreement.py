"""Two interpreters, written apart, agree on every expression; and no expression of many hangs or breaks the first."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from passports.encoding.canonical import canonical
from passports.rules.evaluate import MOST_EVALUATIONS, Evaluator, RuleError, evaluate
from passports.rules.language import Rules, read_rules
from signalbox.packs.refusals import class_of
from tests.support.rule_expressions import FACTS, PRODUCT, Grower
from tests.support.rule_reference import Reference

WANTED = ["number", "number", "text", "boolean", "list", "any"]


def source(values: list[Any], checks: list[Any]) -> str:
    named = [[{"name": f"n{place}", "expr": one} for place, one in enumerate(some)] for some in (values, checks)]
    return json.dumps({"language": "BPC-RULES-1", "values": named[0], "checks": named[1]})


def outcome(rules: Rules) -> tuple[Any, ...]:
    try:
        found = evaluate(rules, FACTS, PRODUCT)
    except RuleError as error:
        return (error.kind, error.name)
    return canonical(found.values), found.failed


@given(st.randoms(use_true_random=False), st.integers(1, 6))
@settings(max_examples=400)
def test_both_interpreters_agree(random: Random, depth: int) -> None:
    values = [
        Grower(random, [f"n{one}" for one in range(place)]).grow(random.choice(WANTED), depth) for place in range(3)
    ]
    checks = [Grower(random, ["n0", "n1", "n2"]).grow("boolean", depth) for _ in range(2)]
    rules = read_rules(source(values, checks))
    assert outcome(rules) == Reference(FACTS, PRODUCT).outcome(rules)


def test_hundred_thousand_expressions_end_within_their_limits() -> None:
    random, began, outcomes = Random(20260301), time.process_time(), set()
    for number in range(100_000):
        grower = Grower(random, junk=0.1 if number % 10 == 0 else 0.0)
        outcomes.add(run(source([grower.grow(random.choice(WANTED), random.choice([2, 3, 4]))], [])))
    assert outcomes >= {"a value", "RulesInvalid", "TYPE_ERROR", "DIVISION_BY_ZERO", "NOT_FINITE"}
    assert time.process_time() - began < 60


def run(text: str) -> str:
    """Return what becomes of rules; any other error ends the test."""
    try:
        rules = read_rules(text)
    except class_of("RULES_INVALID") as error:
        return type(error).__name__
    evaluator = Evaluator(FACTS, PRODUCT)
    try:
        evaluator.run(rules)
    except RuleError as error:
        return error.kind
    finally:
        assert evaluator.evaluations <= MOST_EVALUATIONS + 1
    return "a value"
