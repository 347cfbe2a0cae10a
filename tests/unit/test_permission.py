"""A resource's policy admits a rule or refuses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signalbox_laptop.event_sources.permission import permits

ACCOUNT = "123456789012"
RULE = f"arn:aws:events:us-east-1:{ACCOUNT}:rule/signalbox.poll_data"
EVENTS = {"Service": "events.amazonaws.com"}


def statement(**changes: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": EVENTS, "Action": "lambda:InvokeFunction", "Resource": "*", **changes}


def is_permitted(*statements: dict[str, Any]) -> bool:
    return permits(json.dumps({"Statement": list(statements)}), "lambda:InvokeFunction", RULE, ACCOUNT)


@pytest.mark.parametrize(
    "allowed",
    [
        statement(),
        statement(Action=["lambda:GetFunction", "lambda:InvokeFunction"]),
        statement(Action="lambda:*"),
        statement(Principal="*"),
        statement(Principal={"Service": ["s3.amazonaws.com", "events.amazonaws.com"]}),
        statement(Condition={"ArnLike": {"AWS:SourceArn": RULE}}),
        statement(Condition={"ArnLike": {"aws:SourceArn": RULE.replace("poll_data", "*")}}),
        statement(Condition={"StringEquals": {"AWS:SourceAccount": ACCOUNT}}),
    ],
)
def test_a_policy_that_allows_eventbridge_lets_the_rule_in(allowed: dict[str, Any]) -> None:
    assert is_permitted(allowed)


@pytest.mark.parametrize(
    "other",
    [
        statement(Effect="Deny"),
        statement(Principal={"Service": "s3.amazonaws.com"}),
        statement(Action="lambda:GetFunction"),
        statement(Condition={"ArnLike": {"AWS:SourceArn": f"{RULE}-other"}}),
        statement(Condition={"StringEquals": {"AWS:SourceAccount": "999999999999"}}),
        statement(Condition={"ArnLike": {"AWS:SourceArn": RULE}, "StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
    ],
)
def test_a_policy_that_allows_another_or_less_does_not(other: dict[str, Any]) -> None:
    assert not is_permitted(other)


def test_no_policy_lets_nobody_in() -> None:
    assert not permits(None, "lambda:InvokeFunction", RULE, ACCOUNT)


def test_one_statement_that_allows_is_enough() -> None:
    assert is_permitted(statement(Action="lambda:GetFunction"), statement())
