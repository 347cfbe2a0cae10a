"""The database, the network and the key, with each combination of parameters: what is made, and what is told of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from local.conditions import Decided
from local.transform import parameters_of
from signalbox.clients import Clients
from tests.contract import test_rights
from tests.contract.test_job_plane import granted
from tests.support.template import (
    CERTIFICATES,
    FUNCTION,
    KEY,
    LOG_GROUP,
    QUEUE,
    RULE,
    SECRET,
    SECRET_KIND,
    TOPIC,
    VARIANTS,
    Template,
    deployed,
    deployed_with,
    listed,
    source,
    text,
)

CLUSTER, INSTANCE, PROXY = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance", "AWS::RDS::DBProxy"
ENDPOINT, ROLE = "AWS::EC2::VPCEndpoint", "AWS::IAM::Role"
# By their last word, for how many of them each variant makes.
INFRASTRUCTURE = {
    "engine": {},
    "forecasts": {},
    "everything": {},
    "aurora": {"DBCluster": 1, "DBInstance": 1, "VPC": 1, "Subnet": 2, "VPCEndpoint": 6, "Secret": 2},
    "proxy": {"DBCluster": 1, "DBInstance": 2, "DBProxy": 1, "VPC": 1, "Subnet": 2, "VPCEndpoint": 6, "Secret": 2},
    "aurora in a vpc": {"DBCluster": 1, "DBInstance": 1, "DBProxy": 1, "Secret": 2},
}
COUNTED = ("DBCluster", "DBInstance", "DBProxy", "VPC", "Subnet", "VPCEndpoint", "Secret")
BOUNDARY, BOUND = "arn:aws:iam::123456789012:policy/boundary", {"Ref": "PermissionsBoundaryArn"}
IDENTITY = "arn:aws:ses:us-east-1:123456789012:identity/example.com"
WRITTEN_FOR_AURORA = {"Database": "aurora", "CaBundleLayerArn": CERTIFICATES}

each_variant = pytest.mark.parametrize("variant", VARIANTS)
each_aurora = pytest.mark.parametrize("variant", [name for name in VARIANTS if VARIANTS[name].get("Database")])


def only(kind: str, variant: str = "aurora") -> dict[str, Any]:
    (properties,) = deployed(variant).of(kind).values()
    return properties


def refusals(**given: str) -> list[str]:
    template = source()
    return Decided(template, parameters_of(template, given)).refusals()


def environments(variant: str) -> Iterator[dict[str, Any]]:
    for function in deployed(variant).of(FUNCTION).values():
        yield function["Environment"]["Variables"]


def ways_in(template: Template) -> set[tuple[str, str]]:
    """From which group to which other a connection gets in."""
    return {
        (rule["SourceSecurityGroupId"]["Fn::GetAtt"][0], rule["GroupId"]["Fn::GetAtt"][0])
        for rule in template.of("AWS::EC2::SecurityGroupIngress").values()
    }


def test_each_variant_is_counted() -> None:
    assert set(INFRASTRUCTURE) == set(VARIANTS)


@each_variant
def test_a_database_and_a_network_are_made_where_they_are_asked_for_and_nowhere_else(variant: str) -> None:
    made = [resource["Type"].rpartition("::")[2] for resource in deployed(variant).resources.values()]
    assert {kind: made.count(kind) for kind in COUNTED if kind in made} == INFRASTRUCTURE[variant]


@pytest.mark.parametrize("variant", ["engine", "forecasts", "everything"])
def test_a_stack_with_a_database_of_ones_own_makes_nothing_of_ec2_and_rds(variant: str) -> None:
    kinds = {resource["Type"].split("::")[1] for resource in deployed(variant).resources.values()}
    assert not kinds & {"EC2", "RDS"}


@pytest.mark.parametrize("variant", ["engine", "forecasts"])
def test_without_a_network_the_functions_stand_outside_of_any(variant: str) -> None:
    assert not any("VpcConfig" in function for function in deployed(variant).of(FUNCTION).values())


@pytest.mark.parametrize(
    ("variant", "subnets", "groups"),
    [
        ("everything", {"Ref": "SubnetIds"}, {"Ref": "SecurityGroupIds"}),
        (
            "aurora",
            [{"Ref": "PrivateSubnetA"}, {"Ref": "PrivateSubnetB"}],
            [{"Ref": "FunctionsSecurityGroup"}, {"Ref": "DatabaseClientsSecurityGroup"}],
        ),
    ],
)
def test_in_a_network_every_function_has_its_subnets_and_groups(variant: str, subnets: Any, groups: Any) -> None:
    for function in deployed(variant).of(FUNCTION).values():
        assert function["VpcConfig"] == {"SubnetIds": subnets, "SecurityGroupIds": groups}


def test_in_a_given_network_the_functions_wear_its_groups_and_one_that_leads_to_the_database() -> None:
    for function in deployed("aurora in a vpc").of(FUNCTION).values():
        (separator, (joined, groups)) = function["VpcConfig"]["SecurityGroupIds"]["Fn::Split"][1]["Fn::Join"]
        assert (separator, joined) == (",", {"Ref": "DatabaseClientsSecurityGroup"})
        assert groups == {"Fn::Join": [",", {"Ref": "SecurityGroupIds"}]}
        assert function["VpcConfig"]["SubnetIds"] == {"Ref": "SubnetIds"}


@pytest.mark.parametrize(
    ("variant", "host"),
    [
        ("engine", {"Ref": "DatabaseHost"}),
        ("aurora", {"Fn::GetAtt": ["DatabaseCluster", "Endpoint.Address"]}),
        ("proxy", {"Fn::GetAtt": ["DatabaseProxyResource", "Endpoint"]}),
        ("aurora in a vpc", {"Fn::GetAtt": ["DatabaseProxyResource", "Endpoint"]}),
    ],
)
def test_every_function_goes_to_the_proxy_where_there_is_one(variant: str, host: Any) -> None:
    for variables in environments(variant):
        assert variables["SIGNALBOX_DATABASE_HOST"] == host


def test_without_a_proxy_the_certificates_of_rds_are_in_a_layer_of_every_function() -> None:
    for function in deployed("aurora").of(FUNCTION).values():
        assert {"Ref": "CaBundleLayerArn"} in function["Layers"]
        assert function["Environment"]["Variables"]["SIGNALBOX_CA_BUNDLE"] == "/opt/certificates/rds.pem"
    for variables in environments("proxy"):
        assert variables["SIGNALBOX_CA_BUNDLE"] == ""


def test_the_layer_of_certificates_is_left_alone_where_a_proxy_shows_a_public_one() -> None:
    """Its bundle holds RDS's authorities alone: who has given it already may still take a proxy."""
    template = deployed_with({**WRITTEN_FOR_AURORA, "DatabaseProxy": "on"})
    for function in template.of(FUNCTION).values():
        assert function["Environment"]["Variables"]["SIGNALBOX_CA_BUNDLE"] == ""


def test_a_bundle_that_is_named_goes_before_that_of_the_layer() -> None:
    template = deployed_with({**WRITTEN_FOR_AURORA, "CaBundle": "/opt/other.pem"})
    for function in template.of(FUNCTION).values():
        assert function["Environment"]["Variables"]["SIGNALBOX_CA_BUNDLE"] == {"Ref": "CaBundle"}


@each_aurora
def test_only_the_functions_and_the_proxy_reach_the_database(variant: str) -> None:
    clients, proxy = "DatabaseClientsSecurityGroup", "ProxySecurityGroup"
    direct = {(clients, "DatabaseSecurityGroup")}
    proxied = direct | {(proxy, "DatabaseSecurityGroup"), (clients, proxy)}
    assert ways_in(deployed(variant)) == (proxied if deployed(variant).of(PROXY) else direct)


def test_a_proxy_that_comes_or_goes_cuts_no_function_off() -> None:
    """Groups are changed before functions are, and what only one of both deploys has is deleted after them."""
    without, beside = (deployed_with({**WRITTEN_FOR_AURORA, "DatabaseProxy": proxy}) for proxy in ("off", "on"))
    shared = set(without.resources) & set(beside.resources)
    moved = [
        name
        for name in sorted(shared)
        if without.resources[name]["Type"].startswith("AWS::EC2::")
        and without.resources[name] != beside.resources[name]
    ]
    assert moved == []
    assert ways_in(without) < ways_in(beside)


def test_the_network_has_an_endpoint_for_all_that_the_code_calls_of_aws_but_mail() -> None:
    services = {
        text(endpoint["ServiceName"]).rpartition(".")[2] for endpoint in deployed("aurora").of(ENDPOINT).values()
    }
    called = {name.strip("_") for name in vars(Clients) if not name.startswith("__")}
    assert called - services == {"sesv2"}, "docs/deploy.md says so"
    assert services <= called


def test_a_cluster_pauses_after_a_while_only_where_it_may_come_down_to_nothing() -> None:
    assert only(CLUSTER)["ServerlessV2ScalingConfiguration"]["SecondsUntilAutoPause"] == {"Ref": "DatabasePauseSeconds"}
    assert "SecondsUntilAutoPause" not in only(CLUSTER, "proxy")["ServerlessV2ScalingConfiguration"]


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({"DatabaseSnapshot": "before"}, {"SnapshotIdentifier"}),
        (
            {"DatabaseRestoreFrom": "cluster", "DatabaseRestoreTime": "2026-03-10T02:29:00Z"},
            {"SourceDBClusterIdentifier", "RestoreToTime"},
        ),
    ],
)
def test_a_restored_cluster_brings_its_owner_and_its_database_along(given: dict[str, str], origin: set[str]) -> None:
    (cluster,) = deployed_with({**WRITTEN_FOR_AURORA, **given}).of(CLUSTER).values()
    assert not {"MasterUsername", "DatabaseName"} & set(cluster)
    assert set(cluster) - set(only(CLUSTER)) == origin


@each_aurora
def test_an_error_of_the_database_tells_its_log_nothing_of_the_rows(variant: str) -> None:
    (group,) = deployed(variant).of("AWS::RDS::DBClusterParameterGroup").values()
    parameters = group["Parameters"]
    assert parameters["log_error_verbosity"] == "terse"
    assert parameters["log_parameter_max_length"] == parameters["log_parameter_max_length_on_error"] == "0"


def test_what_a_replaced_database_has_logged_is_kept_for_its_time() -> None:
    group = deployed("aurora").resources["DatabaseLogGroup"]
    assert group["UpdateReplacePolicy"] == "Retain"
    assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@each_variant
def test_every_role_is_bounded_where_the_account_asks_for_it(variant: str) -> None:
    bounded = deployed_with({**VARIANTS[variant], "PermissionsBoundaryArn": BOUNDARY}).of(ROLE)
    assert [name for name, role in bounded.items() if role.get("PermissionsBoundary") != BOUND] == []
    assert not any("PermissionsBoundary" in role for role in deployed(variant).of(ROLE).values())


@each_aurora
def test_the_users_of_the_functions_are_named_in_their_secrets(variant: str) -> None:
    secrets = deployed(variant).of(SECRET_KIND).values()
    users = [secret["GenerateSecretString"]["SecretStringTemplate"] for secret in secrets]
    assert len(set(users)) == len(users)


@each_variant
def test_the_logs_may_use_the_key_for_every_group_of_the_stack(variant: str) -> None:
    (statement,) = [one for one in key_policy(variant) if one["Sid"] == "LogsOfThisStack"]
    (context,) = statement["Condition"]["ArnLike"].values()
    patterns = [re.sub(r"\$\{.*?\}", "x", text(one).partition(":log-group:")[2]) for one in context]
    for name, group in deployed(variant).of(LOG_GROUP).items():
        concrete = re.sub(r"\$\{.*?\}", "x", text(group["LogGroupName"]))
        assert any(fnmatchcase(concrete, pattern) for pattern in patterns), name


@each_variant
def test_rules_may_use_the_key_for_the_queue_that_they_give_up_to(variant: str) -> None:
    (statement,) = [one for one in key_policy(variant) if one["Principal"] == {"Service": "events.amazonaws.com"}]
    (queue,) = statement["Condition"]["ArnEquals"].values()
    given_up_to = {
        target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
        for rule in deployed(variant).of(RULE).values()
        for target in rule["Targets"]
    }
    names = {text(deployed(variant).of(QUEUE)[id_]["QueueName"]) for id_ in given_up_to}
    assert names == {text(queue).rpartition("AccountId}:")[2]}


@each_variant
def test_the_key_knows_every_service_that_a_function_asks_it_through(variant: str) -> None:
    known = {
        text(service).partition(".")[0]
        for statement in key_policy(variant)
        for service in statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", [])
    }
    for name in deployed(variant).of(FUNCTION):
        assert set(keys_of(deployed(variant), name)) <= known, name


@each_aurora
def test_each_function_may_do_what_its_code_does_and_nothing_else_with_a_database_of_the_stack(variant: str) -> None:
    assert list(test_rights.differences(*test_rights.deployed_with(VARIANTS[variant]))) == []


def keys_of(template: Template, function: str) -> Iterator[str]:
    """The services through which it may use the stack's key."""
    for statement in granted(function, template):
        if "kms:Decrypt" in listed(statement["Action"]) and statement["Resource"] == {
            "Fn::GetAtt": ["StackKey", "Arn"]
        }:
            for service in listed(statement["Condition"]["StringEquals"]["kms:ViaService"]):
                yield text(service).partition(".")[0]


def key_policy(variant: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = only("AWS::KMS::Key", variant)["KeyPolicy"]["Statement"]
    return statements


@each_variant
def test_the_rules_of_the_template_take_each_variant(variant: str) -> None:
    assert refusals(**VARIANTS[variant]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs DatabaseSecretArn"),
        ({"DatabaseSecretArn": SECRET, "DatabaseProxy": "on"}, "DatabaseProxy=on is for the Aurora"),
        ({"DatabaseSecretArn": SECRET, "DatabaseSnapshot": "one"}, "restore your own database by its own means"),
        ({"DatabaseSecretArn": SECRET, "SubnetIds": "subnet-1"}, "SubnetIds and SecurityGroupIds belong together"),
        ({"DatabaseSecretArn": SECRET, "SecurityGroupIds": "sg-1"}, "SubnetIds and SecurityGroupIds belong together"),
        ({"Database": "aurora"}, "needs CaBundleLayerArn"),
        ({**WRITTEN_FOR_AURORA, "DatabaseSecretArn": SECRET}, "makes its own secrets"),
        ({**WRITTEN_FOR_AURORA, "DatabaseSecretKeyArn": KEY}, "makes its own secrets"),
        ({**WRITTEN_FOR_AURORA, "DatabaseHost": "db.example.com"}, "makes its own secrets"),
        ({**WRITTEN_FOR_AURORA, "VpcId": "vpc-1"}, "needs both VpcId and SubnetIds"),
        (
            {**WRITTEN_FOR_AURORA, "SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"},
            "needs both VpcId and SubnetIds",
        ),
        ({**WRITTEN_FOR_AURORA, "ForecastsPack": "on"}, "a network with a NAT gateway"),
        ({**WRITTEN_FOR_AURORA, "DatabaseRestoreFrom": "one"}, "belong together"),
        ({**WRITTEN_FOR_AURORA, "DatabaseRestoreTime": "2026-03-10T02:29:00Z"}, "belong together"),
        ({**WRITTEN_FOR_AURORA, "DatabaseProxy": "on", "WriterSecretArn": SECRET}, "the log-ins that the stack makes"),
        ({**WRITTEN_FOR_AURORA, "DatabaseProxy": "on", "ReaderSecretArn": SECRET}, "the log-ins that the stack makes"),
        ({"DatabaseSecretArn": SECRET, "SenderAddress": "a@example.com"}, "SenderAddress belong together"),
        ({"DatabaseSecretArn": SECRET, "SenderIdentityArn": IDENTITY}, "SenderAddress belong together"),
        (
            {"DatabaseSecretArn": SECRET, "OperatorsTopicArn": TOPIC, "OperatorsEmail": "a@example.com"},
            "the topic that the stack makes",
        ),
        (
            {
                **WRITTEN_FOR_AURORA,
                "DatabaseSnapshot": "one",
                "DatabaseRestoreFrom": "two",
                "DatabaseRestoreTime": "2026-03-10T02:29:00Z",
            },
            "not from both",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_before_anything_is_made_with_what_to_give(
    given: dict[str, str], said: str
) -> None:
    (refusal,) = refusals(**given)
    assert said in refusal
