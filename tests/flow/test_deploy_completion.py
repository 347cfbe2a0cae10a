"""The list of what moto's CloudFormation leaves out misses nothing, and names nothing needlessly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

from signalbox_laptop.deploy import moto_gaps
from signalbox_laptop.deploy.moto_gaps import COMPLETIONS, Completion, is_completed
from tests.support.deployed import SECRET, Deployed, deploy_to, moto
from tests.support.small_project import write_small_project
from tests.support.template import ROOT, VARIANTS
from tests.support.template import deployed as transformed
from tests.support.watched import dashboards

GIVEN = {"DatabaseSecretArn": SECRET}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def completed(variant: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Deploy the project's template."""
    with moto(tmp_path_factory.mktemp("home")) as endpoint:
        yield deploy_to(endpoint, ROOT / "template.yaml", VARIANTS[variant])


@pytest.fixture(scope="module")
def incomplete(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Deploy a project with something of each kind on the list, but without the list."""
    project = write_small_project(tmp_path_factory.mktemp("project"))
    with moto(tmp_path_factory.mktemp("home")) as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setattr(moto_gaps, "complete", lambda *_: None)
        yield deploy_to(endpoint, project, GIVEN)


def test_moto_makes_each_resource_that_is_not_on_the_list(completed: Deployed, variant: str) -> None:
    cloudformation = completed.client("cloudformation")
    made = {
        resource.get("LogicalResourceId")
        for stack in cloudformation.describe_stacks()["Stacks"]
        for resource in cloudformation.describe_stack_resources(StackName=stack["StackName"])["StackResources"]
    }
    resources = transformed(variant).resources
    missing = {name: resource["Type"] for name, resource in resources.items() if name not in made}
    assert missing
    assert [kind for kind in missing.values() if not is_completed(kind)] == []


def test_each_function_has_its_settings_and_those_that_rules_invoke_a_destination(completed: Deployed) -> None:
    lambda_ = completed.client("lambda")
    queue = "arn:aws:sqs:us-east-1:123456789012:signalbox-failed-invocations"
    for name in ("archiver", "poller", "migrator", "worker", "worker-heavy", "dead-letter"):
        function = lambda_.get_function_configuration(FunctionName=f"signalbox-{name}")
        assert len(function["Layers"]) == 3
        assert function["LoggingConfig"]["LogGroup"] == f"/aws/lambda/signalbox-{name}"
    for name in ("archiver", "poller"):
        config = lambda_.get_function_event_invoke_config(FunctionName=f"signalbox-{name}")
        assert config["DestinationConfig"]["OnFailure"]["Destination"] == queue
        assert config["MaximumRetryAttempts"] == 2


def test_dashboard_is_made_and_tasks_get_the_operators_topic(completed: Deployed, variant: str) -> None:
    body = completed.client("cloudwatch").get_dashboard(DashboardName="signalbox")["DashboardBody"]
    widgets = json.loads(body)["widgets"]
    assert len(widgets) == len(dashboards("least")["${AWS::StackName}"])
    assert "${" not in body, "every reference has been resolved"
    archiver = completed.client("lambda").get_function_configuration(FunctionName="signalbox-archiver")
    told = archiver["Environment"]["Variables"]["SIGNALBOX_OPERATORS_TOPIC_ARN"]
    assert told.rpartition(":")[2] == ("operators" if variant == "everything" else "signalbox-operators")


def test_the_list_lets_rules_send_to_the_queue_of_failures(completed: Deployed) -> None:
    url = completed.outputs()["FailedInvocationsQueueUrl"]
    held = completed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    assert "events.amazonaws.com" in held["Attributes"]["Policy"]


@pytest.mark.parametrize("entry", COMPLETIONS, ids=lambda entry: entry.type)
def test_moto_still_leaves_out(entry: Completion, incomplete: Deployed) -> None:
    left_out: Callable[[Deployed], set[str]] = LEFT_OUT.get(
        entry.type,
        lambda _: {entry.type} - _known_to_moto(),
    )
    assert left_out(incomplete) == set(entry.properties or {entry.type})


@pytest.mark.parametrize("entry", COMPLETIONS, ids=lambda entry: entry.type)
def test_each_entry_says_why(entry: Completion) -> None:
    assert "moto" in entry.why


def _event_invoke_config(deployed: Deployed) -> set[str]:
    lambda_ = deployed.client("lambda")
    configs = lambda_.list_function_event_invoke_configs(FunctionName="signalbox-archiver")
    return set() if configs["FunctionEventInvokeConfigs"] else {"AWS::Lambda::EventInvokeConfig"}


def _queue_policy(deployed: Deployed) -> set[str]:
    url = deployed.outputs()["FailuresUrl"]
    held = deployed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    return set() if held.get("Attributes", {}).get("Policy") else {"AWS::SQS::QueuePolicy"}


def _bucket_settings(deployed: Deployed) -> set[str]:
    held = deployed.client("s3").get_bucket_versioning(Bucket=deployed.outputs()["AtticName"])
    return set() if "Status" in held else {"VersioningConfiguration"}


def _bucket_policy(deployed: Deployed) -> set[str]:
    s3 = deployed.client("s3")
    try:
        s3.get_bucket_policy(Bucket=deployed.outputs()["AtticName"])
    except s3.exceptions.ClientError as error:
        return {"AWS::S3::BucketPolicy"} if error.response["Error"]["Code"] == "NoSuchBucketPolicy" else set()
    return set()


def _known_to_moto() -> set[str]:
    parsing: Any = import_module("moto.cloudformation.parsing")
    return set(parsing.get_model_map())


def _alarms(deployed: Deployed) -> set[str]:
    return set() if deployed.client("cloudwatch").describe_alarms()["MetricAlarms"] else {"AWS::CloudWatch::Alarm"}


def _query_definitions(deployed: Deployed) -> set[str]:
    """Report a gap if moto refuses the question."""
    logs = deployed.client("logs")
    try:
        found = logs.describe_query_definitions()["queryDefinitions"]
    except logs.exceptions.ClientError:
        found = []
    return set() if found else {"AWS::Logs::QueryDefinition"}


def _topic_policy(deployed: Deployed) -> set[str]:
    sns = deployed.client("sns")
    topic = sns.list_topics()["Topics"][0]
    policy = sns.get_topic_attributes(TopicArn=topic["TopicArn"])["Attributes"]["Policy"]
    return set() if "cloudwatch.amazonaws.com" in policy else {"AWS::SNS::TopicPolicy"}


def _subscription(deployed: Deployed) -> set[str]:
    return set() if deployed.client("sns").list_subscriptions()["Subscriptions"] else {"AWS::SNS::Subscription"}


def _custom_resource(deployed: Deployed) -> set[str]:
    """Look in the log: it exists once somebody invoked the migrator."""
    groups = deployed.client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/signalbox-migrator")[
        "logGroups"
    ]
    return set() if groups else {"Custom::SignalboxMigrations"}


# Of any other kind, moto's CloudFormation must know nothing.
LEFT_OUT: Mapping[str, Callable[[Deployed], set[str]]] = {
    "AWS::Lambda::EventInvokeConfig": _event_invoke_config,
    "AWS::SQS::QueuePolicy": _queue_policy,
    "AWS::S3::Bucket": _bucket_settings,
    "AWS::S3::BucketPolicy": _bucket_policy,
    "AWS::CloudWatch::Alarm": _alarms,
    "AWS::Logs::QueryDefinition": _query_definitions,
    "AWS::SNS::TopicPolicy": _topic_policy,
    "AWS::SNS::Subscription": _subscription,
    "Custom::SignalboxMigrations": _custom_resource,
}
