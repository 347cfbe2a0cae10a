"""Write sources of rules and of their tests, and evaluate one expression."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from passports.rules.evaluate import Evaluation, RuleError, RuleFact, evaluate
from passports.rules.language import Rules, read_rules

SUITE = "BPC-RULE-TESTS-1"


def source_of(values: dict[str, Any], checks: dict[str, Any] | None = None) -> str:
    """Return a source with these expressions by their names."""
    named = [[{"name": name, "expr": one} for name, one in some.items()] for some in (values, checks or {})]
    return json.dumps({"language": "BPC-RULES-1", "values": named[0], "checks": named[1]})


def rules_of(values: dict[str, Any], checks: dict[str, Any] | None = None) -> Rules:
    return read_rules(source_of(values, checks))


def suite_of(*tests: dict[str, Any]) -> str:
    """Return a source of tests; those without a name are called by their place."""
    named = [{"name": f"test {place}", "expect": {}} | test for place, test in enumerate(tests)]
    return json.dumps({"language": SUITE, "tests": named})


def run(expression: Any, facts: Sequence[RuleFact] = (), product: dict[str, Any] | None = None) -> Evaluation:
    """Evaluate one expression as the value `v`."""
    return evaluate(rules_of({"v": expression}), facts, product or {})


def value_of(expression: Any, facts: Sequence[RuleFact] = (), product: dict[str, Any] | None = None) -> Any:
    """Return an expression's value."""
    return run(expression, facts, product).values.get("v")


def error_of(expression: Any, facts: Sequence[RuleFact] = (), product: dict[str, Any] | None = None) -> str | None:
    """Return the kind of error that an expression raises, if it does."""
    try:
        run(expression, facts, product)
    except RuleError as error:
        return error.kind
    return None
