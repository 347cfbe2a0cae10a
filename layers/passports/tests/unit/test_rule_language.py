"""Rules are checked before anything runs, and what is wrong is named by its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from passports.encoding.canonical import canonical, sha256
from passports.rules.language import OPERANDS, read_rules
from signalbox.packs.refusals import class_of
from tests.support.passport_rows import RULES
from tests.support.rule_sources import rules_of, source_of

RulesInvalid = class_of("RULES_INVALID")
DOCUMENT = json.loads(RULES)


def test_rules_of_the_contract_have_its_hash() -> None:
    rules = read_rules(RULES)
    assert sha256(canonical(rules.document)).hex()[:8] == "f09642e9"
    assert [name for name, _ in (*rules.values, *rules.checks)] == ["mass_kg", "mass_known"]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("", ""),
        ("{", ""),
        ('{"language":"BPC-RULES-1","language":"BPC-RULES-1","values":[],"checks":[]}', ""),
        ("[]", "/language"),
        ("null", "/language"),
        (json.dumps(DOCUMENT | {"language": "BPC-RULES-2"}), "/language"),
        (json.dumps(DOCUMENT | {"rules/~": []}), "/rules~1~0"),
        (json.dumps({"language": "BPC-RULES-1", "values": []}), ""),
        (json.dumps(DOCUMENT | {"values": {}}), "/values"),
        (json.dumps(DOCUMENT | {"values": [1]}), "/values/0"),
        (json.dumps(DOCUMENT | {"values": [{"name": "a", "expr": 1, "unit": "kg"}]}), "/values/0/unit"),
        (json.dumps(DOCUMENT | {"values": [{"name": "a"}]}), "/values/0"),
        (json.dumps(DOCUMENT | {"values": [{"name": 1, "expr": 1}]}), "/values/0/name"),
        (json.dumps(DOCUMENT | {"values": [{"name": "a", "expr": 1}] * 2}), "/values/1/name"),
        (json.dumps(DOCUMENT | {"values": [], "checks": [{"name": "a", "expr": True}] * 2}), "/checks/1/name"),
    ],
)
def test_invalid_source_is_refused_with_its_place(source: str, place: str) -> None:
    with pytest.raises(RulesInvalid, match=f"^RULES_INVALID: at '{place}': "):
        read_rules(source)


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ({}, ""),
        ([], "/0"),
        ([1], "/0"),
        ([["add"], 1], "/0"),
        (["plus", 1, 2], "/0"),
        (["var", "m"], "/0"),
        (["not", ["not", ["no"]]], "/1/1/0"),
        (["list", 1, {"a": 1}], "/2"),
        (["item"], ""),
        (["map", ["item"], 1], "/1"),
        (["list", ["map", ["list"], ["item"]], ["item"]], "/2"),
        (["facts", ["concat", "Battery"]], "/1"),
        (["fact", "Battery", 1], "/2"),
        (["get", ["product"], 0], "/2"),
        (["get", ["product"], "sku", ["product"]], "/3"),
        (["round", 1, 10], "/2"),
        (["round", 1, -1], "/2"),
        (["round", 1, 1.5], "/2"),
        (["round", 1, True], "/2"),
        (["value", "later"], "/1"),
        (["value", "itself"], "/1"),
        (["if", False, ["value", "unknown"], 1], "/2/1"),
    ],
)
def test_invalid_expression_is_refused_with_its_place(expression: Any, place: str) -> None:
    with pytest.raises(RulesInvalid, match=f"^RULES_INVALID: at '/values/1/expr{place}': "):
        rules_of({"first": 1, "itself": expression, "later": 1})


@pytest.mark.parametrize("operator", sorted(OPERANDS.keys() - {"var"}))
def test_operator_takes_just_its_operands(operator: str) -> None:
    kinds = OPERANDS[operator]
    is_open, fixed = kinds.endswith(("+", "*")), kinds.rstrip("+*")
    right = {"E": 1, "B": True, "T": "a", "D": 2, "N": "first"}
    operands = [right[kind] for kind in fixed]
    rules_of({"first": 1, "v": ["map", ["list"], [operator, *operands]]})
    wrong = [operands[:-1]] if operands and not kinds.endswith("*") else []
    for few_or_many in [*wrong, [*operands, operands[-1] if operands else 1]]:
        if is_open and len(few_or_many) > len(operands):
            rules_of({"first": 1, "v": [operator, *few_or_many]})
            continue
        with pytest.raises(RulesInvalid, match=f"give {operator} {len(fixed)}"):
            rules_of({"first": 1, "v": ["map", ["list"], [operator, *few_or_many]]})


def test_checks_may_name_every_value() -> None:
    rules = rules_of({"a": 1, "b": ["value", "a"]}, {"a": ["eq", ["value", "a"], ["value", "b"]]})
    assert [name for name, _ in rules.checks] == ["a"]


def test_digits_may_be_written_as_canonical_json_writes_them() -> None:
    assert rules_of({"v": ["round", 1.25, 1.0]}).values[0][1] == ["round", 1.25, 1]


@pytest.mark.parametrize("depth", [201, 5_000, 100_000])
def test_source_nested_very_deeply_is_refused(depth: int) -> None:
    expression = '["not",' * depth + "true" + "]" * depth
    with pytest.raises(RulesInvalid):
        read_rules(source_of({"v": "DEEP"}).replace('"DEEP"', expression))


def test_wrong_operator_at_any_depth_is_refused_before_it_is_evaluated() -> None:
    expression: Any = ["no"]
    for _ in range(150):
        expression = ["not", expression]
    with pytest.raises(RulesInvalid, match="/1/1/0'"):
        rules_of({"v": ["if", True, 1, expression]})
