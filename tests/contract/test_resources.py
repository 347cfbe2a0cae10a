"""The template's resources keep rules, with any parameters, that cfn-lint and checkov do not check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, get_args

import pytest

from signalbox.engine_pack import registry_of
from signalbox.job_types.tables.export_table import KEEP_TAG, ExportTable
from tests.support.template import (
    BUCKET,
    FUNCTION,
    LOG_GROUP,
    MAPPING,
    QUEUE,
    ROLE,
    RULE,
    TOPIC_KIND,
    VARIANTS,
    Template,
    deployed,
    deployed_with,
    listed,
    packs_of,
    referred,
    source,
    statements,
    text,
)

STACK_KEY = "StackKey"
RULE_ARN = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/"
READING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
# Lambda makes a function's network interfaces before there is any to name.
WITHOUT_RESOURCE = "ec2:"


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def template(variant: str) -> Template:
    return deployed(variant)


def targets(template: Template) -> list[tuple[str, Any, Any]]:
    """Return each rule with a schedule and its only target, by the task that it fires."""
    found = []
    for rule in template.of(RULE).values():
        [target] = rule["Targets"]
        found.append((payload_of(target)["task"], rule, target))
    return found


def payload_of(target: Mapping[str, Any]) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(target["InputTransformer"]["InputTemplate"].replace("<time>", '"<time>"'))
    return payload


def mappings(template: Template) -> list[tuple[str, Any, Any, Any]]:
    """Return each mapping with its queue and its function."""
    queues, functions = template.of(QUEUE), template.of(FUNCTION)
    return [
        (name, one, queues[referred(one["EventSourceArn"]) or ""], functions[referred(one["FunctionName"]) or ""])
        for name, one in template.of(MAPPING).items()
    ]


def dead_letter_queue(queue: Mapping[str, Any]) -> str | None:
    return referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))


def policies(template: Template, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each statement of the policies of one kind."""
    for name, policy in template.of(kind).items():
        yield from ((name, statement) for statement in statements(policy["PolicyDocument"]))


# ---- Rules


def test_a_rule_gives_its_task_the_instant_it_was_due(template: Template) -> None:
    """A late delivery with a constant input would run the wrong slot."""
    assert targets(template)
    for task, _, target in targets(template):
        assert target["InputTransformer"]["InputPathsMap"] == {"time": "$.time"}, task
        assert payload_of(target) == {"task": task, "scheduled_time": "<time>"}


def test_each_scheduled_task_has_one_rule_with_its_name_schedule_and_function(variant: str) -> None:
    functions = deployed(variant).of(FUNCTION)
    rules = sorted(
        (
            task,
            text(rule["Name"]),
            rule["ScheduleExpression"],
            text(functions[referred(target["Arn"]) or ""]["FunctionName"]),
        )
        for task, rule, target in targets(deployed(variant))
    )
    stack = "${AWS::StackName}"
    assert rules == sorted(
        (task.name, f"{stack}.{task.name}", task.schedule, f"{stack}-{task.function}")
        for task in registry_of(packs_of(variant))
        if task.schedule
    )


def test_a_rule_fires_on_the_clock(template: Template) -> None:
    """rate() counts from the rule's creation, so two fires may fall into one slot and none into the next."""
    assert [task for task, rule, _ in targets(template) if not rule["ScheduleExpression"].startswith("cron(")] == []


def test_undeliverable_rule_events_go_to_a_queue_that_admits_them(template: Template) -> None:
    """EventBridge's own retry policy is a day of attempts, each of which would come as a surprise."""
    writable = {
        referred(queue)
        for policy in template.of("AWS::SQS::QueuePolicy").values()
        for statement in statements(policy["PolicyDocument"])
        if statement["Effect"] == "Allow" and statement["Principal"] == {"Service": "events.amazonaws.com"}
        for queue in policy["Queues"]
    }
    for task, _, target in targets(template):
        assert set(target["RetryPolicy"]) == {"MaximumEventAgeInSeconds", "MaximumRetryAttempts"}, task
        assert referred(target["DeadLetterConfig"]["Arn"]) in writable, task


def test_a_rule_may_invoke_its_function(template: Template) -> None:
    permissions = [
        (referred(one["FunctionName"]), text(one["SourceArn"]))
        for one in template.of("AWS::Lambda::Permission").values()
        if one["Principal"] == "events.amazonaws.com"
    ]
    for task, rule, target in targets(template):
        arn = RULE_ARN + text(rule["Name"])
        assert any(to == referred(target["Arn"]) and fnmatchcase(arn, given) for to, given in permissions), task


def test_only_direct_invocation_and_the_http_api_reach_the_api(template: Template) -> None:
    """Anyone who may add a rule, a message or a topic's subscription would be an operator."""
    invoked = [
        one["FunctionName"]
        for one in template.of("AWS::Lambda::Permission").values()
        if one["Principal"] != "apigateway.amazonaws.com" or ":execute-api:" not in text(one["SourceArn"])
    ]
    invoked += [one["FunctionName"] for one in template.of(MAPPING).values()]
    invoked += [target["Arn"] for _, _, target in targets(template)]
    assert "ApiFunction" not in set(map(referred, invoked))


# ---- Functions


def test_a_function_logs_json_into_a_group_of_its_own_that_ends(template: Template) -> None:
    groups = template.of(LOG_GROUP)
    for name, function in template.of(FUNCTION).items():
        group = groups[referred(function["LoggingConfig"]["LogGroup"]) or ""]
        assert text(group["LogGroupName"]) == f"/aws/lambda/{text(function['FunctionName'])}", name
        assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
        assert function["LoggingConfig"]["LogFormat"] == "JSON"


@pytest.mark.parametrize("level", source()["Parameters"]["LogLevel"]["AllowedValues"])
def test_at_any_level_of_its_log_a_function_measures(level: str) -> None:
    """Lambda takes a line without a level for INFO; metrics have none, and a level above INFO drops them."""
    for name, function in deployed_with({**VARIANTS["engine"], "LogLevel": level}).of(FUNCTION).items():
        assert function["LoggingConfig"]["ApplicationLogLevel"] in ("DEBUG", "INFO"), name


def test_what_rules_invoke_and_fails_goes_to_a_queue(template: Template) -> None:
    """A rule's retry policy never sees the handler's own errors."""
    configs = {referred(one["FunctionName"]): one for one in template.of("AWS::Lambda::EventInvokeConfig").values()}
    for function in {referred(target["Arn"]) for _, _, target in targets(template)}:
        assert referred(configs[function]["DestinationConfig"]["OnFailure"]["Destination"]) in template.of(QUEUE)
        assert {"MaximumRetryAttempts", "MaximumEventAgeInSeconds"} <= set(configs[function])


def test_a_layer_is_for_its_functions_runtime_and_processor(template: Template) -> None:
    layers = template.of("AWS::Lambda::LayerVersion")
    for function in template.of(FUNCTION).values():
        for layer in (layers[name] for name in map(referred, function["Layers"]) if name in layers):
            assert layer["CompatibleRuntimes"] == [function["Runtime"]]
            assert layer["CompatibleArchitectures"] == function["Architectures"]


def test_each_function_has_its_own_role_without_aws_managed_policies(template: Template) -> None:
    """A shared role is the sum of what all need, and AWS's policies are for all resources of an account."""
    roles = [referred(function["Role"]) for function in template.of(FUNCTION).values()]
    assert sorted(map(str, roles)) == sorted(template.of(ROLE))
    assert [name for name, role in template.of(ROLE).items() if ":iam::aws:policy/" in str(role)] == []


def test_nothing_is_allowed_on_everything(template: Template) -> None:
    for name, statement in [*policies(template, "AWS::IAM::ManagedPolicy"), *_own_statements(template)]:
        if statement["Effect"] == "Allow":
            actions = listed(statement["Action"])
            assert [action for action in actions if "*" in action] == [], name
            assert "*" not in listed(statement.get("Resource", [])) or all(
                WITHOUT_RESOURCE in one for one in actions
            ), name


def _own_statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, role in template.of(ROLE).items():
        for policy in role.get("Policies", []):
            yield from ((name, statement) for statement in statements(policy["PolicyDocument"]))


# ---- Queues


def test_a_message_is_hidden_for_six_of_its_functions_time_outs(template: Template) -> None:
    """A throttled batch is tried again and again; meanwhile its messages must not appear to others."""
    for name, _, queue, function in mappings(template):
        assert queue["VisibilityTimeout"] >= 6 * function["Timeout"], name


def test_a_queue_with_a_dead_letter_queue_bears_throttling_and_leaves_time(template: Template) -> None:
    """Throttled polls count as receives: below five, healthy messages die unseen. Moved messages keep their age."""
    queues = template.of(QUEUE)
    read = {referred(one["EventSourceArn"]) for one in template.of(MAPPING).values()}
    for name, queue in queues.items():
        if dead := dead_letter_queue(queue):
            assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5, name
            assert queues[dead]["RedriveAllowPolicy"]["redrivePermission"] == "byQueue", dead
            assert name not in read or queues[dead]["MessageRetentionPeriod"] > queue["MessageRetentionPeriod"], name


def test_functions_sources_have_dead_letter_queues_or_hold_failures_themselves(template: Template) -> None:
    queues = template.of(QUEUE)
    ends = {dead_letter_queue(queue) for queue in queues.values()} | {"FailedInvocationsQueue"}
    for name, mapping, queue, _ in mappings(template):
        assert dead_letter_queue(queue) in queues or referred(mapping["EventSourceArn"]) in ends, name


def test_dead_letters_of_a_queue_are_kept_apart_from_other_failures(template: Template) -> None:
    """SQS moves back only from queues that other queues feed, and does not tell one message there from another."""
    assert "FailedInvocationsQueue" not in {dead_letter_queue(queue) for queue in template.of(QUEUE).values()}


def test_a_mapping_is_bounded_answered_message_by_message_and_lets_all_through(template: Template) -> None:
    """Reserved concurrency would throttle polls, one bad message would take its batch along, a filter deletes."""
    for name, mapping, _, _ in mappings(template):
        assert mapping["ScalingConfig"]["MaximumConcurrency"], name
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
        assert "FilterCriteria" not in mapping, name
        size = mapping["BatchSize"]
        if isinstance(size, dict) or size > 10:
            assert mapping["MaximumBatchingWindowInSeconds"], f"{name}: Lambda refuses more than ten without a window"


def test_the_function_of_a_mapping_may_read_its_queue(template: Template) -> None:
    for name, mapping, _, function in mappings(template):
        allowed = {
            action
            for policy in template.of(ROLE)[referred(function["Role"]) or ""]["Policies"]
            for statement in statements(policy["PolicyDocument"])
            if mapping["EventSourceArn"] in listed(statement["Resource"])
            for action in listed(statement["Action"])
        }
        assert allowed >= READING, name


# ---- What is kept, and who gets to it


@pytest.mark.parametrize(
    ("kind", "policy", "attached_to"),
    [
        (QUEUE, "AWS::SQS::QueuePolicy", "Queues"),
        (BUCKET, "AWS::S3::BucketPolicy", "Bucket"),
        (TOPIC_KIND, "AWS::SNS::TopicPolicy", "Topics"),
    ],
)
def test_nothing_is_sent_or_read_without_tls(template: Template, kind: str, policy: str, attached_to: str) -> None:
    refusing = {
        referred(one)
        for name, statement in policies(template, policy)
        if (statement["Effect"], statement["Principal"]) == ("Deny", "*")
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        and str(statement["Action"]).endswith((":*", "sns:Publish"))
        for one in listed(template.of(policy)[name][attached_to])
    }
    assert refusing == set(template.of(kind))


def test_a_bucket_outlives_the_stack_and_forgets_half_uploads(template: Template) -> None:
    for name, bucket in template.of(BUCKET).items():
        resource = template.resources[name]
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), name
        rules = bucket["LifecycleConfiguration"]["Rules"]
        assert any("AbortIncompleteMultipartUpload" in rule for rule in rules if rule["Status"] == "Enabled"), name


def test_stored_data_is_encrypted_by_a_key_that_outlives_the_stack(template: Template) -> None:
    key = template.resources[STACK_KEY]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    named_by = {FUNCTION: "KmsKeyArn", LOG_GROUP: "KmsKeyId", QUEUE: "KmsMasterKeyId", TOPIC_KIND: "KmsMasterKeyId"}
    for kind, attribute in named_by.items():
        assert [name for name, one in template.of(kind).items() if referred(one[attribute]) != STACK_KEY] == []
    for name, bucket in template.of(BUCKET).items():
        [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert referred(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]) == STACK_KEY, name
        assert rule["BucketKeyEnabled"] is True, "each object would ask KMS"


# ---- Migrations


def test_a_deploy_migrates_before_any_other_function_has_its_code(template: Template) -> None:
    [(name, properties)] = template.of("Custom::SignalboxMigrations").items()
    assert properties["ServiceToken"] == {"Fn::GetAtt": ["MigratorFunction", "Arn"]}
    assert 900 < int(properties["ServiceTimeout"]) < 3600, "three tries of five minutes, and what lies between"
    told = {referred(value) for value in properties.values()}
    assert {template.resources[one or ""]["Type"] for one in told if one in template.resources} >= {
        "AWS::Lambda::LayerVersion"
    }, "CloudFormation asks again only where a property has changed, and that stands for the code"
    for function in set(template.of(FUNCTION)) - {"MigratorFunction"}:
        assert name in listed(template.resources[function]["DependsOn"]), function


def test_an_event_that_the_migrator_failed_at_is_kept_nowhere(template: Template) -> None:
    """It holds a signed address."""
    configs = template.of("AWS::Lambda::EventInvokeConfig").values()
    assert "MigratorFunction" not in {referred(one["FunctionName"]) for one in configs}


def test_jobs_bucket_has_a_rule_for_each_time_that_files_may_be_kept() -> None:
    rules = deployed().of(BUCKET)["JobsBucket"]["LifecycleConfiguration"]["Rules"]
    kept = {rule["TagFilters"][0]["Value"]: rule for rule in rules if "TagFilters" in rule}
    [days, _] = get_args(ExportTable.model_fields["keep_days"].annotation)
    assert sorted(kept) == sorted(map(str, get_args(days)))
    assert all(rule["ExpirationInDays"] == int(value) for value, rule in kept.items())
    assert {rule["TagFilters"][0]["Key"] for rule in kept.values()} == {KEEP_TAG}
