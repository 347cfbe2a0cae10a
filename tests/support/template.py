"""Read the template as CloudFormation gets it, for tests that check its rules, and templates that a test makes up.

Nothing here is deployed and nothing is asked of AWS: it is the laptop's own reading and SAM's own transform.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.deploy import NESTED
from signalbox_laptop.deploy.template import package, parameters_of, read_template, transform

ROOT = Path(__file__).parents[2]
# The packs of this repository; the template has a rule for each of their scheduled tasks.
PACKS = sorted(path.parent.name for path in ROOT.glob("layers/*/*/pack.py"))
SWITCHES = {f"{pack.title().replace('_', '')}Pack": "on" for pack in PACKS}
FUNCTION, RULE, QUEUE, BUCKET = "AWS::Lambda::Function", "AWS::Events::Rule", "AWS::SQS::Queue", "AWS::S3::Bucket"
ALARM, MAPPING, ROLE = "AWS::CloudWatch::Alarm", "AWS::Lambda::EventSourceMapping", "AWS::IAM::Role"
LOG_GROUP, SECRET_KIND, TOPIC_KIND = "AWS::Logs::LogGroup", "AWS::SecretsManager::Secret", "AWS::SNS::Topic"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:database"
TOPIC = "arn:aws:sns:us-east-1:123456789012"
CERTIFICATES = "arn:aws:lambda:us-east-1:123456789012:layer:rds-certificates:1"

# What the template is deployed with: the least, the packs with what it can do without left out, and all there is in a
# network.
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "engine": {"DatabaseSecretArn": SECRET},
    "packs": {"DatabaseSecretArn": SECRET, **SWITCHES},
    "everything": {
        "DatabaseSecretArn": SECRET,
        "WriterSecretArn": f"{SECRET}-writer",
        "ReaderSecretArn": f"{SECRET}-reader",
        "MakeLogIns": "on",
        "SubnetIds": "subnet-1",
        "SecurityGroupIds": "sg-1",
        **SWITCHES,
        "ForecastsSettings": '{"runpod_endpoint_id": "endpoint"}',
        "PruneArchiveBucket": "pruned",
        "OperatorsTopicArn": f"{TOPIC}:operators",
        "NotificationsTopicArn": f"{TOPIC}:notifications",
        "SenderIdentityArn": "arn:aws:ses:us-east-1:123456789012:identity/example.com",
        "SenderAddress": "signalbox@example.com",
        "SmsNotifications": "on",
        "JwtIssuer": "https://login.example.com signalbox roles tenant",
    },
}


@dataclass(frozen=True, slots=True)
class Template:
    """Hold resources by their logical ids."""

    resources: Mapping[str, Any]

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of each resource of one type."""
        found = ((name, resource) for name, resource in self.resources.items() if resource["Type"] == kind)
        return {name: resource.get("Properties", {}) for name, resource in found}

    def altered(self, path: str, value: Any) -> Template:
        """Return a copy with another property, such as `Queue.VisibilityTimeout`; None takes it out.

        A path of one name alters the whole resource, and a number in it is a place in a list.
        """
        resources = deepcopy(dict(self.resources))
        name, *inner = path.split(".")
        _put(resources, [name, "Properties", *inner] if inner else [name], value)
        return Template(resources)


def _put(place: Any, steps: list[str], value: Any) -> None:
    *way, last = (int(step) if step.isdecimal() else step for step in steps)
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value


def source() -> dict[str, Any]:
    """Return template.yaml as it is written, with its short forms spelled out."""
    return read_template(ROOT / "template.yaml")


@cache
def deployed(variant: str = "everything") -> Template:
    """Return template.yaml as deployed with a variant's parameters, its conditions decided."""
    return deployed_with(VARIANTS[variant])


def deployed_with(given: Mapping[str, str]) -> Template:
    """Return template.yaml as deployed with parameters of one's own."""
    template = source()
    package(template, ROOT)
    parameters = parameters_of(template, given)
    return Template(spread(Decided(transform(template, parameters), parameters)))


def spread(stack: Decided) -> dict[str, Any]:
    """Return a stack's resources with those of its nested stacks, whose parameters become what they are given."""
    resources = stack.resources()
    for nested in [one["Properties"] for one in resources.values() if one["Type"] == NESTED]:
        template, given = read_template(ROOT / nested["TemplateURL"]), nested["Parameters"]
        inner = Decided(template, {name: stack.text(value) for name, value in given.items()}).resources()
        assert not set(inner) & set(resources), "logical ids are told apart by no more than themselves in tests"
        resources |= {name: _filled(resource, given) for name, resource in inner.items()}
    return resources


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    match value:
        case {"Ref": str(name)} if name in given:
            return given[name]
        case {"Fn::Sub": str(pattern)}:
            return {"Fn::Sub": re.sub(r"\$\{(\w+)\}", lambda found: _named(found[0], given.get(found[1])), pattern)}
        case dict():
            return {name: _filled(part, given) for name, part in value.items()}
        case list():
            return [_filled(part, given) for part in value]
    return value


def _named(as_it_is: str, value: Any) -> str:
    """Return a parameter in a Sub."""
    match value:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
    return as_it_is if value is None else str(value)


def database(**given: str) -> Template:
    """Return stacks/aurora.yaml as deployed with parameters of one's own."""
    template = read_template(ROOT / "stacks" / "aurora.yaml")
    return Template(Decided(template, parameters_of(template, given)).resources())


def packs_of(variant: str) -> list[str]:
    """Return the packs that a variant runs."""
    return PACKS if VARIANTS[variant].keys() >= SWITCHES.keys() else []


def referred(value: Any) -> str | None:
    """Return the logical id that a Ref or a GetAtt names."""
    if not isinstance(value, dict):
        return None
    if "Ref" in value:
        return str(value["Ref"])
    named = value.get("Fn::GetAtt")
    return str(named[0]) if named else None


def listed(value: Any) -> list[Any]:
    """Return a list of what may be written as one or as a list."""
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """Return a name as it is written, whether plain or in a Sub."""
    return str(value["Fn::Sub"]) if isinstance(value, dict) and "Fn::Sub" in value else str(value)


def statements(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the statements of a policy."""
    yield from document["Statement"]
