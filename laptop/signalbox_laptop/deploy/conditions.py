"""Decide a template's conditions for given parameters, and leave out what they exclude.

CloudFormation does this when it deploys. It is needed earlier, to see which tasks a template fires, which resources it
should make, and what its rules refuse. References to resources and to AWS's own values stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Template = Mapping[str, Any]
_NO_VALUE = {"Ref": "AWS::NoValue"}


class Decided:
    """Decide a template's conditions under one set of parameters."""

    def __init__(self, template: Template, parameters: Mapping[str, str]) -> None:
        self._template, self._parameters = template, parameters
        self._functions: Mapping[str, Callable[[Any], bool]] = {
            "Condition": self.holds,
            "Fn::Equals": lambda sides: self.text(sides[0]) == self.text(sides[1]),
            "Fn::Not": lambda given: not self._decide(given[0]),
            "Fn::And": lambda given: all(map(self._decide, given)),
            "Fn::Or": lambda given: any(map(self._decide, given)),
            "Fn::EachMemberEquals": lambda sides: {*self.text(sides[0]).split(",")} == {self.text(sides[1])},
        }

    def holds(self, condition: str) -> bool:
        return self._decide(self._template["Conditions"][condition])

    def refusals(self) -> list[str]:
        """Return the assertions of the template's rules that fail: CloudFormation would make nothing then."""
        return [
            assertion["AssertDescription"]
            for rule in self._template.get("Rules", {}).values()
            if "RuleCondition" not in rule or self._decide(rule["RuleCondition"])
            for assertion in rule["Assertions"]
            if not self._decide(assertion["Assert"])
        ]

    def resources(self) -> dict[str, Any]:
        """Return the resources that are made, as they are made."""
        return {
            name: self._substitute(resource)
            for name, resource in self._template["Resources"].items()
            if "Condition" not in resource or self.holds(resource["Condition"])
        }

    def knows(self, given: Any) -> bool:
        """Say whether this is a value, or one of the parameters."""
        return not isinstance(given, dict) or given.get("Ref") in self._parameters

    def text(self, given: Any) -> str:
        """Return a value's text, as far as the parameters determine it."""
        if isinstance(given, dict) and "Ref" in given:
            return str(self._parameters.get(given["Ref"], given["Ref"]))
        if isinstance(given, dict) and "Fn::Join" in given:
            separator, parts = given["Fn::Join"]
            return separator.join(map(self.text, parts)) if isinstance(parts, list) else self.text(parts)
        return str(given)

    def _decide(self, given: Mapping[str, Any]) -> bool:
        [(function, argument)] = given.items()
        return self._functions[function](argument)

    def _substitute(self, value: Any) -> Any:
        """Return the value with each Fn::If replaced by its branch, and without AWS::NoValue."""
        if isinstance(value, dict):
            if "Fn::If" in value:
                condition, true, false = value["Fn::If"]
                return self._substitute(true if self.holds(condition) else false)
            found = {name: self._substitute(part) for name, part in value.items()}
            return _joined({name: part for name, part in found.items() if part != _NO_VALUE})
        if isinstance(value, list):
            return [part for part in map(self._substitute, value) if part != _NO_VALUE]
        return value


def _joined(value: dict[str, Any]) -> Any:
    """Return the text that a Fn::Join of plain texts comes to; anything else stays as it is."""
    match value:
        case {"Fn::Join": [str(separator), [*parts]]} if all(isinstance(part, str) for part in parts):
            return separator.join(parts)
    return value
