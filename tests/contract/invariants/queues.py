"""What every queue keeps, and every mapping from a queue to a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract.invariants.transport import refusing_plain_http
from tests.support.template import FUNCTION, QUEUE, RULE, Template, listed, referred, statements

READING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
FOUR_DAYS = 345_600  # SQS's own retention
WITHOUT_WINDOW = 10  # messages, the most that Lambda takes without one


def hide_messages_for_six_timeouts(template: Template) -> Iterator[str]:
    """A throttled batch is tried again and again; meanwhile its messages must not appear to others."""
    for name, mapping, queue in _mappings(template):
        timeout = template.of(FUNCTION)[template.function_behind(mapping["FunctionName"]) or ""].get("Timeout", 3)
        if queue.get("VisibilityTimeout", 30) < 6 * timeout:
            yield f"{name}: VisibilityTimeout is below six times the function's {timeout} s"


def bear_throttling(template: Template) -> Iterator[str]:
    """Throttled polls count as receives: below five, healthy messages die unseen. What has failed for good waits where
    it is until it is filed, so the queues where it ends need no others behind them."""
    ends = set(_where_failures_end(template))
    for name, mapping, queue in _mappings(template):
        dead = referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        if dead not in template.of(QUEUE) and referred(mapping["EventSourceArn"]) not in ends:
            yield f"{name}: its queue has no dead-letter queue"
    for name, queue in template.of(QUEUE).items():
        if queue.get("RedrivePolicy", {}).get("maxReceiveCount", 5) < 5:
            yield f"{name}: maxReceiveCount is below five"


def let_only_their_own_dead_letters_in(template: Template) -> Iterator[str]:
    """A dead-letter queue takes from every queue of the account unless it names those it takes from."""
    queues = template.of(QUEUE)
    for name, queue in queues.items():
        dead = referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        policy = queues.get(dead or "", {}).get("RedriveAllowPolicy", {})
        if dead and policy.get("redrivePermission") != "byQueue":
            yield f"{name}: {dead} has no RedriveAllowPolicy byQueue"


def keep_dead_letters_longer_than_letters(template: Template) -> Iterator[str]:
    """A message keeps its age when it is moved: it would be gone at once, or nearly."""
    queues = template.of(QUEUE)
    for name, queue in queues.items():
        dead = referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        kept, kept_there = (one.get("MessageRetentionPeriod", FOUR_DAYS) for one in (queue, queues.get(dead or "", {})))
        if dead in queues and _is_lane(template, name) and kept_there <= kept:
            yield f"{name}: {dead} keeps its messages no longer"


def are_read_by_who_may(template: Template) -> Iterator[str]:
    """A mapping whose function may not read is made all the same, and brings nothing."""
    for name, mapping, _ in _mappings(template):
        function = template.of(FUNCTION)[template.function_behind(mapping["FunctionName"]) or ""]
        role = template.of("AWS::IAM::Role").get(referred(function.get("Role")) or "", {})
        allowed = {
            action
            for policy in role.get("Policies", [])
            for statement in statements(policy["PolicyDocument"])
            if mapping["EventSourceArn"] in listed(statement["Resource"])
            for action in listed(statement["Action"])
        }
        if missing := READING - allowed:
            yield f"{name}: its function may not {', '.join(sorted(missing))}"


def have_a_window_for_more_than_ten(template: Template) -> Iterator[str]:
    """Lambda refuses the mapping otherwise. A size that is a parameter may be any."""
    for name, mapping, _ in _mappings(template):
        size = mapping.get("BatchSize", WITHOUT_WINDOW)
        if (isinstance(size, dict) or size > WITHOUT_WINDOW) and not mapping.get("MaximumBatchingWindowInSeconds"):
            yield f"{name}: more than {WITHOUT_WINDOW} messages, and no MaximumBatchingWindowInSeconds"


def are_answered_message_by_message(template: Template) -> Iterator[str]:
    """Otherwise one bad message takes its whole batch along."""
    for name, mapping, _ in _mappings(template):
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: no ReportBatchItemFailures"


def are_read_with_bounded_concurrency(template: Template) -> Iterator[str]:
    """On the mapping, since reserved concurrency throttles polls instead of slowing them."""
    for name, mapping, _ in _mappings(template):
        if "MaximumConcurrency" not in mapping.get("ScalingConfig", {}):
            yield f"{name}: no ScalingConfig.MaximumConcurrency"


def are_read_whole(template: Template) -> Iterator[str]:
    """A filter on a mapping deletes what it does not let through."""
    for name, mapping, _ in _mappings(template):
        if "FilterCriteria" in mapping:
            yield f"{name}: FilterCriteria would delete messages that nobody has seen"


def keep_what_can_be_moved_back_apart(template: Template) -> Iterator[str]:
    """SQS moves back only from queues that other queues feed, and does not tell one message there from another."""
    others = {*_given_up_by_rules(template), *_given_up_by_invocations(template)}
    for name, queue in template.of(QUEUE).items():
        dead = referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        if dead in others:
            yield f"{name}: {dead} takes failed invocations or undelivered events, too"


def refuse_plain_http(template: Template) -> Iterator[str]:
    """Messages would go over the wire for all to read."""
    refusing = set(refusing_plain_http(template, "AWS::SQS::QueuePolicy", lambda policy: policy["Queues"]))
    for name in template.of(QUEUE):
        if name not in refusing:
            yield f"{name}: no policy that refuses requests without TLS"


def _mappings(template: Template) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each mapping from a queue of this template, with the queue."""
    queues = template.of(QUEUE)
    for name, mapping in template.of("AWS::Lambda::EventSourceMapping").items():
        if queue := queues.get(referred(mapping.get("EventSourceArn")) or ""):
            yield name, mapping, queue


def _is_lane(template: Template, queue: str) -> bool:
    """Whether a function of this template reads it."""
    return any(
        referred(mapping.get("EventSourceArn")) == queue
        for mapping in template.of("AWS::Lambda::EventSourceMapping").values()
    )


def _where_failures_end(template: Template) -> Iterator[str | None]:
    """Where queues, rules and asynchronous invocations send what they give up."""
    for queue in template.of(QUEUE).values():
        yield referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
    yield from _given_up_by_rules(template)
    yield from _given_up_by_invocations(template)


def _given_up_by_rules(template: Template) -> Iterator[str | None]:
    for rule in template.of(RULE).values():
        yield from (referred(target.get("DeadLetterConfig", {}).get("Arn")) for target in rule["Targets"])


def _given_up_by_invocations(template: Template) -> Iterator[str | None]:
    for config in template.of("AWS::Lambda::EventInvokeConfig").values():
        yield referred(config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"))
