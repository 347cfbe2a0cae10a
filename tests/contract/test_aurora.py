"""stacks/aurora.yaml makes a database that is hard to lose and hard to reach, and names what the application needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.aws.clients import Clients
from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.parameters import faults_of
from signalbox_laptop.deploy.template import parameters_of, read_template
from tests.support.template import (
    ALARM,
    LOG_GROUP,
    ROLE,
    ROOT,
    SECRET,
    SECRET_KIND,
    VARIANTS,
    Template,
    database,
    deployed_with,
    referred,
    source,
    text,
)

CLUSTER, PROXY, GROUP = "AWS::RDS::DBCluster", "AWS::RDS::DBProxy", "AWS::EC2::SecurityGroup"
GIVEN_NETWORK = {"VpcId": "vpc-1", "SubnetIds": "subnet-1,subnet-2"}
COMBINATIONS = {
    "least": {},
    "proxy": {"DatabaseProxy": "on", "DatabaseStandby": "on", "DatabaseMinCapacity": "0.5"},
    "in a vpc": {"DatabaseProxy": "on", **GIVEN_NETWORK},
}


@pytest.fixture(params=COMBINATIONS)
def template(request: pytest.FixtureRequest) -> Template:
    return database(**COMBINATIONS[request.param])


def only(template: Template, kind: str) -> dict[str, Any]:
    [properties] = template.of(kind).values()
    return properties


def ways(template: Template) -> Iterator[tuple[str | None, str | None, Any]]:
    """Yield each allowed connection: its source group, its target group and its port."""
    for rule in template.of("AWS::EC2::SecurityGroupIngress").values():
        assert rule["FromPort"] == rule["ToPort"]
        yield referred(rule["SourceSecurityGroupId"]), referred(rule["GroupId"]), rule["FromPort"]
    for name, group in template.of(GROUP).items():
        for rule in group.get("SecurityGroupIngress", []):
            yield referred(rule["SourceSecurityGroupId"]), name, rule["ToPort"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("least", {"DBCluster": 1, "DBInstance": 1, "DBProxy": 0, "VPC": 1, "Subnet": 2, "VPCEndpoint": 6}),
        ("proxy", {"DBCluster": 1, "DBInstance": 2, "DBProxy": 1, "VPC": 1, "Subnet": 2, "VPCEndpoint": 6}),
        ("in a vpc", {"DBCluster": 1, "DBInstance": 1, "DBProxy": 1, "VPC": 0, "Subnet": 0, "VPCEndpoint": 0}),
    ],
)
def test_what_is_asked_for_is_made(given: str, made: dict[str, int]) -> None:
    kinds = [resource["Type"].rpartition("::")[2] for resource in database(**COMBINATIONS[given]).resources.values()]
    assert {kind: kinds.count(kind) for kind in made} == made


# ---- Hard to lose


def test_protection_last_snapshot_and_backups_go_wrong_before_data_are_lost(template: Template) -> None:
    cluster, resource = only(template, CLUSTER), template.resources["DatabaseCluster"]
    assert cluster["DeletionProtection"] is True
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Snapshot", "Snapshot")
    assert cluster["BackupRetentionPeriod"] == {"Ref": "DatabaseBackupDays"}


def test_the_key_of_the_snapshots_outlives_the_stack(template: Template) -> None:
    key = template.resources["DatabaseKey"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    for kind in (CLUSTER, SECRET_KIND, LOG_GROUP):
        assert [name for name, one in template.of(kind).items() if referred(one["KmsKeyId"]) != "DatabaseKey"] == []


def test_what_a_replaced_database_has_logged_is_kept_for_its_time(template: Template) -> None:
    assert template.resources["DatabaseLogGroup"]["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ({"DatabaseSnapshot": "before"}, {"SnapshotIdentifier"}),
        (
            {"DatabaseRestoreFrom": "one", "DatabaseRestoreTime": "2026-03-10T02:29:00Z"},
            {"SourceDBClusterIdentifier", "RestoreToTime"},
        ),
    ],
)
def test_a_restored_cluster_brings_its_owner_and_its_database_along(given: dict[str, str], origin: set[str]) -> None:
    fresh, restored = only(database(), CLUSTER), only(database(**given), CLUSTER)
    assert set(fresh) - set(restored) == {"MasterUsername", "DatabaseName"}
    assert set(restored) - set(fresh) == origin


def test_a_cluster_pauses_only_where_it_may_come_down_to_nothing() -> None:
    paused, awake = (only(database(DatabaseMinCapacity=least), CLUSTER) for least in ("0", "0.5"))
    assert paused["ServerlessV2ScalingConfiguration"]["SecondsUntilAutoPause"] == {"Ref": "DatabasePauseSeconds"}
    assert "SecondsUntilAutoPause" not in awake["ServerlessV2ScalingConfiguration"]


# ---- Hard to get at


def test_connections_need_tls_and_errors_log_nothing_of_the_rows(template: Template) -> None:
    parameters = only(template, "AWS::RDS::DBClusterParameterGroup")["Parameters"]
    assert parameters["rds.force_ssl"] == "1"
    assert parameters["log_error_verbosity"] == "terse"
    assert parameters["log_parameter_max_length"] == parameters["log_parameter_max_length_on_error"] == "0"
    assert [name for name, proxy in template.of(PROXY).items() if proxy["RequireTLS"] is not True] == []


def test_no_password_is_written_down(template: Template) -> None:
    cluster = only(template, CLUSTER)
    assert (cluster["ManageMasterUserPassword"], "MasterUserPassword" in cluster) == (True, False)
    secrets = template.of(SECRET_KIND).values()
    assert len({secret["GenerateSecretString"]["SecretStringTemplate"] for secret in secrets}) == len(secrets) == 2


def test_proxy_admits_all_three_logins_and_may_read_their_secrets() -> None:
    template = database(DatabaseProxy="on")
    [policy] = only(template, ROLE)["Policies"]
    [readable, _] = policy["PolicyDocument"]["Statement"]
    asked = {referred(one["SecretArn"]) for one in only(template, PROXY)["Auth"]}
    assert asked == set(map(referred, readable["Resource"])) == {"DatabaseCluster", "WriterSecret", "ReaderSecret"}


def test_only_the_functions_and_the_proxy_reach_the_database(template: Template) -> None:
    database_ways = {("FunctionsSecurityGroup", "DatabaseSecurityGroup", 5432)}
    if template.of(PROXY):
        database_ways |= {
            ("FunctionsSecurityGroup", "ProxySecurityGroup", 5432),
            ("ProxySecurityGroup", "DatabaseSecurityGroup", 5432),
        }
    endpoints = {("FunctionsSecurityGroup", "EndpointsSecurityGroup", 443)} if template.of("AWS::EC2::VPC") else set()
    assert set(ways(template)) == database_ways | endpoints


def test_groups_name_their_targets_and_only_https_leads_everywhere(template: Template) -> None:
    for name, group in template.of(GROUP).items():
        assert group["SecurityGroupEgress"], f"{name} would lead everywhere"
        for rule in group["SecurityGroupEgress"]:
            assert rule.get("CidrIp") != "0.0.0.0/0" or rule["FromPort"] == rule["ToPort"] == 443, name


def test_a_network_that_is_made_has_no_way_out(template: Template) -> None:
    kinds = {resource["Type"].rpartition("::")[2] for resource in template.resources.values()}
    assert not kinds & {"InternetGateway", "NatGateway", "EIP", "Route"}


def test_endpoints_serve_this_account_and_all_calls_but_mail_and_scans() -> None:
    endpoints = database().of("AWS::EC2::VPCEndpoint").values()
    services = {text(endpoint["ServiceName"]).rpartition(".")[2] for endpoint in endpoints}
    called = {name.strip("_") for name in vars(Clients) if not name.startswith("__")}
    assert called - services == {"sesv2", "textract"}, "docs/deploy.md says so"
    assert services <= called
    for endpoint in endpoints:
        for statement in endpoint["PolicyDocument"]["Statement"]:
            if statement["Action"] == "*":
                assert statement["Condition"] == {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}


# ---- What the application's stack receives


def handed_on(template: Template) -> dict[str, str]:
    """Return the parameters in the output, with a stand-in for each value."""
    outputs = read_template(ROOT / "stacks" / "aurora.yaml")["Outputs"]
    [written, _] = outputs["Parameters"]["Value"]["Fn::Sub"]
    assert {*re.findall(r"(\w+)=", written)} - {"MakeLogIns"} <= set(outputs), "each by itself, too"
    pairs = re.findall(r'(\w+)="([^"]*)"', written)
    assert " ".join(f'{name}="{value}"' for name, value in pairs) == written, "nothing but parameters"
    variables = {variable for _, value in pairs for variable in re.findall(r"\$\{(\w+)", value)}
    assert variables <= {*template.resources, "Host", "Subnets"}
    return {name: _made(name, value) for name, value in pairs}


def _made(name: str, value: str) -> str:
    if "$" not in value:
        return value
    return SECRET if name.endswith("SecretArn") else "given-1"


def test_the_output_is_what_the_application_takes(template: Template) -> None:
    given, application = handed_on(template), source()
    assert list(faults_of(application["Parameters"], given)) == []
    assert Decided(application, parameters_of(application, given)).refusals() == []
    assert deployed_with(given).of("Custom::SignalboxMigrations")
    assert set(given) <= set(VARIANTS["everything"]) | {"DatabaseHost"}


def test_an_application_of_the_name_before_takes_its_alarms(template: Template) -> None:
    """The application's topics admit alarms whose names begin with its own and a hyphen."""
    names = [alarm["AlarmName"]["Fn::Sub"] for alarm in template.of(ALARM).values()]
    assert all(name.startswith("${AWS::StackName}-") for name in names)
    runbook = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    for name in names:
        assert f"Alarm `{name.replace('${AWS::StackName}', 'database')}`, warning." in runbook


@pytest.mark.parametrize("topic", ["", "arn:aws:sns:us-east-1:123456789012:one"])
def test_alarms_notify_the_given_topic(topic: str) -> None:
    for alarm in database(DatabaseProxy="on", OperatorsTopicArn=topic).of(ALARM).values():
        actions = [{"Ref": "OperatorsTopicArn"}] if topic else None
        assert alarm.get("AlarmActions") == alarm.get("OKActions") == actions


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"VpcId": "vpc-1"}, "VpcId and SubnetIds belong together"),
        ({"SubnetIds": "subnet-1,subnet-2"}, "VpcId and SubnetIds belong together"),
        ({"DatabaseRestoreFrom": "one"}, "belong together"),
        ({"DatabaseRestoreTime": "2026-03-10T02:29:00Z"}, "belong together"),
        (
            {"DatabaseSnapshot": "one", "DatabaseRestoreFrom": "two", "DatabaseRestoreTime": "2026-03-10T02:29:00Z"},
            "not from both",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, str], said: str) -> None:
    template = read_template(ROOT / "stacks" / "aurora.yaml")
    [refusal] = Decided(template, parameters_of(template, given)).refusals()
    assert said in refusal
