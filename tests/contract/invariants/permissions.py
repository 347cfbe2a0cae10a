"""What every policy keeps: named actions, on named resources, for named principals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.template import Template, statements

# For which AWS knows no resource, or none that is there when they are asked for.
WITHOUT_RESOURCE = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}


def hold_no_wildcard(template: Template) -> Iterator[str]:
    """Of what is allowed; what is denied may well be denied to everybody."""
    for name, statement in _allowed(template):
        bare = {value for key, value in _names(statement) if key == "Action"} <= WITHOUT_RESOURCE
        for key, value in _names(statement):
            wide = value in ("*", {"AWS": "*"}) or (key == "Action" and "*" in value)
            if wide and not (key == "Resource" and bare):
                yield f"{name}: allows {key} {value}"


def come_from_no_managed_policy_of_awss(template: Template) -> Iterator[str]:
    """They are for all resources of an account, also those that SAM gives a function without a role of the template."""
    for name, role in template.of("AWS::IAM::Role").items():
        for policy in role.get("ManagedPolicyArns", []):
            if ":iam::aws:policy/" in str(policy):
                yield f"{name}: has AWS's policy {policy}"


def _names(statement: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each action, resource and principal, of which a statement may have one or a list."""
    for key in ("Action", "Resource", "Principal"):
        values = statement.get(key, [])
        yield from ((key, value) for value in (values if isinstance(values, list) else [values]))


def _allowed(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each statement that allows something: of roles, managed policies and queue policies. Not of endpoints, which give
    nobody anything: theirs only narrow what a role has."""
    for name, resource in template.resources.items():
        if resource["Type"] == "AWS::EC2::VPCEndpoint":
            continue
        properties = resource.get("Properties", {})
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
        if "PolicyDocument" in properties:
            documents.append(properties["PolicyDocument"])
        for document in documents:
            allowed = (statement for statement in statements(document) if statement["Effect"] == "Allow")
            yield from ((name, statement) for statement in allowed)
