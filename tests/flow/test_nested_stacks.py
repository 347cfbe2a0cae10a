"""A stack in the stack, like a pack, is made and completed with it, or refused with it before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbox.engine_pack import registry_of
from signalbox_laptop.deploy.deploy import NESTED, plan
from signalbox_laptop.errors import DeployFailed, ParameterRefused
from tests.support.deployed import deploy_to, moto
from tests.support.small_project import write_resources

DENY = {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue", "Resource": "*"}
QUEUES: dict[str, Any] = {
    "Jobs": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${Stack}-jobs"}}},
    "JobsPolicy": {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": [{"Ref": "Jobs"}], "PolicyDocument": {"Version": "2012-10-17", "Statement": [DENY]}},
    },
}
OUTPUTS = {"JobsUrl": {"Value": {"Ref": "Jobs"}}}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("stand-in")) as endpoint:
        yield endpoint


def write(folder: Path, resources: dict[str, Any], **root: Any) -> Path:
    """Write a template with a nested one."""
    (folder / "pack").mkdir()
    parameters = {"Stack": {"Type": "String", "AllowedPattern": "[a-z]+", "ConstraintDescription": "is in lower case"}}
    write_resources(folder / "pack", resources, Parameters=parameters, Outputs=OUTPUTS)
    given = {"TemplateURL": "pack/template.yaml", "Parameters": {"Stack": {"Ref": "AWS::StackName"}}}
    return write_resources(folder, {"Pack": {"Type": NESTED, "Properties": given, **root}})


def test_nested_outputs_reach_the_outer_stack_and_motos_gaps_are_filled(tmp_path: Path, endpoint: str) -> None:
    template = write(tmp_path, QUEUES)
    template.write_text(
        template.read_text() + "Outputs: {JobsUrl: {Value: !GetAtt Pack.Outputs.JobsUrl}}\n", encoding="utf-8"
    )
    deployed = deploy_to(endpoint, template)
    url = deployed.outputs()["JobsUrl"]
    assert url.endswith("/signalbox-jobs")
    held = deployed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    assert "sqs:PurgeQueue" in held["Attributes"]["Policy"]
    stacks = deployed.client("cloudformation").describe_stacks()["Stacks"]
    assert {output["OutputKey"] for stack in stacks for output in stack["Outputs"]} == {"JobsUrl"}


def test_one_whose_condition_does_not_hold_is_not_even_read(tmp_path: Path) -> None:
    template = write(tmp_path, {}, Condition="Wanted")
    template.write_text(template.read_text() + "Conditions: {Wanted: !Equals [a, b]}\n", encoding="utf-8")
    (tmp_path / "pack/template.yaml").unlink()
    assert plan(template, "signalbox", {}, registry_of).nested == ()


def test_a_parameter_that_it_does_not_take_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterRefused, match="Pack: parameter Stack can't be 'Prod': it is in lower case"):
        plan(write(tmp_path, QUEUES), "Prod", {}, registry_of)


def test_a_rule_in_it_whose_task_does_not_exist_is_named(tmp_path: Path) -> None:
    target = {"Id": "one", "Arn": "arn:aws:lambda:us-east-1:1:function:one", "Input": '{"task": "forget_all"}'}
    rule = {"Type": "AWS::Events::Rule", "Properties": {"Name": "nightly", "Targets": [target]}}
    with pytest.raises(DeployFailed, match="rule Nightly fires a task that does not exist"):
        plan(write(tmp_path, {**QUEUES, "Nightly": rule}), "signalbox", {}, registry_of)
