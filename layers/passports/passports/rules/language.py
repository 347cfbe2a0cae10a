"""Read rules, and check before anything runs that each expression is one of the language.

What only the data can show, such as a text where a number is wanted, is found while evaluating. No check is recursive,
since a source from outside may be nested deeply.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from passports.encoding.canonical import JsonRefused, read_json
from signalbox.packs.refusals import refuse

LANGUAGE = "BPC-RULES-1"
# Containers in one another. More than 32 arrays are refused while evaluating; this bound keeps the hash of a source,
# which is made recursively, within the stack.
MOST_DEEP = 200
# Operators by what follows them: E an expression, B one in which `item` is known, T a text, D a digit, N the name of a
# value, V that of a variable. The last one may stand once or more (+), or any number of times (*).
_BY_OPERANDS = {
    "": "product item",
    "T": "facts",
    "TT": "fact",
    "N": "value",
    "V": "var",
    "E": "not abs count sum length",
    "EE": "eq ne lt le gt ge sub div in",
    "ED": "round",
    "EB": "map filter all any",
    "EEE": "if",
    "ET+": "get",
    "E+": "and or add mul min max concat coalesce",
    "E*": "list",
}
OPERANDS = {operator: operands for operands, operators in _BY_OPERANDS.items() for operator in operators.split()}
_WANTED = {
    "T": "write a text here",
    "D": "write a digit from 0 to 9 here",
    "N": "write the name of a value here; a value may name only those before it",
    "V": "write the name of one of the test's vars here",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Hold rules that were checked: `values` and `checks` are pairs of a name and an expression, in their order."""

    document: dict[str, Any]
    values: Sequence[tuple[str, Any]]
    checks: Sequence[tuple[str, Any]]


class SourceFault(ValueError):
    """A source is wrong at a place, which is a JSON pointer."""

    def __init__(self, place: str, cure: str) -> None:
        super().__init__(f"at '{place}': {cure}")


@dataclass(frozen=True, slots=True)
class Scope:
    """Hold the names that an expression may use; `var` is an operator only where there are variables."""

    values: Collection[str]
    variables: Collection[str] | None = None


def read_rules(source: str) -> Rules:
    """Return the rules of a source, or refuse it, naming the place and the cure."""
    try:
        document = read_source(source, LANGUAGE)
        check_members(document, "", ("language", "values", "checks"))
        values = _read_named(document, "values")
        checks = _read_named(document, "checks")
        _check_expressions(values, checks)
    except SourceFault as fault:
        raise refuse("RULES_INVALID", str(fault)) from None
    return Rules(document, values, checks)


def read_source(source: str, language: str) -> dict[str, Any]:
    """Return the object that a source holds, which names its language."""
    try:
        document = read_json(source)
    except JsonRefused as error:
        raise SourceFault("", f"write JSON that every reader understands alike: {error}") from None
    if not isinstance(document, dict) or document.get("language") != language:
        raise SourceFault("/language", f"write an object whose language is {language}")
    _check_depth(document)
    return document


def _check_depth(document: dict[str, Any]) -> None:
    level: list[Any] = [document]
    for _ in range(MOST_DEEP):
        level = [inner for one in level for inner in _members(one) if isinstance(inner, dict | list)]
        if not level:
            return
    raise SourceFault("", f"nest at most {MOST_DEEP} arrays and objects")


def _members(container: Any) -> Collection[Any]:
    return container.values() if isinstance(container, dict) else container


def check_members(value: Any, place: str, needed: Collection[str], optional: Collection[str] = ()) -> None:
    """Refuse what is no object of these members."""
    if not isinstance(value, dict):
        raise SourceFault(place, f"write an object of {', '.join((*needed, *optional))}")
    if missing := [name for name in needed if name not in value]:
        raise SourceFault(place, f"add the member {missing[0]}")
    if unknown := [name for name in value if name not in needed and name not in optional]:
        raise SourceFault(pointer(place, unknown[0]), f"remove it; known are {', '.join((*needed, *optional))}")


def check_names(entries: Sequence[dict[str, Any]], place: str) -> None:
    """Refuse entries whose names are no texts, or not unique."""
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        name = entry["name"]
        if not isinstance(name, str) or name in seen:
            raise SourceFault(f"{place}/{number}/name", "write a text that no other one has as its name")
        seen.add(name)


def check_expression(expression: Any, place: str, scope: Scope) -> None:
    """Refuse unknown operators and names, and operands that are too few, too many or of the wrong kind."""
    left = [(expression, place, False)]
    while left:
        one, at, has_item = left.pop()
        if isinstance(one, dict):
            raise SourceFault(at, "write a literal or [operator, …]; an object is no expression")
        if isinstance(one, list):
            left += _check_operation(one, at, has_item, scope)


def pointer(place: str, name: str) -> str:
    """Return the JSON pointer of an object's member."""
    return f"{place}/{name.replace('~', '~0').replace('/', '~1')}"


def is_whole(value: Any, least: float, most: float) -> bool:
    """Say whether a JSON value is a whole number within bounds; 1 and 1.0 are the same."""
    return type(value) in (int, float) and least <= value <= most and value == int(value)


def _read_named(document: dict[str, Any], section: str) -> list[tuple[str, Any]]:
    entries, place = document[section], f"/{section}"
    if not isinstance(entries, list):
        raise SourceFault(place, "write a list of objects of name, expr")
    for number, entry in enumerate(entries):
        check_members(entry, f"{place}/{number}", ("name", "expr"))
    check_names(entries, place)
    return [(entry["name"], entry["expr"]) for entry in entries]


def _check_expressions(values: Sequence[tuple[str, Any]], checks: Sequence[tuple[str, Any]]) -> None:
    known: set[str] = set()
    scope = Scope(known)
    for number, (name, expression) in enumerate(values):
        check_expression(expression, f"/values/{number}/expr", scope)
        known.add(name)
    for number, (_, expression) in enumerate(checks):
        check_expression(expression, f"/checks/{number}/expr", scope)


def _check_operation(operation: list[Any], at: str, has_item: bool, scope: Scope) -> list[tuple[Any, str, bool]]:
    """Return the operands that are expressions, each with its place and whether `item` is known there."""
    operator = operation[0] if operation and isinstance(operation[0], str) else ""
    if operator not in OPERANDS or (operator == "var" and scope.variables is None):
        raise SourceFault(f"{at}/0", f"write one of the operators {' '.join(OPERANDS)}; var is for tests")
    if operator == "item" and not has_item:
        raise SourceFault(at, "use item only in the second operand of map, filter, all or any")
    further = []
    for number, kind in enumerate(_kinds(operator, len(operation) - 1, at), 1):
        operand, place = operation[number], f"{at}/{number}"
        if kind in "EB":
            further.append((operand, place, has_item or kind == "B"))
        elif not _is_literal(kind, operand, scope):
            raise SourceFault(place, _WANTED[kind])
    return further


def _kinds(operator: str, count: int, at: str) -> str:
    """Return the kind of each of the operands."""
    kinds = OPERANDS[operator]
    repeats = kinds[-1:] if kinds.endswith(("+", "*")) else ""
    if repeats:
        fixed, last = kinds[:-2], kinds[-2]
        kinds = fixed + last * max(count - len(fixed), 1 if repeats == "+" else 0)
    if len(kinds) != count:
        raise SourceFault(at, f"give {operator} {len(kinds)}{' or more' if repeats else ''} operands, not {count}")
    return kinds


def _is_literal(kind: str, operand: Any, scope: Scope) -> bool:
    if kind == "D":
        return is_whole(operand, 0, 9)
    if not isinstance(operand, str):
        return False
    names = {"T": None, "N": scope.values, "V": scope.variables}[kind]
    return names is None or operand in names
