"""Read the tests of rules, and check before a case runs that every name in them is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from passports.encoding.canonical import sha256
from passports.rules.language import (
    Rules,
    Scope,
    SourceFault,
    check_expression,
    check_members,
    check_names,
    is_whole,
    pointer,
    read_source,
)
from passports.rules.operators import Kind
from signalbox.packs.refusals import refuse

LANGUAGE = "BPC-RULE-TESTS-1"
MOST_CASES = 20_000
_KNOWN_ONLY = "write a name that the rules have"


@dataclass(frozen=True, slots=True)
class Variable:
    """Hold what a variable may be: the values with the numbers from 0 up to `choices`."""

    choices: int
    choose: Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class RuleTest:
    """Hold one test; objects {"$var": name} in its facts, product and expectations stand for drawn values."""

    name: str
    repeat: int
    variables: Mapping[str, Variable]
    facts: Sequence[Mapping[str, Any]]
    product: Any
    expect: Mapping[str, Any]

    def draw(self, seed: int, case: int) -> dict[str, Any]:
        """Return the values of the variables in one case: the same for everybody who draws them."""
        drawn = {}
        for name, variable in self.variables.items():
            digest = sha256(f"{LANGUAGE}|{seed}|{self.name}|{case}|{name}".encode())
            drawn[name] = variable.choose(int.from_bytes(digest[:8], "big") % variable.choices)
        return drawn


def read_suite(source: str, rules: Rules) -> list[RuleTest]:
    """Return the tests of a source, or refuse it, naming the place and the cure."""
    try:
        document = read_source(source, LANGUAGE)
        check_members(document, "", ("language", "tests"))
        tests = _check_list(document["tests"], "/tests")
        found = [_read_test(test, f"/tests/{number}", rules) for number, test in enumerate(tests)]
        check_names(tests, "/tests")
        if (cases := sum(test.repeat for test in found)) > MOST_CASES:
            raise SourceFault("/tests", f"make at most {MOST_CASES:,} cases; these are {cases:,}")
    except SourceFault as fault:
        raise refuse("TEST_SUITE_INVALID", str(fault)) from None
    return found


def fill_in(template: Any, drawn: Mapping[str, Any]) -> Any:
    """Return a template with drawn values in the place of its variables."""
    if not drawn or not isinstance(template, dict | list):
        return template
    if isinstance(template, list):
        return [fill_in(one, drawn) for one in template]
    if "$var" in template:
        return drawn[template["$var"]]
    return {name: fill_in(one, drawn) for name, one in template.items()}


def _read_test(test: Any, at: str, rules: Rules) -> RuleTest:
    check_members(test, at, ("name", "expect"), ("repeat", "vars", "facts", "product"))
    repeat = test.get("repeat", 1)
    if not is_whole(repeat, 1, MOST_CASES):
        raise SourceFault(f"{at}/repeat", f"write a whole number from 1 to {MOST_CASES:,}")
    variables = _read_variables(test.get("vars", {}), f"{at}/vars")
    facts, product = test.get("facts", []), test.get("product", {})
    for number, fact in enumerate(_check_list(facts, f"{at}/facts")):
        _check_fact(fact, f"{at}/facts/{number}", variables)
    if not isinstance(product, dict):
        raise SourceFault(f"{at}/product", "write an object")
    _check_template(product, f"{at}/product", variables)
    _check_expect(test["expect"], f"{at}/expect", rules, variables)
    return RuleTest(test["name"], int(repeat), variables, facts, product, test["expect"])


def _check_list(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise SourceFault(at, "write a list")
    return value


def _check_fact(fact: Any, at: str, variables: Mapping[str, Variable]) -> None:
    check_members(fact, at, ("type", "key", "payload"))
    for member in ("type", "key"):
        if not isinstance(fact[member], str | dict):
            raise SourceFault(f"{at}/{member}", "write a text")
    _check_template(fact, at, variables)


def _check_expect(expect: Any, at: str, rules: Rules, variables: Mapping[str, Variable]) -> None:
    check_members(expect, at, (), ("values", "fails", "error", "holds"))
    values, checks = dict(rules.values), dict(rules.checks)
    expected = expect.get("values", {})
    check_members(expected, f"{at}/values", (), values)
    for number, name in enumerate(_check_list(expect.get("fails", []), f"{at}/fails")):
        if not isinstance(name, dict) and (not isinstance(name, str) or name not in checks):
            raise SourceFault(f"{at}/fails/{number}", _KNOWN_ONLY)
    if not isinstance(expect.get("error"), dict) and expect.get("error") not in (None, *get_args(Kind)):
        raise SourceFault(f"{at}/error", f"write one of {' '.join(get_args(Kind))}")
    _check_template({name: one for name, one in expect.items() if name != "holds"}, at, variables)
    check_expression(expect.get("holds"), f"{at}/holds", Scope(values, variables))


def _check_template(template: Any, place: str, variables: Mapping[str, Variable]) -> None:
    """Refuse variables that are unknown, or that have other members beside them."""
    left = [(template, place)]
    while left:
        one, at = left.pop()
        if isinstance(one, dict):
            if "$var" in one and (len(one) > 1 or not _is_name(one["$var"], variables)):
                raise SourceFault(at, 'write {"$var": name} with the name of one of the test\'s vars')
            left += [(inner, pointer(at, name)) for name, inner in one.items()]
        elif isinstance(one, list):
            left += [(inner, f"{at}/{number}") for number, inner in enumerate(one)]


def _is_name(name: Any, known: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in known


def _read_variables(variables: Any, at: str) -> dict[str, Variable]:
    if not isinstance(variables, dict):
        raise SourceFault(at, "write an object of variables")
    return {name: _read_variable(one, pointer(at, name)) for name, one in variables.items()}


def _read_variable(given: Any, at: str) -> Variable:
    match given:
        case ["integer", low, high] if _is_range(low, high) and low == int(low) and high == int(high):
            return _numbers(low, high, 0, int)
        case ["decimal", low, high, digits] if _is_range(low, high) and is_whole(digits, 0, 9):
            return _numbers(low, high, int(digits), float)
        case ["choice", [_, *_] as choices]:
            return Variable(len(choices), choices.__getitem__)
        case ["boolean"]:
            return Variable(2, bool)
    raise SourceFault(
        at, 'write ["integer", low, high], ["decimal", low, high, 0–9], ["choice", [one, …]] or ["boolean"]'
    )


def _is_range(low: Any, high: Any) -> bool:
    return type(low) in (int, float) and type(high) in (int, float) and low <= high


def _numbers(low: float, high: float, digits: int, as_number: Callable[[Fraction], float]) -> Variable:
    """Return the numbers from low to high in steps of 10^-digits, each exact before it becomes a double."""
    first, steps = Fraction(str(low)), 10**digits
    choices = (Fraction(str(high)) - first) * steps // 1 + 1
    return Variable(choices, lambda number: as_number(first + Fraction(number, steps)))
