"""What every queue keeps, and every mapping from a queue to a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract.invariants.transport import refusing_plain_http
from tests.support.template import FUNCTION, QUEUE, Template, referred


def are_encrypted(template: Template) -> Iterator[str]:
    """At rest, by SQS's key or by one of KMS."""
    for name, queue in template.of(QUEUE).items():
        if queue.get("SqsManagedSseEnabled") is not True and "KmsMasterKeyId" not in queue:
            yield f"{name}: neither SqsManagedSseEnabled nor KmsMasterKeyId"


def hide_messages_for_six_timeouts(template: Template) -> Iterator[str]:
    """A throttled batch is tried again and again; meanwhile its messages must not appear to others."""
    for name, mapping, queue in _mappings(template):
        timeout = template.of(FUNCTION)[referred(mapping["FunctionName"]) or ""].get("Timeout", 3)
        if queue.get("VisibilityTimeout", 30) < 6 * timeout:
            yield f"{name}: VisibilityTimeout is below six times the function's {timeout} s"


def bear_throttling(template: Template) -> Iterator[str]:
    """Throttled polls count as receives: below five, healthy messages die unseen."""
    for name, _, queue in _mappings(template):
        if referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn")) not in template.of(QUEUE):
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
