"""The network, the logins, the key and the roles hold with each combination of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.template import parameters_of
from tests.contract.test_job_plane import granted
from tests.support.template import (
    CERTIFICATES,
    FUNCTION,
    LOG_GROUP,
    QUEUE,
    ROLE,
    RULE,
    SECRET,
    TOPIC,
    TOPIC_KIND,
    VARIANTS,
    Template,
    deployed,
    deployed_with,
    listed,
    source,
    text,
)

BOUNDARY, BOUND = "arn:aws:iam::123456789012:policy/boundary", {"Ref": "PermissionsBoundaryArn"}
IDENTITY = "arn:aws:ses:us-east-1:123456789012:identity/example.com"

each_variant = pytest.mark.parametrize("variant", VARIANTS)


def refusals(**given: str) -> list[str]:
    template = source()
    return Decided(template, parameters_of(template, given)).refusals()


@pytest.mark.parametrize("variant", ["engine", "packs"])
def test_without_a_network_the_functions_stand_outside_of_any(variant: str) -> None:
    assert not any("VpcConfig" in function for function in deployed(variant).of(FUNCTION).values())


def test_in_a_network_every_function_has_its_subnets_and_groups() -> None:
    for function in deployed().of(FUNCTION).values():
        assert function["VpcConfig"] == {
            "SubnetIds": {"Ref": "SubnetIds"},
            "SecurityGroupIds": {"Ref": "SecurityGroupIds"},
        }


@pytest.mark.parametrize(
    ("given", "bundle"),
    [
        ({}, ""),
        ({"CaBundleLayerArn": CERTIFICATES}, "/opt/certificates/rds.pem"),
    ],
)
def test_the_certificates_are_the_layers_unless_others_are_named(given: dict[str, str], bundle: Any) -> None:
    for function in deployed_with({"DatabaseSecretArn": SECRET, **given}).of(FUNCTION).values():
        assert ({"Ref": "CaBundleLayerArn"} in function["Layers"]) == bool(given)
        assert function["Environment"]["Variables"]["SIGNALBOX_CA_BUNDLE"] == bundle


def test_migrator_gets_only_the_logins_it_must_make() -> None:
    names = {"SIGNALBOX_WRITER_LOGIN_SECRET_ARN", "SIGNALBOX_READER_LOGIN_SECRET_ARN"}
    given = dict(VARIANTS["everything"])
    for asked, told in (("on", names), ("off", set())):
        migrator = deployed_with({**given, "MakeLogIns": asked}).of(FUNCTION)["MigratorFunction"]
        assert names & set(migrator["Environment"]["Variables"]) == told


@each_variant
def test_every_role_is_bounded_where_the_account_asks_for_it(variant: str) -> None:
    bounded = deployed_with({**VARIANTS[variant], "PermissionsBoundaryArn": BOUNDARY}).of(ROLE)
    assert [name for name, role in bounded.items() if role.get("PermissionsBoundary") != BOUND] == []
    assert not any("PermissionsBoundary" in role for role in deployed(variant).of(ROLE).values())


@each_variant
def test_the_logs_may_use_the_key_for_every_group_of_the_stack(variant: str) -> None:
    (statement,) = [one for one in key_policy(variant) if one["Sid"] == "LogsOfThisStack"]
    (context,) = statement["Condition"]["ArnLike"].values()
    pattern = re.sub(r"\$\{.*?\}", "x", text(context).partition(":log-group:")[2])
    for name, group in deployed(variant).of(LOG_GROUP).items():
        concrete = re.sub(r"\$\{.*?\}", "x", text(group["LogGroupName"]))
        assert fnmatchcase(concrete, pattern), name


@each_variant
def test_rules_may_use_the_key_of_their_dead_letter_queue(variant: str) -> None:
    (statement,) = [one for one in key_policy(variant) if one["Principal"] == {"Service": "events.amazonaws.com"}]
    (queue,) = statement["Condition"]["ArnEquals"].values()
    given_up_to = {
        target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
        for rule in deployed(variant).of(RULE).values()
        for target in rule["Targets"]
    }
    names = {text(deployed(variant).of(QUEUE)[id_]["QueueName"]) for id_ in given_up_to}
    assert names == {text(queue).rpartition("AccountId}:")[2]}


def test_alarms_may_use_the_key_for_each_topic_that_the_stack_makes() -> None:
    (statement,) = [one for one in key_policy("engine") if one["Principal"] == {"Service": "cloudwatch.amazonaws.com"}]
    (topics,) = statement["Condition"]["ArnEquals"].values()
    names = {text(topic["TopicName"]) for topic in deployed("engine").of(TOPIC_KIND).values()}
    assert {text(one).rpartition("AccountId}:")[2] for one in topics} == names
    assert len(names) == 2


@each_variant
def test_the_key_knows_every_service_that_a_function_asks_it_through(variant: str) -> None:
    known = {
        text(service).partition(".")[0]
        for statement in key_policy(variant)
        for service in statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", [])
    }
    for name in deployed(variant).of(FUNCTION):
        assert set(keys_of(deployed(variant), name)) <= known, name


def keys_of(template: Template, function: str) -> Iterator[str]:
    """Yield the services through which it may use the stack's key."""
    for statement in granted(function, template):
        if "kms:Decrypt" in listed(statement["Action"]) and statement["Resource"] == {
            "Fn::GetAtt": ["StackKey", "Arn"]
        }:
            for service in listed(statement["Condition"]["StringEquals"]["kms:ViaService"]):
                yield text(service).partition(".")[0]


def key_policy(variant: str) -> list[dict[str, Any]]:
    (key,) = deployed(variant).of("AWS::KMS::Key").values()
    found: list[dict[str, Any]] = key["KeyPolicy"]["Statement"]
    return found


@each_variant
def test_the_rules_of_the_template_take_each_variant(variant: str) -> None:
    assert refusals(**VARIANTS[variant]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"DatabaseSecretArn": SECRET, "SubnetIds": "subnet-1"}, "SubnetIds and SecurityGroupIds belong together"),
        ({"DatabaseSecretArn": SECRET, "SecurityGroupIds": "sg-1"}, "SubnetIds and SecurityGroupIds belong together"),
        ({"DatabaseSecretArn": SECRET, "MakeLogIns": "on", "WriterSecretArn": SECRET}, "needs WriterSecretArn and"),
        ({"DatabaseSecretArn": SECRET, "SenderAddress": "a@example.com"}, "SenderAddress belong together"),
        ({"DatabaseSecretArn": SECRET, "SenderIdentityArn": IDENTITY}, "SenderAddress belong together"),
        (
            {"DatabaseSecretArn": SECRET, "OperatorsTopicArn": TOPIC, "OperatorsEmail": "a@example.com"},
            "the topic that the stack makes",
        ),
    ],
)
def test_conflicting_parameters_are_refused_first_with_what_to_give(given: dict[str, str], said: str) -> None:
    (refusal,) = refusals(**given)
    assert said in refusal
