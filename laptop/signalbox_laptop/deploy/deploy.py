"""Do what `sam deploy` does: package, transform and upload the template, and have moto's CloudFormation create it.

Everything that can be refused is refused before anything is made. Resources that moto leaves out are completed here; a
resource that neither makes is an error that names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.errors import ScheduleRefused, TaskUnknown
from signalbox.packs.registries import TaskRegistry
from signalbox.packs.schedule import Schedule
from signalbox_laptop.aws import client
from signalbox_laptop.deploy import moto_gaps
from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.custom_resources import CustomResource
from signalbox_laptop.deploy.package import BUCKET, Artifact
from signalbox_laptop.deploy.parameters import faults_of
from signalbox_laptop.deploy.template import Template, package, parameters_of, read_template, transform
from signalbox_laptop.errors import DeployFailed, ParameterRefused

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

RegistryOf = Callable[[Sequence[str]], TaskRegistry]
Resources = Mapping[str, Any]
_TEMPLATE, _QUESTIONS = "{}.template", "{}.questions.template"
_VARIABLE = re.compile(r"<[\w.-]+>")
NESTED = "AWS::CloudFormation::Stack"


@dataclass(frozen=True, slots=True)
class Plan:
    """Describe a stack as it will be created."""

    stack: str
    template: Template
    parameters: Mapping[str, str]
    artifacts: Sequence[Artifact] = ()
    nested: Sequence[Plan] = ()  # the stacks among its resources, each named by its logical id

    @property
    def resources(self) -> Resources:
        """Return the resources that these parameters make."""
        return Decided(self.template, self.parameters).resources()

    @property
    def all_resources(self) -> Resources:
        """Return the resources, with those of nested stacks."""
        return {name: resource for plan in (self, *self.nested) for name, resource in plan.resources.items()}


def plan(path: Path, stack: str, given: Mapping[str, str], registry_of: RegistryOf) -> Plan:
    """Read, package and transform the template, and refuse what can't work. Nothing is made yet."""
    template = read_template(path)
    artifacts = package(template, path.resolve().parent)
    if faults := faults_of(template.get("Parameters") or {}, given):
        raise ParameterRefused("; ".join(faults))
    parameters = parameters_of(template, given)
    _refuse(iter(Decided(template, parameters).refusals()))
    nested = tuple(_nested(Decided(template, {**parameters, "AWS::StackName": stack}), path.parent))
    planned = Plan(stack, transform(template, parameters), parameters, tuple(artifacts.values()), nested)
    _refuse(_unknown_tasks(planned.all_resources, registry_of(packs_run(planned.resources))))
    _refuse(_unreadable_schedules(planned.all_resources))
    return planned


def _nested(outer: Decided, folder: Path) -> Iterator[Plan]:
    """Plan the nested stacks, and check those of their parameters whose values are known already."""
    for name, resource in outer.resources().items():
        if resource["Type"] == NESTED:
            template = read_template(folder / resource["Properties"]["TemplateURL"])
            given = resource["Properties"].get("Parameters", {})
            known = {key: outer.text(value) for key, value in given.items() if outer.knows(value)}
            if faults := faults_of(template.get("Parameters") or {}, known):
                raise ParameterRefused(f"{name}: {'; '.join(faults)}")
            texts = {key: outer.text(value) for key, value in given.items()}
            yield Plan(name, template, parameters_of(template, texts))


def deploy(plan: Plan, endpoint: str) -> list[CustomResource]:
    """Create and complete the stack; return the resources that its own functions are still to make."""
    _upload(plan, endpoint)
    cloudformation: CloudFormationClient = client("cloudformation", endpoint)
    try:
        _create(cloudformation, plan)
        outputs = _complete(cloudformation, endpoint, plan, plan.stack)
    except (ClientError, BotoCoreError) as error:
        raise DeployFailed(f"stack {plan.stack} can't be created: {_message(error)}") from None
    found = moto_gaps.custom_resources(plan.resources, outputs)
    return [CustomResource(plan.stack, name, kind, properties) for name, kind, properties in found]


def _complete(cloudformation: CloudFormationClient, endpoint: str, plan: Plan, name: str) -> dict[str, str]:
    """Add what moto left out of the stack and its nested stacks; return its outputs, with the questions' answers."""
    made = _require_complete(cloudformation, plan, name)
    outputs = _outputs(cloudformation, name)
    moto_gaps.complete(endpoint, plan.template, outputs)
    for nested in plan.nested:
        _complete(cloudformation, endpoint, nested, made[nested.stack])
    _forget_questions(cloudformation, plan, name)
    return outputs


def packs_run(resources: Resources) -> list[str]:
    """Return the packs that the functions are configured to run."""
    told = (
        resource["Properties"].get("Environment", {}).get("Variables", {}).get("SIGNALBOX_PACKS", "")
        for resource in resources.values()
        if resource["Type"] == "AWS::Lambda::Function"
    )
    return sorted({pack.strip() for packs in told for pack in packs.split(",") if pack.strip()})


def tasks_fired(resources: Resources) -> list[tuple[str, str]]:
    """Return each rule's logical name with each task that one of its targets runs."""
    return [
        (name, task)
        for name, rule in _rules(resources)
        for target in rule.get("Targets", [])
        if (task := _task_of(target))
    ]


def _refuse(faults: Iterator[str]) -> None:
    if fault := "; ".join(faults):
        raise DeployFailed(fault)


def _unknown_tasks(resources: Resources, registry: TaskRegistry) -> Iterator[str]:
    for rule, task in tasks_fired(resources):
        try:
            registry.find(task)
        except TaskUnknown as error:
            yield f"rule {rule} fires a task that does not exist: {error}"


def _unreadable_schedules(resources: Resources) -> Iterator[str]:
    """Report schedules that EventBridge would refuse; moto accepts anything."""
    for name, rule in _rules(resources):
        expression = rule.get("ScheduleExpression")
        try:
            if isinstance(expression, str):
                Schedule.parse(expression)
        except ScheduleRefused as error:
            yield f"rule {name}: {error}"


def _rules(resources: Resources) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, resource in resources.items():
        if resource["Type"] == "AWS::Events::Rule":
            yield name, resource["Properties"]


def _task_of(target: Mapping[str, Any]) -> str | None:
    """Return the task in a target's constant or transformed input, or None if the input is something else."""
    text = target.get("Input") or target.get("InputTransformer", {}).get("InputTemplate")
    if isinstance(text, dict):
        text = text.get("Fn::Sub")
    try:
        given = json.loads(_VARIABLE.sub("null", text))
    except (TypeError, ValueError):
        return None
    task = given.get("task") if isinstance(given, dict) else None
    return task if isinstance(task, str) else None


def _upload(plan: Plan, endpoint: str) -> None:
    # Upload the templates, too: a template in the call itself is limited to 51,200 bytes.
    content = {artifact.key: artifact.content for artifact in plan.artifacts}
    for nested in plan.nested:
        plan.template["Resources"][nested.stack]["Properties"]["TemplateURL"] = _url(_QUESTIONS.format(nested.stack))
    for one in (plan, *plan.nested):
        content[_QUESTIONS.format(one.stack)] = json.dumps(moto_gaps.with_questions(one.template)).encode()
        content[_TEMPLATE.format(one.stack)] = json.dumps(one.template).encode()
    s3: S3Client = client("s3", endpoint)
    s3.create_bucket(Bucket=BUCKET)
    for key, body in content.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)


def _url(key: str) -> str:
    return f"https://{BUCKET}.s3.amazonaws.com/{key}"


def _forget_questions(cloudformation: CloudFormationClient, plan: Plan, name: str) -> None:
    """Leave the stack with the outputs that its own template has."""
    cloudformation.update_stack(
        StackName=name,
        TemplateURL=_url(_TEMPLATE.format(plan.stack)),
        Parameters=[{"ParameterKey": name, "UsePreviousValue": True} for name in plan.parameters],
    )


def _create(cloudformation: CloudFormationClient, plan: Plan) -> None:
    cloudformation.create_stack(
        StackName=plan.stack,
        TemplateURL=_url(_QUESTIONS.format(plan.stack)),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in plan.parameters.items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    )


def _require_complete(cloudformation: CloudFormationClient, plan: Plan, stack: str) -> dict[str, str]:
    """Return the physical names of what was made, by logical ones."""
    status = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    if status != "CREATE_COMPLETE":
        raise DeployFailed(f"stack {stack} is in state {status} after its creation")
    # moto also lists what it has skipped, as entries without a name.
    made = {
        resource.get("LogicalResourceId", ""): resource.get("PhysicalResourceId", "")
        for resource in cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    }
    missing = [
        f"{name} ({resource['Type']})"
        for name, resource in plan.resources.items()
        if name not in made and not moto_gaps.is_completed(resource["Type"])
    ]
    if missing:
        raise DeployFailed(
            f"moto's CloudFormation does not make {', '.join(missing)}: add a completion to deploy/moto_gaps.py"
        )
    return made


def _outputs(cloudformation: CloudFormationClient, stack: str) -> dict[str, str]:
    described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def _message(error: Exception) -> str:
    return error.response["Error"]["Message"] if isinstance(error, ClientError) else str(error)
