"""What a deploy keeps so that no code meets a schema that is behind it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.template import FUNCTION, Template, referred

MIGRATIONS = "Custom::SignalboxMigrations"


def are_asked_of_what_was_just_deployed(template: Template) -> Iterator[str]:
    """And an event that failed is in no queue, where its signed address would be kept."""
    invoked = {referred(one["FunctionName"]) for one in template.of("AWS::Lambda::EventInvokeConfig").values()}
    for name, properties in template.of(MIGRATIONS).items():
        token = properties.get("ServiceToken")
        if not isinstance(token, dict) or "Fn::GetAtt" not in token or referred(token) not in template.of(FUNCTION):
            yield f"{name}: its ServiceToken is not the function's own ARN"
        elif referred(token) in invoked:
            yield f"{name}: what {referred(token)} fails at is sent elsewhere"


def are_asked_for_again_by_what_changes(template: Template) -> Iterator[str]:
    """CloudFormation asks only where a property has changed, and that stands for the code."""
    for name, properties in template.of(MIGRATIONS).items():
        told = {referred(value) for value in properties.values()}
        if not any(template.resources.get(one or "", {}).get("Type") == "AWS::Lambda::LayerVersion" for one in told):
            yield f"{name}: no property is a layer"


def are_waited_for_no_longer_than_they_take(template: Template) -> Iterator[str]:
    """Where no answer comes, such as of code that can't start: three tries of five minutes, and what lies between."""
    for name, properties in template.of(MIGRATIONS).items():
        if not 900 < int(properties.get("ServiceTimeout", 3600)) < 3600:
            yield f"{name}: ServiceTimeout leaves CloudFormation waiting for an hour"


def come_before_all_other_functions(template: Template) -> Iterator[str]:
    for migrations, properties in template.of(MIGRATIONS).items():
        for name in sorted(set(template.of(FUNCTION)) - {referred(properties.get("ServiceToken"))}):
            before = template.resources[name].get("DependsOn", [])
            if migrations not in ([before] if isinstance(before, str) else before):
                yield f"{name}: does not wait for {migrations}"
