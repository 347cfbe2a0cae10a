"""Read one function of a deployed template: what its role allows, and what its environment names.

A right is an action on one resource, written as text whatever way the template has written it: `HighLane.Arn`,
`JobsBucket.Arn/*`, an ARN. Of a key it says by way of which service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.template import BUCKET, FUNCTION, QUEUE, Template, listed, referred

ROLE, POLICIES = "AWS::IAM::Role", ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
BUS = "AWS::Events::EventBus"
ARN_IS_APART = {QUEUE, BUCKET, BUS, FUNCTION, "AWS::KMS::Key"}  # of these a Ref is not the ARN


class Right(NamedTuple):
    """Allow one action on one resource."""

    action: str
    resource: str


@dataclass(frozen=True, slots=True)
class Place:
    """Find a function where it is deployed."""

    template: Template
    parameters: Mapping[str, str]
    function: str  # its logical id

    @property
    def properties(self) -> Mapping[str, Any]:
        return self.template.of(FUNCTION)[self.function]

    @property
    def environment(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.properties["Environment"]["Variables"]
        return found

    @property
    def role(self) -> str:
        return referred(self.properties["Role"]) or "?"

    def arn_in(self, variable: str) -> str | None:
        """Return the ARN of what a variable names."""
        value = self.environment.get(variable)
        return (self.arn(value) or None) if value is not None else None

    def given(self, parameter: str) -> str | None:
        return self.parameters.get(parameter) or None

    def granted(self) -> Iterator[Right]:
        """Yield all that its role allows."""
        for document in self._documents():
            for statement in document["Statement"]:
                if statement["Effect"] == "Allow":
                    yield from self._rights(statement)

    def arn(self, value: Any) -> str:
        """Return the ARN of what a reference names."""
        named = referred(value)
        resource = self.template.resources.get(named or "", {})
        return f"{named}.Arn" if resource.get("Type") in ARN_IS_APART else self.spelled(value)

    def spelled(self, value: Any) -> str:
        """Return a value as text, with parameters filled in."""
        match value:
            case {"Ref": name}:
                return self.parameters.get(name, name)
            case {"Fn::GetAtt": [name, attribute]}:
                return f"{name}.{attribute}"
            case {"Fn::Sub": text}:
                return re.sub(r"\$\{([^}]+)\}", lambda found: self._filled(found[1]), text)
            case {"Fn::Join": [separator, parts]}:
                return str(separator).join(map(self.spelled, parts))
            case _:
                return str(value)

    def _filled(self, name: str) -> str:
        return f"${{{name}}}" if name.startswith("AWS::") else self.parameters.get(name, name)

    def _documents(self) -> Iterator[Mapping[str, Any]]:
        role = self.template.of(ROLE)[self.role]
        yield from (policy["PolicyDocument"] for policy in role.get("Policies", []))
        attached = {referred(policy) for policy in role.get("ManagedPolicyArns", [])}
        for kind in POLICIES:
            for name, policy in self.template.of(kind).items():
                if name in attached or self.role in map(referred, policy.get("Roles", [])):
                    yield policy["PolicyDocument"]

    def _rights(self, statement: Mapping[str, Any]) -> Iterator[Right]:
        ways = [f" via {way}" for way in self._ways(statement)] or [""]
        for action in listed(statement["Action"]):
            for resource in listed(statement.get("Resource", [])):
                yield from (Right(action, self.spelled(resource) + way) for way in ways)
            for resource in listed(statement.get("NotResource", [])):
                yield Right(action, f"all but {self.spelled(resource)}")

    def _ways(self, statement: Mapping[str, Any]) -> Iterator[str]:
        via = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", [])
        yield from (self.spelled(one).partition(".")[0] for one in listed(via))
