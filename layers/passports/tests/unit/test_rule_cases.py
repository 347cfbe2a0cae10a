"""Tests of rules are read strictly, draw the same values everywhere, and say why a case fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from passports.rules.cases import run_case
from passports.rules.language import read_rules
from passports.rules.suite import RuleTest, read_suite
from signalbox.packs.refusals import class_of
from tests.support.passport_rows import RULES
from tests.support.rule_sources import rules_of, suite_of

RULES_READ = read_rules(RULES)
MASS = {"type": "Battery", "key": "a", "payload": {"mass_kg": {"$var": "m"}}}
SuiteInvalid = class_of("TEST_SUITE_INVALID")


def read_one(test: dict[str, Any]) -> RuleTest:
    [found] = read_suite(suite_of(test), RULES_READ)
    return found


def drawn(variable: list[Any], seed: int = 7, cases: int = 200) -> list[Any]:
    test = read_one({"name": "mass", "vars": {"m": variable}})
    return [test.draw(seed, case)["m"] for case in range(cases)]


def test_draw_of_the_contract() -> None:
    assert drawn(["integer", 1, 100], cases=1) == [36]


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        (["integer", -1, 1], {-1, 0, 1}),
        (["integer", 5, 5.0], {5}),
        (["decimal", 0.1, 0.3, 1], {0.1, 0.2, 0.3}),
        (["decimal", 1, 1.25, 1], {1.0, 1.1, 1.2}),
        (["decimal", -0.01, 0.01, 2], {-0.01, 0.0, 0.01}),
        (["decimal", 2, 3, 0], {2.0, 3.0}),
        (["choice", ["a", None]], {"a", None}),
        (["boolean"], {False, True}),
    ],
)
def test_variable_has_just_its_values(variable: list[Any], values: set[Any]) -> None:
    assert set(drawn(variable)) == values


def test_booleans_are_drawn_as_a_choice_of_false_and_true() -> None:
    assert drawn(["boolean"]) == drawn(["choice", [False, True]]) == [one == 1 for one in drawn(["integer", 0, 1])]


def test_draw_depends_on_seed_test_case_and_variable() -> None:
    wide = ["integer", 0, 2**53 - 1]
    one, other = (read_one({"name": name, "vars": {"m": wide, "n": wide}}) for name in ("mass", "other"))
    draws = [test.draw(seed, case) for test in (one, other) for seed in (0, -1) for case in (0, 1)]
    assert len({value for draw in draws for value in draw.values()}) == 16
    assert one.draw(0, 0) == draws[0]


def test_decimals_are_the_nearest_doubles_of_exact_ones() -> None:
    assert all(value == round(value, 9) for value in drawn(["decimal", 0, 1000, 9]))


def expecting(expect: dict[str, Any], **fields: Any) -> str | None:
    """Return why a case fails where m is 5."""
    test = {"name": "mass", "vars": {"m": ["integer", 5, 5]}, "facts": [MASS], "expect": expect} | fields
    return run_case(RULES_READ, read_one(test), 0, 0)


@pytest.mark.parametrize(
    ("expect", "fields"),
    [
        ({}, {}),
        ({"values": {"mass_kg": 5.0}}, {}),
        ({"values": {"mass_kg": {"$var": "m"}}, "holds": ["eq", ["value", "mass_kg"], ["var", "m"]]}, {}),
        ({"holds": ["eq", ["get", ["product"], "m"], ["var", "m"]]}, {"product": {"m": {"$var": "m"}}}),
        ({"fails": ["mass_known"]}, {"facts": []}),
        ({"fails": [{"$var": "c"}]}, {"facts": [], "vars": {"c": ["choice", ["mass_known"]]}}),
        ({"error": "TYPE_ERROR"}, {"vars": {"m": ["choice", ["5", None]]}}),
        ({"error": {"$var": "m"}}, {"vars": {"m": ["choice", ["TYPE_ERROR"]]}}),
        ({"error": None}, {}),
        ({"fails": ["mass_known"], "holds": ["eq", ["product"], ["get", ["fact", "a", "b"], "p"]]},
         {"facts": [{"type": "a", "key": "b", "payload": {"p": {}}}]}),
    ],
)  # fmt: skip
def test_case_passes(expect: dict[str, Any], fields: dict[str, Any]) -> None:
    assert expecting(expect, **fields) is None


@pytest.mark.parametrize(
    ("expect", "fields", "error"),
    [
        ({"values": {"mass_kg": 6}}, {}, "value mass_kg is 5.0, and 6 was expected"),
        ({"values": {"mass_kg": "5"}}, {}, "value mass_kg is 5.0, and '5' was expected"),
        ({"values": {"mass_kg": [5]}}, {}, "value mass_kg is 5.0, and another list was expected"),
        ({"values": {"mass_kg": None}}, {}, "value mass_kg is 5.0, and None was expected"),
        ({}, {"facts": []}, "check mass_known fails, which was not expected"),
        ({"fails": ["mass_known"]}, {}, "check mass_known does not fail, which was expected"),
        ({"error": "LIMIT"}, {}, "LIMIT was expected, and nothing was wrong"),
        ({"error": "TYPE_ERROR", "holds": 1}, {}, "TYPE_ERROR was expected, and nothing was wrong"),
        ({"error": "LIMIT"}, {"vars": {"m": ["choice", ["5"]]}}, "RULE_ERROR: TYPE_ERROR in mass_kg: "),
        ({}, {"vars": {"m": ["choice", ["5"]]}}, "RULE_ERROR: TYPE_ERROR in mass_kg: "),
        ({"holds": ["gt", ["value", "mass_kg"], 5]}, {}, "holds is false"),
        ({"holds": 1}, {}, "RULE_ERROR: TYPE_ERROR in holds: "),
        ({}, {"facts": [MASS, MASS]}, "AMBIGUOUS_FACT: "),
        ({}, {"facts": [MASS | {"key": {"$var": "m"}}]}, "the type or key of a fact is no text"),
    ],
)
def test_case_says_why_it_fails(expect: dict[str, Any], fields: dict[str, Any], error: str) -> None:
    assert (expecting(expect, **fields) or "").startswith(error)


def test_expected_value_that_is_too_deep_to_compare_fails_its_case() -> None:
    wanted: Any = 5
    for _ in range(150):
        wanted = [wanted]
    assert (expecting({"values": {"mass_kg": wanted}}) or "").startswith("RULE_ERROR: LIMIT in mass_kg: ")


def test_null_values_are_expected_as_null() -> None:
    rules = rules_of({"a": None})
    tests = read_suite(suite_of({"expect": {"values": {"a": None}}}, {"expect": {"values": {"a": 0}}}), rules)
    assert [run_case(rules, test, 0, 0) is None for test in tests] == [True, False]


def test_holds_has_only_what_is_left_of_the_evaluations() -> None:
    rules = rules_of({"a": ["add", *[1] * 99_989]})
    fits, is_too_much = (["gt", ["add", *[1] * count], 0] for count in (7, 8))
    tests = read_suite(suite_of({"expect": {"holds": fits}}, {"expect": {"holds": is_too_much}}), rules)
    assert run_case(rules, tests[0], 0, 0) is None
    assert (run_case(rules, tests[1], 0, 0) or "").startswith("RULE_ERROR: LIMIT in holds: ")


def test_drawn_values_are_not_filled_in_again() -> None:
    variables = {"m": ["choice", [{"$var": "n"}]], "n": ["integer", 5, 5]}
    assert expecting({"error": "TYPE_ERROR"}, vars=variables) is None


@pytest.mark.parametrize(
    ("test", "place"),
    [
        (1, "/tests/0"),
        ({"name": 1, "expect": {}}, "/tests/0/name"),
        ({"name": "a"}, "/tests/0"),
        ({"name": "a", "expect": {}, "skip": True}, "/tests/0/skip"),
        ({"name": "a", "expect": {}, "repeat": 0}, "/tests/0/repeat"),
        ({"name": "a", "expect": {}, "repeat": 1.5}, "/tests/0/repeat"),
        ({"name": "a", "expect": {}, "repeat": 20_001}, "/tests/0/repeat"),
        ({"name": "a", "expect": {}, "vars": []}, "/tests/0/vars"),
        *(
            ({"name": "a", "expect": {}, "vars": {"m": wrong}}, "/tests/0/vars/m")
            for wrong in (
                ["integer", 2, 1], ["integer", 1], ["integer", 0.5, 1], ["integer", False, True], ["integer", "1", 2],
                ["decimal", 1, 2], ["decimal", 1, 2, 10], ["decimal", 2, 1, 1], ["choice", []], ["choice", {}],
                ["boolean", 1], ["text"], [], None, "boolean",
            )
        ),
        ({"name": "a", "expect": {}, "facts": {}}, "/tests/0/facts"),
        ({"name": "a", "expect": {}, "facts": [{"type": "a", "key": "b"}]}, "/tests/0/facts/0"),
        ({"name": "a", "expect": {}, "facts": [{"type": "a", "key": 1, "payload": 1}]}, "/tests/0/facts/0/key"),
        ({"name": "a", "expect": {}, "facts": [MASS]}, "/tests/0/facts/0/payload/mass_kg"),
        ({"name": "a", "expect": {}, "product": []}, "/tests/0/product"),
        ({"name": "a", "expect": {}, "product": {"a": [{"$var": 1}]}}, "/tests/0/product/a/0"),
        ({"name": "a", "expect": {}, "vars": {"m": ["boolean"]}, "product": {"a": {"$var": "m", "b": 1}}},
         "/tests/0/product/a"),
        ({"name": "a", "expect": []}, "/tests/0/expect"),
        ({"name": "a", "expect": {"value": {}}}, "/tests/0/expect/value"),
        ({"name": "a", "expect": {"values": {"unknown": 1}}}, "/tests/0/expect/values/unknown"),
        ({"name": "a", "expect": {"values": {"mass_kg": {"$var": "m"}}}}, "/tests/0/expect/values/mass_kg"),
        ({"name": "a", "expect": {"fails": "mass_known"}}, "/tests/0/expect/fails"),
        ({"name": "a", "expect": {"fails": ["mass_kg"]}}, "/tests/0/expect/fails/0"),
        ({"name": "a", "expect": {"error": "RULES_INVALID"}}, "/tests/0/expect/error"),
        ({"name": "a", "expect": {"holds": ["value", "unknown"]}}, "/tests/0/expect/holds/1"),
        ({"name": "a", "expect": {"holds": ["eq", ["var", "m"], 1]}}, "/tests/0/expect/holds/1/1"),
        ({"name": "a", "expect": {"holds": {"$var": "m"}}}, "/tests/0/expect/holds"),
    ],
)  # fmt: skip
def test_invalid_test_is_refused_with_its_place(test: Any, place: str) -> None:
    source = json.dumps({"language": "BPC-RULE-TESTS-1", "tests": [test]})
    with pytest.raises(SuiteInvalid, match=f"^TEST_SUITE_INVALID: at '{place}': "):
        read_suite(source, RULES_READ)


@pytest.mark.parametrize(
    "source",
    [
        "",
        RULES,
        '{"language":"BPC-RULE-TESTS-1"}',
        '{"language":"BPC-RULE-TESTS-1","tests":{}}',
        '{"language":"BPC-RULE-TESTS-1","tests":[],"seed":1}',
        suite_of({"name": "a"}, {"name": "a"}),
        suite_of({"repeat": 10_000}, {"repeat": 10_001}),
        suite_of({"product": {"a": "DEEP"}}).replace('"DEEP"', "[" * 300 + "]" * 300),
    ],
)
def test_invalid_suite_is_refused(source: str) -> None:
    with pytest.raises(SuiteInvalid):
        read_suite(source, RULES_READ)


def test_twenty_thousand_cases_are_allowed() -> None:
    assert [test.repeat for test in read_suite(suite_of({"repeat": 10_000}, {"repeat": 10_000}), RULES_READ)] == [
        10_000
    ] * 2
