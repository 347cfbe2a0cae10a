"""A template's parameters are checked as CloudFormation checks them."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox_laptop.deploy.parameters import faults_of
from tests.support.template import source

DECLARED: dict[str, dict[str, Any]] = {
    "RuleState": {"Type": "String", "AllowedValues": ["ENABLED", "DISABLED"]},
    "LaneBatchSize": {"Type": "Number", "MinValue": 1, "MaxValue": 10},
    "Share": {"Type": "Number", "MinValue": 0},
    "Secret": {"Type": "String", "AllowedPattern": "(arn:.+)?", "ConstraintDescription": "must be an ARN, or empty"},
    "Zone": {"Type": "String", "AllowedPattern": "[a-z]+"},
    "Subnets": {"Type": "CommaDelimitedList", "AllowedValues": ["a", "b"]},
    "Free": {"Type": "String"},
}


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("RuleState", "OFF", "parameter RuleState can't be 'OFF': it takes one of ENABLED, DISABLED"),
        ("LaneBatchSize", "many", "parameter LaneBatchSize can't be 'many': it takes a number from 1 to 10"),
        ("LaneBatchSize", "11", "parameter LaneBatchSize can't be '11': it takes a number from 1 to 10"),
        ("LaneBatchSize", "nan", "parameter LaneBatchSize can't be 'nan': it takes a number from 1 to 10"),
        ("Share", "-1", "parameter Share can't be '-1': it takes a number from 0"),
        ("Secret", "x", "parameter Secret can't be 'x': it must be an ARN, or empty"),
        ("Zone", "a1", "parameter Zone can't be 'a1': it takes what matches [a-z]+"),
        ("Subnets", "a,c", "parameter Subnets can't be 'c': it takes one of a, b"),
        ("RuleStat", "x", "the template has no parameter RuleStat; did you mean 'RuleState'?"),
    ],
)
def test_value_that_a_parameter_does_not_take_is_refused(name: str, value: str, fault: str) -> None:
    assert faults_of(DECLARED, {name: value}) == [fault]


def test_values_that_fit_are_taken() -> None:
    given = {"RuleState": "ENABLED", "LaneBatchSize": "10", "Share": "0.5", "Secret": "", "Zone": "a", "Subnets": "a,b"}
    assert faults_of(DECLARED, {**given, "Free": "anything"}) == []


def test_unknown_parameter_of_a_large_template_names_where_they_are_listed() -> None:
    assert faults_of(source()["Parameters"], {"Xyzzy": "1"}) == [
        "the template has no parameter Xyzzy; its Parameters list them"
    ]
