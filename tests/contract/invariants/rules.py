"""What every scheduled rule keeps, and how rules and registered tasks match."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from signalbox.registry import Task
from tests.support.template import FUNCTION, QUEUE, RULE, Template, referred, statements, text

RULE_ARN = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/"
EVENTBRIDGE = "events.amazonaws.com"


def pass_the_scheduled_instant(template: Template) -> Iterator[str]:
    """With a constant input a late delivery would run the wrong slot."""
    for name, _, target in _targets(template):
        if target.get("InputTransformer", {}).get("InputPathsMap") != {"time": "$.time"}:
            yield f"{name}: InputPathsMap does not take $.time as time"
        elif set(payload_of(target)) != {"task", "scheduled_time"}:
            yield f"{name}: InputTemplate does not give task and scheduled_time"


def have_a_retry_policy(template: Template) -> Iterator[str]:
    """EventBridge's own is a day of attempts, each of which would come as a surprise."""
    for name, _, target in _targets(template):
        if set(target.get("RetryPolicy", {})) != {"MaximumEventAgeInSeconds", "MaximumRetryAttempts"}:
            yield f"{name}: RetryPolicy does not bound both age and attempts"


def have_a_dead_letter_queue(template: Template) -> Iterator[str]:
    """What can't be delivered must be seen, and the queue must let rules write to it."""
    writable = set(_queues_that_rules_write(template))
    for name, _, target in _targets(template):
        queue = referred(target.get("DeadLetterConfig", {}).get("Arn"))
        if queue not in template.of(QUEUE):
            yield f"{name}: no DeadLetterConfig"
        elif queue not in writable:
            yield f"{name}: {queue} has no policy that lets rules send to it"


def fire_on_the_clock(template: Template) -> Iterator[str]:
    """rate() counts from the rule's creation, so two fires may fall into one slot and none into the next."""
    for name, rule, _ in _targets(template):
        if not rule["ScheduleExpression"].startswith("cron("):
            yield f"{name}: {rule['ScheduleExpression']} is not aligned with the clock"


def may_invoke_their_function(template: Template) -> Iterator[str]:
    """Without the permission a rule fires into the void."""
    permissions = template.of("AWS::Lambda::Permission").values()
    for name, rule, target in _targets(template):
        function = referred(target["Arn"])
        sources = (
            text(permission["SourceArn"])
            for permission in permissions
            if referred(permission["FunctionName"]) == function and permission["Principal"] == EVENTBRIDGE
        )
        if not any(fnmatchcase(RULE_ARN + text(rule["Name"]), source) for source in sources):
            yield f"{name}: no permission to invoke {function}"


def without_task(template: Template, tasks: Mapping[str, Task]) -> Iterator[str]:
    """Each rule has a task, whose name, schedule and function it takes over."""
    for name, rule, target in _targets(template):
        wanted = payload_of(target).get("task")
        task = tasks.get(str(wanted))
        if task is None:
            yield f"{name}: task {wanted!r} is not registered"
            continue
        if text(rule["Name"]) != f"${{AWS::StackName}}-{task.name}":
            yield f"{name}: its name does not end in -{task.name}"
        if rule["ScheduleExpression"] != task.schedule:
            yield f"{name}: fires on {rule['ScheduleExpression']}, and {task.name} runs on {task.schedule}"
        function = template.of(FUNCTION)[template.function_behind(target["Arn"]) or ""]
        if text(function["FunctionName"]) != f"${{AWS::StackName}}-{task.function}":
            yield f"{name}: {task.name} belongs to the {task.function}"


def missing_for(template: Template, tasks: Mapping[str, Task]) -> Iterator[str]:
    """Each scheduled task has one rule, and one that is not scheduled has none."""
    fired = Counter(payload_of(target).get("task") for _, _, target in _targets(template))
    for task in tasks.values():
        wanted = 0 if task.schedule is None else 1
        if fired[task.name] != wanted:
            yield f"task {task.name}: {fired[task.name]} rules fire it, and {wanted} should"


def payload_of(target: Mapping[str, Any]) -> dict[str, Any]:
    """What the function receives, with <time> standing for itself."""
    template = target.get("InputTransformer", {}).get("InputTemplate", "{}")
    payload: dict[str, Any] = json.loads(template.replace("<time>", '"<time>"'))
    return payload


def _targets(template: Template) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each target of each scheduled rule."""
    for name, rule in template.of(RULE).items():
        if "ScheduleExpression" in rule:
            yield from ((name, rule, target) for target in rule["Targets"])


def _queues_that_rules_write(template: Template) -> Iterator[str | None]:
    for policy in template.of("AWS::SQS::QueuePolicy").values():
        for statement in statements(policy["PolicyDocument"]):
            if statement["Effect"] == "Allow" and statement["Principal"] == {"Service": EVENTBRIDGE}:
                yield from map(referred, policy["Queues"])
