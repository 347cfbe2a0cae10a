"""What every function keeps: its logs, its failures, its layers and its role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.support.template import FUNCTION, QUEUE, RULE, Template, referred, text


def have_a_log_group_with_retention(template: Template) -> Iterator[str]:
    """A group that Lambda makes by itself keeps its logs, and their cost, for ever."""
    groups = template.of("AWS::Logs::LogGroup")
    for name, function in template.of(FUNCTION).items():
        logging = function.get("LoggingConfig", {})
        group = groups.get(referred(logging.get("LogGroup")) or "", {})
        if "RetentionInDays" not in group:
            yield f"{name}: no log group with RetentionInDays"
        elif text(group["LogGroupName"]) != f"/aws/lambda/{text(function['FunctionName'])}":
            yield f"{name}: its log group has another name"
        if logging.get("LogFormat") != "JSON":
            yield f"{name}: does not log JSON"


def lose_no_metrics(template: Template) -> Iterator[str]:
    """To Lambda a line without a level is INFO, and lines of metrics have none: above INFO it drops them."""
    for name, function in template.of(FUNCTION).items():
        level = function.get("LoggingConfig", {}).get("ApplicationLogLevel", "INFO")
        if level not in ("TRACE", "DEBUG", "INFO"):
            yield f"{name}: ApplicationLogLevel {text(level)} may drop what its metrics are read from"


def report_failed_invocations(template: Template) -> Iterator[str]:
    """Those that rules invoke: the handler's own errors, which a rule's retry policy never sees."""
    invoked = {
        template.function_behind(target["Arn"]) for rule in template.of(RULE).values() for target in rule["Targets"]
    }
    configs = template.of("AWS::Lambda::EventInvokeConfig").values()
    by_function = {referred(config["FunctionName"]): config for config in configs}
    for name in template.of(FUNCTION):
        if name not in invoked:
            continue
        config = by_function.get(name, {})
        queue = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if referred(queue) not in template.of(QUEUE):
            yield f"{name}: no EventInvokeConfig with OnFailure to a queue"
        elif not {"MaximumRetryAttempts", "MaximumEventAgeInSeconds"} <= set(config):
            yield f"{name}: its EventInvokeConfig does not bound both age and attempts"


def are_built_like_their_layers(template: Template) -> Iterator[str]:
    """A layer of another runtime or processor is found out at its first import, in production."""
    layers = template.of("AWS::Lambda::LayerVersion")
    for name, function in template.of(FUNCTION).items():
        for layer_name in filter(layers.__contains__, map(referred, function.get("Layers", []))):
            layer = layers[layer_name or ""]
            if layer.get("CompatibleRuntimes") != [function["Runtime"]]:
                yield f"{name}: {layer_name} is not for {function['Runtime']}"
            if layer.get("CompatibleArchitectures") != function["Architectures"]:
                yield f"{name}: {layer_name} is not for {function['Architectures'][0]}"


def have_roles_of_their_own(template: Template) -> Iterator[str]:
    """A shared role is the sum of what all need."""
    roles = {name: referred(function.get("Role")) for name, function in template.of(FUNCTION).items()}
    shared = Counter(roles.values())
    for name, role in roles.items():
        if role not in template.of("AWS::IAM::Role"):
            yield f"{name}: its role is not of this template"
        elif shared[role] > 1:
            yield f"{name}: {role} is another function's role too"
