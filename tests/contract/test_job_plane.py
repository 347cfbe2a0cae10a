"""The template deploys the job plane that the engine counts on, under the names that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from signalbox.jobs.retry_routing import SQS_MAX_DELAY
from signalbox.packs.job_type import Lane
from signalbox.runtime.settings import Settings
from signalbox.submit.checks import LONGEST
from tests.support.template import (
    FUNCTION,
    MAPPING,
    QUEUE,
    SECRET,
    TOPIC,
    VARIANTS,
    Template,
    deployed,
    deployed_with,
    listed,
    referred,
    statements,
    text,
)

LOOPING = ("archiver", "poller", "worker", "worker-heavy")
each_lane = pytest.mark.parametrize("lane", Lane)
each_variant = pytest.mark.parametrize("variant", VARIANTS)


def queue_of(name: str, template: Template | None = None) -> tuple[str, dict[str, Any]]:
    """Return the queue of this name in each stack, with its logical id."""
    found = (template or deployed()).of(QUEUE)
    (one,) = [(id_, queue) for id_, queue in found.items() if text(queue["QueueName"]) == f"${{AWS::StackName}}-{name}"]
    return one


def mapping_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the one mapping that reads a queue, and the function that it invokes."""
    id_, _ = queue_of(name)
    (mapping,) = [one for one in deployed().of(MAPPING).values() if referred(one["EventSourceArn"]) == id_]
    return mapping, deployed().of(FUNCTION)[referred(mapping["FunctionName"]) or ""]


def function_named(name: str, template: Template | None = None) -> dict[str, Any]:
    (function,) = [
        function
        for function in (template or deployed()).of(FUNCTION).values()
        if text(function["FunctionName"]) == f"${{AWS::StackName}}-{name}"
    ]
    return function


def granted(function: str, template: Template) -> Iterator[dict[str, Any]]:
    """Yield what a function may do: its role's own statements, and those of this template's managed policies."""
    role = template.of("AWS::IAM::Role")[f"{function}Role"]
    for policy in role.get("Policies", []):
        yield from statements(policy["PolicyDocument"])
    for arn in role["ManagedPolicyArns"]:
        if (id_ := referred(arn)) is not None:
            yield from statements(template.of("AWS::IAM::ManagedPolicy")[id_]["PolicyDocument"])


def actions(function: str, variant: str = "everything") -> set[str]:
    found = [statement["Action"] for statement in granted(function, deployed(variant))]
    return {action for one in found for action in (one if isinstance(one, list) else [one])}


@each_lane
def test_lane_is_a_standard_queue_with_its_own_dead_letter_queue(lane: Lane) -> None:
    dead_id, dead = queue_of(f"{lane}-dlq")
    _, queue = queue_of(lane)
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": {"Fn::GetAtt": [dead_id, "Arn"]}, "maxReceiveCount": 10}
    assert "FifoQueue" not in queue
    (allowed,) = dead["RedriveAllowPolicy"]["sourceQueueArns"]
    assert text(allowed).endswith(f":{text(queue['QueueName'])}")


@each_lane
def test_a_lane_is_read_by_its_worker(lane: Lane) -> None:
    _, function = mapping_of(lane)
    worker = "worker-heavy" if lane is Lane.HEAVY else "worker"
    assert text(function["FunctionName"]) == f"${{AWS::StackName}}-{worker}"


@each_lane
def test_the_longest_job_of_a_lane_fits_into_its_workers_time(lane: Lane) -> None:
    _, function = mapping_of(lane)
    margin = timedelta(seconds=Settings(stack="any").budget_margin_seconds)
    assert LONGEST[lane] + margin <= timedelta(seconds=function["Timeout"])


def test_a_heavy_job_has_a_worker_and_more_memory_to_itself() -> None:
    mapping, heavy = mapping_of("heavy")
    _, light = mapping_of("normal")
    assert mapping["BatchSize"] == 1
    assert heavy["MemorySize"] > light["MemorySize"]
    assert heavy["Timeout"] == 900
    assert {heavy["Code"]["S3Key"]} == {light["Code"]["S3Key"]}, "both are one worker"


def test_an_urgent_job_does_not_wait_for_its_batch_to_fill() -> None:
    mapping, _ = mapping_of("high")
    assert "MaximumBatchingWindowInSeconds" not in mapping


@each_lane
def test_a_message_outlives_the_longest_delay_and_ten_failures_in_its_lane(lane: Lane) -> None:
    _, queue = queue_of(lane)
    assert 10 * queue["VisibilityTimeout"] + SQS_MAX_DELAY.total_seconds() < queue["MessageRetentionPeriod"]


@pytest.mark.parametrize("name", [*(f"{lane}-dlq" for lane in Lane), "failed-invocations"])
def test_what_has_failed_is_filed_by_the_dead_letter_function(name: str) -> None:
    _, function = mapping_of(name)
    assert text(function["FunctionName"]) == "${AWS::StackName}-dead-letter"


@each_variant
def test_the_stack_publishes_on_a_bus_of_its_own(variant: str) -> None:
    (id_,) = deployed(variant).of("AWS::Events::EventBus")
    assert deployed(variant).of("AWS::Events::EventBus")[id_]["Name"] == {"Ref": "AWS::StackName"}
    for name in ("archiver", "worker", "worker-heavy"):
        assert function_named(name)["Environment"]["Variables"]["SIGNALBOX_EVENT_BUS"] == {"Fn::GetAtt": [id_, "Name"]}


@pytest.mark.parametrize("name", LOOPING)
def test_sender_to_its_own_queue_may_exceed_lambdas_loop_limit(name: str) -> None:
    assert function_named(name).get("RecursiveLoop") == "Allow"


@pytest.mark.parametrize(
    ("function", "actions_missing"),
    [
        ("WorkerFunction", {"ses:SendEmail"}),
        ("DeadLetterFunction", {"sns:Publish", "s3:GetObject", "lambda:InvokeFunction", "events:PutEvents"}),
        ("PollerFunction", {"sqs:ReceiveMessage", "events:PutEvents"}),
    ],
)
def test_nobody_may_send_what_no_parameter_names(function: str, actions_missing: set[str]) -> None:
    assert actions(function, "engine") & actions_missing == set()


def test_mail_and_messages_go_only_where_a_parameter_says() -> None:
    sending = list(_sending(deployed(), "WorkerFunction"))
    assert [statement.get("Resource") for statement in sending] == [
        {"Ref": "OperatorsTopicArn"},
        {"Ref": "SenderIdentityArn"},
        {"Ref": "NotificationsTopicArn"},
        None,
    ]
    assert text(sending[3]["NotResource"]).endswith(":sns:*:*:*"), "text messages go to no topic"
    assert [statement["Resource"] for statement in _sending(deployed(), "ArchiverFunction")] == [
        {"Ref": "OperatorsTopicArn"}
    ]


@pytest.mark.parametrize("function", ["ArchiverFunction", "WorkerFunction", "WorkerHeavyFunction"])
def test_without_parameter_only_operators_are_notified_by_the_stacks_topic(function: str) -> None:
    template = deployed("engine")
    told = {"Ref": "OperatorsTopic"}
    assert [statement["Resource"] for statement in _sending(template, function)] == [told]
    assert template.of(FUNCTION)[function]["Environment"]["Variables"]["SIGNALBOX_OPERATORS_TOPIC_ARN"] == told


def test_a_payload_names_no_secrets_but_those_of_webhooks() -> None:
    read = [
        text(resource)
        for statement in granted("WorkerFunction", deployed("engine"))
        if statement["Action"] == "secretsmanager:GetSecretValue"
        for resource in listed(statement["Resource"])
        if "Ref" not in resource
    ]
    assert [one.rpartition(":secret:")[2] for one in read] == ["${AWS::StackName}/webhooks/*"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("OperatorsTopicArn", f"{TOPIC}:one"),
        ("NotificationsTopicArn", f"{TOPIC}:one"),
        ("SenderIdentityArn", "arn:aws:ses:us-east-1:123456789012:identity/example.com"),
    ],
)
def test_each_of_those_permissions_comes_with_its_own_parameter(parameter: str, value: str) -> None:
    decided = deployed_with({"DatabaseSecretArn": SECRET, parameter: value})
    told = [] if parameter == "OperatorsTopicArn" else [{"Ref": "OperatorsTopic"}]
    sending = [statement["Resource"] for statement in _sending(decided, "WorkerFunction")]
    assert sending == [*told, {"Ref": parameter}]


@pytest.mark.parametrize("worker", ["WorkerFunction", "WorkerHeavyFunction"])
@each_variant
def test_task_run_as_job_has_all_it_has_in_the_archiver(worker: str, variant: str) -> None:
    template = deployed(variant)
    archiver, function = function_named("archiver", template), template.of(FUNCTION)[worker]
    assert archiver["Environment"]["Variables"].items() <= function["Environment"]["Variables"].items()
    roles = template.of("AWS::IAM::Role")
    wanted = [arn for arn in roles["ArchiverFunctionRole"]["ManagedPolicyArns"] if referred(arn)]
    assert [arn for arn in wanted if arn not in roles[f"{worker}Role"]["ManagedPolicyArns"]] == []


def _sending(template: Template, function: str) -> Iterator[dict[str, Any]]:
    for statement in granted(function, template):
        if statement["Action"] in ("ses:SendEmail", "sns:Publish"):
            yield statement
