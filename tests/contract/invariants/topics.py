"""What every topic keeps."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.invariants.transport import refusing_plain_http
from tests.support.template import TOPIC_KIND, Template


def refuse_plain_http(template: Template) -> Iterator[str]:
    """What tells operators of a fault says where there is one."""
    refusing = set(refusing_plain_http(template, "AWS::SNS::TopicPolicy", lambda policy: policy["Topics"]))
    for name in template.of(TOPIC_KIND):
        if name not in refusing:
            yield f"{name}: no policy that refuses requests without TLS"
