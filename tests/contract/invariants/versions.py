"""What every function keeps so that a deploy can be gradual: versions, an alias, alarms that see the new version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract.invariants.references import names_in
from tests.support.template import ALARM, ALIAS, FUNCTION, RULE, VERSION, Template, listed, referred, statements, text

LIVE = "live"
GROUP = "AWS::CodeDeploy::DeploymentGroup"
MAPPING, CONFIGURATION = "AWS::Lambda::EventSourceMapping", "AWS::AppConfig::HostedConfigurationVersion"
# A function's own, and what it is for as long as the function is.
_OWN = ("AWS::IAM::Role", "AWS::Logs::LogGroup", CONFIGURATION)


def have_an_alias(template: Template) -> Iterator[str]:
    """What has none can only be invoked as it was deployed last, tried or not."""
    aliases = {referred(alias["FunctionName"]): alias for alias in template.of(ALIAS).values()}
    for name in template.of(FUNCTION):
        alias = aliases.get(name, {})
        version = template.of(VERSION).get(referred(alias.get("FunctionVersion")) or "", {})
        if alias.get("Name") != LIVE:
            yield f"{name}: no alias {LIVE}"
        elif referred(version.get("FunctionName")) != name:
            yield f"{name}: its alias points at no version of it"


def are_kept(template: Template) -> Iterator[str]:
    """A version that went with its successor's deploy is none that anybody could go back to by hand."""
    for name in template.of(VERSION):
        resource = template.resources[name]
        if any(resource.get(policy) != "Retain" for policy in ("DeletionPolicy", "UpdateReplacePolicy")):
            yield f"{name}: DeletionPolicy and UpdateReplacePolicy do not retain it"


def are_invoked_by_their_alias(template: Template) -> Iterator[str]:
    """One way past the alias is enough to run a version that was rolled back."""
    for name, invoked in _invoked(template):
        if isinstance(invoked, dict) and "Fn::Sub" in invoked:
            if not text(invoked).endswith(f":{LIVE}"):
                yield f"{name}: {text(invoked)} is no alias"
        elif referred(invoked) not in template.of(ALIAS):
            yield f"{name}: {referred(invoked)} is no alias"


def treat_failed_events_by_their_alias(template: Template) -> Iterator[str]:
    """What is configured for the function itself does not hold for its alias."""
    for name, config in template.of("AWS::Lambda::EventInvokeConfig").items():
        if config.get("Qualifier") != LIVE:
            yield f"{name}: is for {config.get('Qualifier')}, and {LIVE} is what is invoked"


def are_rolled_back_by_alarms(template: Template) -> Iterator[str]:
    """Each group stops on alarms of this template, and one of their metrics is of the new version alone."""
    groups = _groups(template)
    for name, (function, group) in groups.items():
        stops = group.get("AlarmConfiguration") or {}
        named = [referred(alarm["Name"]) for alarm in stops.get("Alarms", []) if stops.get("Enabled")]
        if not named:
            yield f"{name}: stops on no alarm"
        yield from (f"{name}: alarm {alarm} {fault}" for alarm in named if (fault := _blind(template, alarm, function)))
        if "DEPLOYMENT_STOP_ON_ALARM" not in group.get("AutoRollbackConfiguration", {}).get("Events", []):
            yield f"{name}: is stopped, and not rolled back"


def _blind(template: Template, alarm: str | None, function: str | None) -> str | None:
    """Why the alarm would not stop a deploy of the function."""
    if alarm is None or alarm not in template.of(ALARM):
        return "is not of this template"
    if function in set(_versions_watched(template, alarm)):
        return None
    return f"does not see the new version of {function}"


def are_published_with_what_they_depend_on(template: Template) -> Iterator[str]:
    """A parameter that only the function's configuration knows changes $LATEST, and no version that anybody invokes."""
    own = {name for kind in _OWN for name in template.of(kind)}
    counted = {one for configuration in template.of(CONFIGURATION).values() for one in names_in(configuration)}
    for name, function in template.of(FUNCTION).items():
        needed = {one for one in names_in(function) if not one.startswith("AWS::")} - own
        if missing := sorted(needed - counted):
            yield f"{name}: a change of {', '.join(missing)} publishes nothing; add it to Configuration's Content"
        if not set(template.of(CONFIGURATION)) & set(names_in(function.get("Environment"))):
            yield f"{name}: the configuration's number is not in its environment"


def _invoked(template: Template) -> Iterator[tuple[str, Any]]:
    """Each reference to a function by what invokes it, or lets it be invoked."""
    for name, rule in template.of(RULE).items():
        yield from ((name, target["Arn"]) for target in rule["Targets"] if _is_function(template, target["Arn"]))
    for kind in (MAPPING, "AWS::Lambda::Permission"):
        yield from ((name, one["FunctionName"]) for name, one in template.of(kind).items())
    for name, resource in template.resources.items():
        properties = resource.get("Properties", {})
        for statement in _statements(properties):
            if "lambda:InvokeFunction" in listed(statement.get("Action")):
                yield from ((name, resource) for resource in listed(statement.get("Resource")))


def _is_function(template: Template, value: Any) -> bool:
    return template.function_behind(value) in template.of(FUNCTION)


def _statements(properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
    documents = [policy["PolicyDocument"] for policy in properties.get("Policies", []) if isinstance(policy, dict)]
    for document in [*documents, *([properties["PolicyDocument"]] if "PolicyDocument" in properties else [])]:
        yield from statements(document)


def _groups(template: Template) -> dict[str, tuple[str | None, dict[str, Any]]]:
    """Each deployment group with the function whose alias it moves."""
    found = {}
    for alias in template.of(ALIAS):
        update = template.resources[alias].get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if update:
            group = referred(update["DeploymentGroupName"]) or ""
            function = referred(template.of(ALIAS)[alias]["FunctionName"])
            found[group] = function, template.of(GROUP).get(group, {})
    return found


def _versions_watched(template: Template, alarm: str) -> Iterator[str | None]:
    """The functions of which an alarm reads a metric by their new version."""
    for metric in template.of(ALARM)[alarm].get("Metrics", []):
        for dimension in metric.get("MetricStat", {}).get("Metric", {}).get("Dimensions", []):
            version = template.of(VERSION).get(referred(dimension["Value"]) or "")
            if version:
                yield referred(version["FunctionName"])
