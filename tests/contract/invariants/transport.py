"""Which queues and buckets refuse requests without TLS, by the policies attached to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.support.template import Template, referred, statements


def refusing_plain_http(
    template: Template, kind: str, attached_to: Callable[[Mapping[str, Any]], Iterable[Any]]
) -> Iterator[str | None]:
    """The logical ids of what such a policy is attached to."""
    for policy in template.of(kind).values():
        if any(_refuses(statement) for statement in statements(policy["PolicyDocument"])):
            yield from map(referred, attached_to(policy))


def _refuses(statement: Mapping[str, Any]) -> bool:
    plain = statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport") == "false"
    # A topic's policy takes no wildcard; what goes over the wire there is what is published.
    everything = str(statement["Action"]).endswith((":*", "sns:Publish"))
    return statement["Effect"] == "Deny" and statement.get("Principal") == "*" and everything and plain
