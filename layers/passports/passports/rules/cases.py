"""Run one case of a test, and say how it is not as the test expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passports.rules.evaluate import Evaluation, Evaluator, RuleError, RuleFact
from passports.rules.language import Rules
from passports.rules.operators import type_of
from passports.rules.suite import RuleTest, fill_in

_LONGEST = 200  # characters of a value that a failure shows


def run_case(rules: Rules, test: RuleTest, seed: int, case: int) -> str | None:
    """Return why a case fails, or None where it passes. An expected error is all that its case is judged by."""
    drawn = test.draw(seed, case)
    facts = [RuleFact(**fill_in(fact, drawn)) for fact in test.facts]
    if fault := _fault_of_facts(facts):
        return fault
    expected = fill_in(test.expect.get("error"), drawn)
    evaluator = Evaluator(facts, fill_in(test.product, drawn), drawn)
    try:
        evaluation = evaluator.run(rules)
        if expected is None:
            return _judge(evaluator, evaluation, test.expect, drawn)
    except RuleError as error:
        return None if error.kind == expected else str(error)
    return f"{expected} was expected, and nothing was wrong"


def _fault_of_facts(facts: Sequence[RuleFact]) -> str | None:
    names = [(fact.type, fact.key) for fact in facts]
    if not all(isinstance(part, str) for name in names for part in name):
        return "the type or key of a fact is no text"
    return "AMBIGUOUS_FACT: two facts have one type and key" if len(set(names)) < len(names) else None


def _judge(
    evaluator: Evaluator, evaluation: Evaluation, expect: Mapping[str, Any], drawn: Mapping[str, Any]
) -> str | None:
    for name, template in expect.get("values", {}).items():
        value, wanted = evaluation.values.get(name), fill_in(template, drawn)
        if not evaluator.are_equal(name, value, wanted):
            return f"value {name} is {_show(value)}, and {_show(wanted)} was expected"
    wanted = fill_in(expect.get("fails", []), drawn)
    if different := [name for name in evaluation.failed if name not in wanted]:
        return f"check {different[0]} fails, which was not expected"
    if different := [name for name in wanted if name not in evaluation.failed]:
        return f"check {different[0]} does not fail, which was expected"
    if "holds" in expect and not evaluator.is_true("holds", expect["holds"]):
        return "holds is false"
    return None


def _show(value: Any) -> str:
    """Return a value for people; what may be long is named by its type."""
    if isinstance(value, dict | list):
        return f"another {type_of(value)}"
    return repr(value)[:_LONGEST]
