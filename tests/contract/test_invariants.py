"""Each invariant can fail: a good template, altered in one place, is refused for that and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.registry import Task
from tests.contract import infrastructure
from tests.contract.infrastructure import arn, resource
from tests.contract.invariants import (
    INVARIANTS,
    Invariant,
    buckets,
    functions,
    migrations,
    name_of,
    permissions,
    queues,
    rules,
    versions,
)
from tests.support.template import Template, text

ARN_OF_RULES = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/${AWS::StackName}-*"


def named(name: str) -> dict[str, Any]:
    return {"Fn::Sub": f"${{AWS::StackName}}-{name}"}


def policy(**statement: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}


def without_tls(action: str) -> dict[str, Any]:
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    return policy(Effect="Deny", Principal="*", Action=action, Resource="*", Condition=plain)


GOOD = Template(
    {
        **infrastructure.RESOURCES,
        "Migrations": resource(
            migrations.MIGRATIONS, ServiceToken=arn("Worker"), Code={"Ref": "One"}, ServiceTimeout="1200"
        ),
        "Layer": resource(
            "AWS::Lambda::LayerVersion", CompatibleRuntimes=["python3.13"], CompatibleArchitectures=["arm64"]
        ),
        "Role": resource(
            "AWS::IAM::Role",
            ManagedPolicyArns=[{"Ref": "Policy"}],
            Policies=[
                {"PolicyDocument": policy(Action="sqs:SendMessage", Resource=arn("Queue"))},
                {"PolicyDocument": policy(Action=sorted(queues.READING), Resource=[arn("Queue"), arn("Dead")])},
                {
                    "PolicyDocument": policy(
                        Action="lambda:InvokeFunction", Resource={"Fn::Sub": "function:worker:live"}
                    )
                },
            ],
        ),
        "Logs": resource(
            "AWS::Logs::LogGroup",
            LogGroupName={"Fn::Sub": "/aws/lambda/${AWS::StackName}-worker"},
            RetentionInDays=30,
            KmsKeyId=arn("Key"),
        ),
        "Worker": resource(
            "AWS::Lambda::Function",
            FunctionName=named("worker"),
            KmsKeyArn=arn("Key"),
            Role=arn("Role"),
            Runtime="python3.13",
            Architectures=["arm64"],
            Timeout=60,
            Layers=[{"Ref": "Layer"}],
            TracingConfig={"Mode": "Active"},
            LoggingConfig={"LogFormat": "JSON", "LogGroup": {"Ref": "Logs"}},
            Environment={
                "Variables": {"COUNT": {"Fn::GetAtt": ["Configuration", "VersionNumber"]}, "QUEUE": {"Ref": "Queue"}}
            },
        ),
        "Configuration": resource(
            "AWS::AppConfig::HostedConfigurationVersion",
            Content={"Fn::Join": [" ", [{"Ref": "Queue"}, {"Ref": "Layer"}, {"Ref": "Key"}]]},
        ),
        "One": {
            **resource("AWS::Lambda::Version", FunctionName={"Ref": "Worker"}),
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
        },
        "Live": {
            **resource(
                "AWS::Lambda::Alias",
                Name="live",
                FunctionName={"Ref": "Worker"},
                FunctionVersion={"Fn::GetAtt": ["One", "Version"]},
            ),
            "UpdatePolicy": {"CodeDeployLambdaAliasUpdate": {"DeploymentGroupName": {"Ref": "Deploy"}}},
        },
        "Deploy": resource(
            "AWS::CodeDeploy::DeploymentGroup",
            AlarmConfiguration={"Enabled": True, "Alarms": [{"Name": {"Ref": "Alarm"}}]},
            AutoRollbackConfiguration={"Enabled": True, "Events": ["DEPLOYMENT_STOP_ON_ALARM"]},
        ),
        "Alarm": resource(
            "AWS::CloudWatch::Alarm",
            Metrics=[
                {
                    "MetricStat": {
                        "Metric": {
                            "Dimensions": [
                                {"Name": "ExecutedVersion", "Value": {"Fn::GetAtt": ["One", "Version"]}},
                            ]
                        }
                    }
                }
            ],
        ),
        "Invoke": resource(
            "AWS::Lambda::EventInvokeConfig",
            FunctionName={"Ref": "Worker"},
            Qualifier="live",
            MaximumRetryAttempts=2,
            MaximumEventAgeInSeconds=3600,
            DestinationConfig={"OnFailure": {"Destination": arn("Failed")}},
        ),
        "Failed": resource("AWS::SQS::Queue", KmsMasterKeyId={"Ref": "Key"}),
        "FailedPolicy": resource(
            "AWS::SQS::QueuePolicy",
            Queues=[{"Ref": "Failed"}],
            PolicyDocument=policy(
                Principal={"Service": "events.amazonaws.com"},
                Action="sqs:SendMessage",
                Resource=arn("Failed"),
            ),
        ),
        "Transport": resource(
            "AWS::SQS::QueuePolicy",
            Queues=[{"Ref": "Failed"}, {"Ref": "Dead"}, {"Ref": "Queue"}],
            PolicyDocument=without_tls("sqs:*"),
        ),
        "Bucket": {
            **resource(
                "AWS::S3::Bucket",
                BucketEncryption={
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"KMSMasterKeyID": arn("Key")}, "BucketKeyEnabled": True}
                    ]
                },
                PublicAccessBlockConfiguration=dict.fromkeys(buckets.OPENINGS, True),
                OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                LifecycleConfiguration={
                    "Rules": [
                        {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
                    ]
                },
            ),
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
        },
        "BucketTransport": resource(
            "AWS::S3::BucketPolicy", Bucket={"Ref": "Bucket"}, PolicyDocument=without_tls("s3:*")
        ),
        "Dead": resource(
            "AWS::SQS::Queue",
            KmsMasterKeyId={"Ref": "Key"},
            VisibilityTimeout=360,
            MessageRetentionPeriod=1_209_600,
            RedriveAllowPolicy={"redrivePermission": "byQueue", "sourceQueueArns": []},
        ),
        "Queue": resource(
            "AWS::SQS::Queue",
            KmsMasterKeyId={"Ref": "Key"},
            VisibilityTimeout=360,
            RedrivePolicy={"deadLetterTargetArn": arn("Dead"), "maxReceiveCount": 5},
        ),
        "Mapping": resource(
            "AWS::Lambda::EventSourceMapping",
            EventSourceArn=arn("Queue"),
            FunctionName={"Ref": "Live"},
            FunctionResponseTypes=["ReportBatchItemFailures"],
            ScalingConfig={"MaximumConcurrency": 10},
        ),
        "DeadMapping": resource(
            "AWS::Lambda::EventSourceMapping",
            EventSourceArn=arn("Dead"),
            FunctionName={"Ref": "Live"},
            BatchSize=100,
            MaximumBatchingWindowInSeconds=1,
            FunctionResponseTypes=["ReportBatchItemFailures"],
            ScalingConfig={"MaximumConcurrency": 2},
        ),
        "Rule": resource(
            "AWS::Events::Rule",
            Name=named("sweep"),
            ScheduleExpression="cron(0 * * * ? *)",
            Targets=[
                {
                    "Arn": {"Ref": "Live"},
                    "InputTransformer": {
                        "InputPathsMap": {"time": "$.time"},
                        "InputTemplate": '{"task": "sweep", "scheduled_time": <time>}',
                    },
                    "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10},
                    "DeadLetterConfig": {"Arn": arn("Failed")},
                }
            ],
        ),
        "Permission": resource(
            "AWS::Lambda::Permission",
            FunctionName={"Ref": "Live"},
            Principal="events.amazonaws.com",
            SourceArn={"Fn::Sub": ARN_OF_RULES},
        ),
    },
    frozenset({"Policy"}),
)

INPUT = "Rule.Targets.0.InputTransformer"
MANAGED = "arn:aws:iam::aws:policy/AdministratorAccess"
TLS = "Transport.PolicyDocument.Statement.0"
READER = "Role.Policies.1"
CALLER = "Role.Policies.2.PolicyDocument.Statement.0"
WATCHED = "Alarm.Metrics.0.MetricStat.Metric.Dimensions.0"
WIDE_STATEMENT = "Role.Policies.0.PolicyDocument.Statement.0"

# What is broken by putting a value in a place (None takes it out), and which resource is then named.
BROKEN: list[tuple[Invariant, str, Any, str]] = [
    *infrastructure.BROKEN,
    (rules.pass_the_scheduled_instant, f"{INPUT}.InputPathsMap", {"time": "$.id"}, "Rule"),
    (rules.pass_the_scheduled_instant, f"{INPUT}.InputTemplate", '{"task": "sweep"}', "Rule"),
    (rules.pass_the_scheduled_instant, INPUT, None, "Rule"),
    (rules.have_a_retry_policy, "Rule.Targets.0.RetryPolicy", None, "Rule"),
    (rules.have_a_retry_policy, "Rule.Targets.0.RetryPolicy", {"MaximumRetryAttempts": 3}, "Rule"),
    (rules.have_a_dead_letter_queue, "Rule.Targets.0.DeadLetterConfig", None, "Rule"),
    (rules.have_a_dead_letter_queue, "Rule.Targets.0.DeadLetterConfig", {"Arn": arn("Queue")}, "Rule"),
    (rules.have_a_dead_letter_queue, "FailedPolicy", None, "Rule"),
    (rules.fire_on_the_clock, "Rule.ScheduleExpression", "rate(1 hour)", "Rule"),
    (rules.may_invoke_their_function, "Permission", None, "Rule"),
    (rules.may_invoke_their_function, "Permission.FunctionName", {"Ref": "Other"}, "Rule"),
    (rules.may_invoke_their_function, "Permission.Principal", "sns.amazonaws.com", "Rule"),
    (rules.may_invoke_their_function, "Rule.Name", "sweep", "Rule"),
    (functions.have_a_log_group_with_retention, "Worker.LoggingConfig", None, "Worker"),
    (functions.have_a_log_group_with_retention, "Worker.LoggingConfig.LogFormat", "Text", "Worker"),
    (functions.have_a_log_group_with_retention, "Logs.RetentionInDays", None, "Worker"),
    (functions.have_a_log_group_with_retention, "Logs.LogGroupName", "/aws/lambda/other", "Worker"),
    (functions.lose_no_metrics, "Worker.LoggingConfig.ApplicationLogLevel", "WARN", "Worker"),
    (functions.report_failed_invocations, "Invoke", None, "Worker"),
    (functions.report_failed_invocations, "Invoke.FunctionName", {"Ref": "Other"}, "Worker"),
    (functions.report_failed_invocations, "Invoke.DestinationConfig", None, "Worker"),
    (functions.report_failed_invocations, "Invoke.MaximumRetryAttempts", None, "Worker"),
    (functions.are_built_like_their_layers, "Worker.Runtime", "python3.12", "Worker"),
    (functions.are_built_like_their_layers, "Layer.CompatibleArchitectures", ["x86_64"], "Worker"),
    (functions.have_roles_of_their_own, "Worker.Role", "arn:aws:iam::123456789012:role/admin", "Worker"),
    (
        functions.have_roles_of_their_own,
        "Other",
        resource("AWS::Lambda::Function", Role=arn("Role")),
        "Worker",
    ),
    (permissions.hold_no_wildcard, f"{WIDE_STATEMENT}.Action", "sqs:*", "Role"),
    (permissions.hold_no_wildcard, f"{WIDE_STATEMENT}.Action", ["sqs:SendMessage", "*"], "Role"),
    (permissions.hold_no_wildcard, f"{WIDE_STATEMENT}.Resource", "*", "Role"),
    (permissions.hold_no_wildcard, "FailedPolicy.PolicyDocument.Statement.0.Principal", "*", "FailedPolicy"),
    (permissions.come_from_no_managed_policy_of_awss, "Role.ManagedPolicyArns", [MANAGED], "Role"),
    (functions.are_traced, "Worker.TracingConfig", None, "Worker"),
    (functions.are_traced, "Worker.TracingConfig.Mode", "PassThrough", "Worker"),
    (queues.are_read_whole, "Mapping.FilterCriteria", {"Filters": []}, "Mapping"),
    (queues.keep_what_can_be_moved_back_apart, "Queue.RedrivePolicy.deadLetterTargetArn", arn("Failed"), "Queue"),
    (queues.hide_messages_for_six_timeouts, "Queue.VisibilityTimeout", 359, "Mapping"),
    (queues.hide_messages_for_six_timeouts, "Queue.VisibilityTimeout", None, "Mapping"),
    (queues.bear_throttling, "Queue.RedrivePolicy", None, "Mapping"),
    (queues.bear_throttling, "Queue.RedrivePolicy.maxReceiveCount", 4, "Queue"),
    (queues.let_only_their_own_dead_letters_in, "Dead.RedriveAllowPolicy", None, "Queue"),
    (queues.keep_dead_letters_longer_than_letters, "Queue.MessageRetentionPeriod", 1_209_600, "Queue"),
    (queues.keep_dead_letters_longer_than_letters, "Dead.MessageRetentionPeriod", None, "Queue"),
    (queues.are_read_by_who_may, READER, None, "Mapping"),
    (queues.are_read_by_who_may, f"{READER}.PolicyDocument.Statement.0.Action", "sqs:ReceiveMessage", "Mapping"),
    (queues.are_read_by_who_may, f"{READER}.PolicyDocument.Statement.0.Resource", arn("Failed"), "Mapping"),
    (queues.have_a_window_for_more_than_ten, "DeadMapping.MaximumBatchingWindowInSeconds", None, "DeadMapping"),
    (queues.have_a_window_for_more_than_ten, "Mapping.BatchSize", {"Ref": "Size"}, "Mapping"),
    (queues.are_answered_message_by_message, "Mapping.FunctionResponseTypes", None, "Mapping"),
    (queues.are_read_with_bounded_concurrency, "Mapping.ScalingConfig", None, "Mapping"),
    (queues.refuse_plain_http, "Transport", None, "Failed"),
    (queues.refuse_plain_http, "Transport.Queues", [{"Ref": "Failed"}, {"Ref": "Queue"}], "Dead"),
    (queues.refuse_plain_http, f"{TLS}.Effect", "Allow", "Failed"),
    (queues.refuse_plain_http, f"{TLS}.Condition", None, "Failed"),
    (queues.refuse_plain_http, f"{TLS}.Action", "sqs:SendMessage", "Failed"),
    (queues.refuse_plain_http, f"{TLS}.Principal", {"AWS": "123456789012"}, "Failed"),
    (buckets.are_closed_to_the_public, "Bucket.PublicAccessBlockConfiguration", None, "Bucket"),
    (buckets.are_closed_to_the_public, "Bucket.PublicAccessBlockConfiguration.BlockPublicPolicy", False, "Bucket"),
    (buckets.are_closed_to_the_public, "Bucket.OwnershipControls", None, "Bucket"),
    (buckets.refuse_plain_http, "BucketTransport", None, "Bucket"),
    (buckets.refuse_plain_http, "BucketTransport.Bucket", {"Ref": "Other"}, "Bucket"),
    (buckets.forget_half_uploads, "Bucket.LifecycleConfiguration", None, "Bucket"),
    (buckets.forget_half_uploads, "Bucket.LifecycleConfiguration.Rules.0.Status", "Disabled", "Bucket"),
    (buckets.outlive_their_stack, "Bucket", GOOD.resources["Bucket"] | {"DeletionPolicy": "Delete"}, "Bucket"),
    (buckets.outlive_their_stack, "Bucket", GOOD.resources["Bucket"] | {"UpdateReplacePolicy": "Delete"}, "Bucket"),
    (versions.have_an_alias, "Live", None, "Worker"),
    (versions.have_an_alias, "Live.Name", "prod", "Worker"),
    (versions.have_an_alias, "One.FunctionName", {"Ref": "Other"}, "Worker"),
    (versions.are_kept, "One", resource("AWS::Lambda::Version", FunctionName={"Ref": "Worker"}), "One"),
    (versions.are_invoked_by_their_alias, "Rule.Targets.0.Arn", arn("Worker"), "Rule"),
    (versions.are_invoked_by_their_alias, "Mapping.FunctionName", {"Ref": "Worker"}, "Mapping"),
    (versions.are_invoked_by_their_alias, "Permission.FunctionName", {"Ref": "Worker"}, "Permission"),
    (versions.are_invoked_by_their_alias, f"{CALLER}.Resource", {"Fn::Sub": "function:worker"}, "Role"),
    (versions.are_invoked_by_their_alias, f"{CALLER}.Resource", arn("Worker"), "Role"),
    (migrations.are_asked_of_what_was_just_deployed, "Migrations.ServiceToken", {"Ref": "Live"}, "Migrations"),
    (migrations.are_asked_for_again_by_what_changes, "Migrations.Code", None, "Migrations"),
    (migrations.are_asked_for_again_by_what_changes, "Migrations.Code", "the same for ever", "Migrations"),
    (migrations.are_waited_for_no_longer_than_they_take, "Migrations.ServiceTimeout", None, "Migrations"),
    (migrations.come_before_all_other_functions, "Migrations.ServiceToken", arn("Other"), "Worker"),
    (versions.treat_failed_events_by_their_alias, "Invoke.Qualifier", None, "Invoke"),
    (versions.are_rolled_back_by_alarms, "Deploy.AlarmConfiguration", None, "Deploy"),
    (versions.are_rolled_back_by_alarms, "Deploy.AlarmConfiguration.Enabled", False, "Deploy"),
    (versions.are_rolled_back_by_alarms, "Alarm", None, "Deploy"),
    (versions.are_rolled_back_by_alarms, f"{WATCHED}.Value", "7", "Deploy"),
    (versions.are_rolled_back_by_alarms, "Deploy.AutoRollbackConfiguration.Events", ["DEPLOYMENT_FAILURE"], "Deploy"),
    (versions.are_published_with_what_they_depend_on, "Configuration.Content", {"Ref": "Queue"}, "Worker"),
    (versions.are_published_with_what_they_depend_on, "Worker.Environment.Variables.COUNT", None, "Worker"),
    (versions.are_published_with_what_they_depend_on, "Worker.Timeout", {"Fn::Sub": "${Time.Out}"}, "Worker"),
]

TASK = Task("sweep", "sweeps", "sweep", schedule="cron(0 * * * ? *)")
MATCHED = GOOD.altered("Worker.FunctionName", named("archiver"))


@pytest.mark.parametrize("invariant", INVARIANTS, ids=name_of)
def test_a_good_template_keeps_that(invariant: Invariant) -> None:
    assert list(invariant(GOOD)) == []


@pytest.mark.parametrize(("invariant", "place", "value", "named_resource"), BROKEN)
def test_a_template_altered_in_one_place_is_refused(
    invariant: Invariant, place: str, value: Any, named_resource: str
) -> None:
    faults = list(invariant(GOOD.altered(place, value)))

    assert faults
    assert faults[0].startswith(f"{named_resource}: ")


def test_no_invariant_goes_without_a_template_that_breaks_it() -> None:
    assert {invariant for invariant, *_ in BROKEN} == set(INVARIANTS)


def test_a_rule_and_its_task_match() -> None:
    assert list(_mismatches(MATCHED, TASK)) == []


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (
            f"{INPUT}.InputTemplate",
            '{"task": "swepe", "scheduled_time": <time>}',
            "'swepe' is not registered",
        ),
        ("Rule.ScheduleExpression", "cron(5 * * * ? *)", "fires on cron(5 * * * ? *)"),
        ("Rule.Name", named("broom"), "does not end in -sweep"),
        ("Worker.FunctionName", named("poller"), "sweep belongs to the archiver"),
        ("Rule", None, "0 rules fire it"),
        ("Rule.Targets", GOOD.resources["Rule"]["Properties"]["Targets"] * 2, "2 rules fire it"),
    ],
)
def test_a_rule_that_does_not_match_its_task_is_refused(place: str, value: Any, fault: str) -> None:
    assert any(fault in found for found in _mismatches(MATCHED.altered(place, value), TASK))


def test_a_rule_for_a_task_that_is_not_scheduled_is_refused() -> None:
    assert any("and 0 should" in found for found in _mismatches(MATCHED, Task("sweep", "sweeps", "sweep")))


def test_the_good_template_is_not_altered_by_altering_it() -> None:
    GOOD.altered("Rule.Name", "other")

    assert text(GOOD.resources["Rule"]["Properties"]["Name"]) == "${AWS::StackName}-sweep"


def _mismatches(template: Template, task: Task) -> Iterator[str]:
    yield from rules.without_task(template, {task.name: task})
    yield from rules.missing_for(template, {task.name: task})
