"""A template's conditions are decided as CloudFormation decides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from signalbox_laptop.deploy.conditions import Decided

NO_VALUE = {"Ref": "AWS::NoValue"}
CONDITIONS = {
    "On": {"Fn::Equals": [{"Ref": "Pack"}, "on"]},
    "Named": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Secret"}, ""]}]},
    "Both": {"Fn::And": [{"Condition": "On"}, {"Condition": "Named"}]},
    "Either": {"Fn::Or": [{"Condition": "On"}, {"Condition": "Named"}]},
    "InVpc": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Subnets"}]}, ""]}]},
    "Listed": {"Fn::Equals": [{"Fn::Join": ["-", ["a", {"Ref": "Pack"}]]}, "a-on"]},
}


def decided(resources: Mapping[str, Any] | None = None, /, **parameters: str) -> Decided:
    given = {"Pack": "off", "Secret": "", "Subnets": ""} | parameters
    return Decided({"Conditions": CONDITIONS, "Resources": resources or {}}, given)


@pytest.mark.parametrize(
    ("condition", "parameters", "holds"),
    [
        ("On", {"Pack": "on"}, True),
        ("On", {}, False),
        ("Named", {"Secret": "arn"}, True),
        ("Both", {"Pack": "on"}, False),
        ("Both", {"Pack": "on", "Secret": "arn"}, True),
        ("Either", {"Secret": "arn"}, True),
        ("Either", {}, False),
        ("InVpc", {"Subnets": "subnet-1,subnet-2"}, True),
        ("InVpc", {}, False),
        ("Listed", {"Pack": "on"}, True),
    ],
)
def test_a_condition_is_decided_by_the_parameters(condition: str, parameters: dict[str, str], holds: bool) -> None:
    assert decided(**parameters).holds(condition) is holds


def test_a_resource_whose_condition_fails_is_not_made() -> None:
    resources = {"Always": {"Type": "T"}, "Sometimes": {"Type": "T", "Condition": "On"}}
    assert set(decided(resources).resources()) == {"Always"}
    assert set(decided(resources, Pack="on").resources()) == {"Always", "Sometimes"}


def test_nested_choice_becomes_its_branch_and_no_value_removes_it() -> None:
    choice = {"Fn::If": ["On", {"Fn::If": ["Named", "both", "one"]}, NO_VALUE]}
    resources = {"R": {"Type": "T", "Properties": {"A": choice, "L": ["x", choice], "V": {"Ref": "Other"}}}}
    assert decided(resources).resources()["R"]["Properties"] == {"L": ["x"], "V": {"Ref": "Other"}}
    assert decided(resources, Pack="on").resources()["R"]["Properties"]["A"] == "one"
    assert decided(resources, Pack="on", Secret="arn").resources()["R"]["Properties"]["L"] == ["x", "both"]


RULES = {
    "Pack": {
        "RuleCondition": {"Fn::Equals": [{"Ref": "Pack"}, "on"]},
        "Assertions": [
            {
                "Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Secret"}, ""]}]},
                "AssertDescription": "give a secret",
            },
            {"Assert": {"Fn::EachMemberEquals": [{"Ref": "Subnets"}, "a"]}, "AssertDescription": "no subnet but a"},
        ],
    },
    "Always": {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Odd"}, ""]}, "AssertDescription": "nothing odd"}]},
}


@pytest.mark.parametrize(
    ("parameters", "refusals"),
    [
        ({}, []),
        ({"Odd": "yes"}, ["nothing odd"]),
        ({"Pack": "on"}, ["give a secret", "no subnet but a"]),
        ({"Pack": "on", "Secret": "arn", "Subnets": "a,a"}, []),
        ({"Pack": "on", "Secret": "arn", "Subnets": "a,b"}, ["no subnet but a"]),
    ],
)
def test_a_rule_refuses_parameters_in_the_words_of_its_assertions(
    parameters: dict[str, str], refusals: list[str]
) -> None:
    given = {"Pack": "off", "Secret": "", "Subnets": "", "Odd": ""} | parameters
    assert Decided({"Rules": RULES, "Resources": {}}, given).refusals() == refusals
