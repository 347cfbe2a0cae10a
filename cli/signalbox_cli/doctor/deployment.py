"""Check what was deployed through AWS's APIs: functions, rules and the queue of failed invocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signalbox_cli.doctor.check import Finding, fail, ok, warn
from signalbox_cli.target.target import Target

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import FunctionConfigurationResponseTypeDef
    from mypy_boto3_sqs import SQSClient

FUNCTIONS = ("api", "archiver", "poller", "migrator", "worker", "worker-heavy", "dead-letter")
_NEEDED = ("SIGNALBOX_STACK", "SIGNALBOX_DATABASE_SECRET_ARN")
_REDEPLOY = "deploy the template again"


def check_functions(target: Target) -> list[Finding]:
    lambda_: LambdaClient = target.client("lambda")
    return [_function(lambda_, target, function) for function in FUNCTIONS]


def _function(lambda_: LambdaClient, target: Target, function: str) -> Finding:
    check, name = f"function {function}", target.function_name(function)
    try:
        found = lambda_.get_function_configuration(FunctionName=name)
    except lambda_.exceptions.ResourceNotFoundException:
        return fail(check, f"{name} does not exist", f"is the stack's name right, and the region? If so, {_REDEPLOY}")
    return judge_function(found, target.stack, check, name)


def judge_function(found: FunctionConfigurationResponseTypeDef, stack: str, check: str, name: str) -> Finding:
    """Judge from its configuration whether a function can work. Not everybody may see its encrypted environment."""
    faults = _faults(found, stack)
    if faults:
        return fail(check, f"{name} {', '.join(faults)}", _REDEPLOY)
    if "Error" in found.get("Environment", {}):
        advice = "kms:Decrypt on the stack's key lets you see it; the output StackKeyArn names it"
        return warn(check, f"{name} has an environment that you may not see", advice)
    layers = len(found.get("Layers", []))
    return ok(check, f"{found['Runtime']}, {found['Timeout']} s, {found['MemorySize']} MB, {layers} layers")


def _faults(found: FunctionConfigurationResponseTypeDef, stack: str) -> list[str]:
    """Return what the function's configuration lacks."""
    environment = found.get("Environment", {})
    variables = environment.get("Variables", {})
    state = found.get("State", "Active")
    needed = () if "Error" in environment else _NEEDED
    faults = [f"has no {name}" for name in needed if not variables.get(name)]
    if variables.get("SIGNALBOX_STACK", stack) != stack:
        faults.append(f"believes that its stack is {variables['SIGNALBOX_STACK']}")
    if not found.get("Layers"):
        faults.append("has no layers")
    if state != "Active" or found.get("LastUpdateStatus") == "Failed":
        faults.append(f"is {state}: {found.get('StateReason') or found.get('LastUpdateStatusReason') or 'no reason'}")
    return faults


def check_rules(target: Target, tasks: list[dict[str, Any]]) -> list[Finding]:
    """Check each scheduled task against the rule of its name."""
    events: EventBridgeClient = target.client("events")
    pages = events.get_paginator("list_rules").paginate(NamePrefix=f"{target.stack}.")
    rules = {rule["Name"].removeprefix(f"{target.stack}."): dict(rule) for page in pages for rule in page["Rules"]}
    scheduled = [task for task in tasks if task["schedule"]]
    findings = [finding for task in scheduled if (finding := _rule(events, target, task, rules.get(task["name"])))]
    return findings or [ok("rules", f"{len(scheduled)} scheduled tasks, each with its rule, enabled and with a target")]


def _rule(
    events: EventBridgeClient, target: Target, task: dict[str, Any], rule: dict[str, Any] | None
) -> Finding | None:
    name = f"{target.stack}.{task['name']}"
    if rule is None:
        return fail(
            "rules", f"{name} does not exist, so the task never runs", f"add it to the template, and {_REDEPLOY}"
        )
    if rule["ScheduleExpression"] != task["schedule"]:
        differ = f"fires {rule['ScheduleExpression']}, and the task's schedule is {task['schedule']}"
        return fail("rules", f"{name} {differ}", f"make them the same, and {_REDEPLOY}")
    if not events.list_targets_by_rule(Rule=name)["Targets"]:
        return fail("rules", f"{name} has no target, so nothing is invoked", _REDEPLOY)
    if rule.get("State") == "DISABLED":
        return warn("rules", f"{name} is disabled", f"`aws events enable-rule --name {name}` enables it")
    return None


def check_failed_invocations(target: Target) -> list[Finding]:
    sqs: SQSClient = target.client("sqs")
    name = f"{target.stack}-failed-invocations"
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    count = failed_invocations(sqs, url)
    if not count:
        return [ok("failed invocations", "all are filed among the dead letters")]
    advice = "`signalbox logs dead-letter` shows what keeps them from being filed"
    return [warn("failed invocations", f"{count:,} in {name}", advice)]


def failed_invocations(sqs: SQSClient, url: str) -> int:
    """Count the messages in the queue, including those that a reader has received."""
    attributes = sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    )["Attributes"]
    return sum(map(int, attributes.values()))
