"""A template is packaged, transformed and created in AWS's stand-in, and read back through the API."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from signalbox.engine_pack import registry_of
from signalbox_laptop import aws
from signalbox_laptop.deploy.deploy import deploy, plan
from signalbox_laptop.deploy.package import BUCKET, package_function, package_layer
from signalbox_laptop.errors import DeployFailed, ParameterRefused
from tests.support.deployed import SECRET, Deployed, deploy_to, moto, reset
from tests.support.small_project import text_of, write_resources, write_small_project

GIVEN = {"DatabaseSecretArn": SECRET}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def deployed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with moto(tmp_path_factory.mktemp("home")) as endpoint:
        yield deploy_to(endpoint, project, GIVEN)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("stand-in")) as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(stand_in: str) -> str:
    """Start an empty stand-in."""
    reset(stand_in)
    return stand_in


def test_a_function_has_its_environment_with_references_resolved(deployed: Deployed) -> None:
    variables = configuration(deployed)["Environment"]["Variables"]
    assert variables["SIGNALBOX_STACK"] == "signalbox"
    assert variables["SECRET"] == SECRET
    assert variables["QUEUE_URL"] == deployed.outputs()["InboxUrl"]


def test_a_function_has_its_layers_and_logs_as_the_template_says(deployed: Deployed) -> None:
    function = configuration(deployed)
    assert [layer["Arn"].split(":")[-2].split("-")[1][:9] for layer in function["Layers"]] == ["Greetings", "Dependenc"]
    assert function["LoggingConfig"]["LogFormat"] == "JSON"


def test_a_functions_code_is_its_folder(deployed: Deployed) -> None:
    code = deployed.client("lambda").get_function(FunctionName="signalbox-archiver")["Code"]
    assert contents(deployed, code["Location"]) == ["handler.py"]


def test_a_layer_holds_its_packages_with_their_sql_where_python_looks(deployed: Deployed) -> None:
    assert layer_contents(deployed, 0) == ["python/greeting/__init__.py", "python/greeting/greet.sql"]


def test_the_layer_of_dependencies_is_empty_on_the_laptop(deployed: Deployed) -> None:
    assert layer_contents(deployed, 1) == []


def test_a_mapping_keeps_what_decides_about_batches(deployed: Deployed) -> None:
    (mapping,) = deployed.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert mapping["BatchSize"] == 5
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_a_rule_keeps_its_target_with_the_input_transformer(deployed: Deployed) -> None:
    (target,) = deployed.client("events").list_targets_by_rule(Rule="signalbox.poll_data")["Targets"]
    assert target["InputTransformer"]["InputPathsMap"] == {"time": "$.time"}
    assert target["Arn"] == f"{configuration(deployed)['FunctionArn']}"


def test_the_stack_shows_the_outputs_of_its_template_and_no_others(deployed: Deployed) -> None:
    assert sorted(deployed.outputs()) == ["AtticName", "FailuresUrl", "InboxUrl", "TicksUrl"]


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    once = write_small_project(tmp_path / "once").parent
    again = write_small_project(tmp_path / "again").parent
    (again / "functions/archiver/__pycache__").mkdir()
    (again / "functions/archiver/__pycache__/handler.cpython-313.pyc").write_bytes(b"other each time")
    assert package_function(once / "functions/archiver") == package_function(again / "functions/archiver")
    assert package_layer(once / "layers/greetings") == package_layer(again / "layers/greetings")


def test_rule_with_unknown_task_is_refused_by_name_before_any_creation(tmp_path: Path, endpoint: str) -> None:
    template = text_of("template.yaml").replace('"task": "poll_data"', '"task": "pol_data"')
    path = write_small_project(tmp_path, **{"template.yaml": template})
    with pytest.raises(DeployFailed, match=r"rule PollRule .* 'pol_data' .* did you mean 'poll_data'"):
        deploy_to(endpoint, path, GIVEN)
    assert Deployed(endpoint).client("s3").list_buckets()["Buckets"] == []


@pytest.mark.parametrize(
    ("rule", "function", "refused"),
    [("on", "on", False), ("off", "off", False), ("off", "on", False), ("on", "off", True)],
)
def test_rules_count_if_their_condition_holds_and_packs_if_run(
    tmp_path: Path, rule: str, function: str, refused: bool
) -> None:
    packs = {"Fn::If": ["Function", "forecasts", {"Ref": "AWS::NoValue"}]}
    resources = {
        "Worker": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Environment": {"Variables": {"SIGNALBOX_PACKS": packs}}},
        },
        "Nightly": {
            "Type": "AWS::Events::Rule",
            "Condition": "Rule",
            "Properties": {"Targets": [{"Id": "t", "Arn": "a", "Input": '{"task": "cleanup_expired_invites"}'}]},
        },
    }
    parameters = {name: {"Type": "String"} for name in ("Rule", "Function")}
    conditions = {name: {"Fn::Equals": [{"Ref": name}, "on"]} for name in parameters}
    path = write_resources(tmp_path, resources, Parameters=parameters, Conditions=conditions)
    with pytest.raises(DeployFailed, match="Nightly fires a task that does not exist") if refused else nullcontext():
        plan(path, "signalbox", {"Rule": rule, "Function": function}, registry_of)


def test_a_rule_whose_schedule_eventbridge_would_not_take_is_refused(tmp_path: Path) -> None:
    rule = {"Type": "AWS::Events::Rule", "Properties": {"ScheduleExpression": "cron(0/15 * * * *)", "Targets": []}}
    with pytest.raises(DeployFailed, match=r"rule Nightly: schedule 'cron\(0/15 \* \* \* \*\)'"):
        plan(write_resources(tmp_path, {"Nightly": rule}), "signalbox", {}, registry_of)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "parameter DatabaseSecretArn has no default"),
        ({**GIVEN, "Pack": "x"}, "no parameter Pack; known are DatabaseSecretArn, Subnets"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(project: Path, given: dict[str, str], fault: str) -> None:
    with pytest.raises((DeployFailed, ParameterRefused), match=fault):
        plan(project, "signalbox", given, registry_of)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "has no Resources"),
        ("Resources: [", "can't be read"),
        ("Resources: {Fn::ForEach::Lanes: [Lane, [high, low], {}]}", "resource Fn::ForEach::Lanes .* has no Type"),
        (
            "Resources: {F: {Type: AWS::Serverless::Function, Properties: {CodeUri: nowhere}}}",
            "nowhere, which does not",
        ),
        ("Resources: {F: {Type: AWS::Serverless::Function, Properties: {CodeUri: s3://b/k}}}", "SAM refuses .*Runtime"),
    ],
)
def test_a_template_that_can_not_work_is_refused_before_anything_is_made(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(text)
    with pytest.raises(DeployFailed, match=fault):
        plan(path, "signalbox", {}, registry_of)


def test_a_missing_template_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeployFailed, match=r"elsewhere\.yaml can't be read"):
        plan(tmp_path / "elsewhere.yaml", "signalbox", {}, registry_of)


def test_a_resource_that_can_not_be_made_is_named(tmp_path: Path, endpoint: str) -> None:
    target = {"Id": "t", "Arn": "not an arn"}
    rule = {"Type": "AWS::Events::Rule", "Properties": {"ScheduleExpression": "rate(1 day)", "Targets": [target]}}
    with pytest.raises(DeployFailed, match=r"Nightly \(AWS::Events::Rule\): .*not an arn"):
        deploy_to(endpoint, write_resources(tmp_path, {"Nightly": rule}))


def test_a_kind_of_resource_that_nobody_makes_is_named(tmp_path: Path, endpoint: str) -> None:
    path = write_resources(tmp_path, {"Fleet": {"Type": "AWS::GameLift::Fleet", "Properties": {}}})
    with pytest.raises(DeployFailed, match=r"does not make Fleet \(AWS::GameLift::Fleet\): .*moto_gaps\.py"):
        deploy_to(endpoint, path)


def test_a_template_larger_than_a_call_may_be_deploys(tmp_path: Path, endpoint: str) -> None:
    tags = [{"Key": f"key-{number}", "Value": "x" * 200} for number in range(40)]
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"Tags": tags}}
    path = write_resources(tmp_path, {f"Queue{number}": queue for number in range(10)})
    assert len(json.dumps({"Queue": queue})) * 10 > 51_200
    deployed = deploy_to(endpoint, path)
    assert len(deployed.client("sqs").list_queues()["QueueUrls"]) == 10


def test_the_persons_own_aws_configuration_is_left_alone(
    tmp_path: Path, project: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.session.cache_clear()
    for name, value in {
        "AWS_PROFILE": "that-does-not-exist",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    deploy(plan(project, "signalbox", GIVEN, registry_of), endpoint)
    functions = Deployed(endpoint).client("lambda").list_functions()["Functions"]
    assert [function["FunctionArn"].split(":")[3] for function in functions] == ["us-east-1", "us-east-1"]
    assert BUCKET in [bucket["Name"] for bucket in Deployed(endpoint).client("s3").list_buckets()["Buckets"]]


def configuration(deployed: Deployed) -> dict[str, Any]:
    answer: dict[str, Any] = deployed.client("lambda").get_function_configuration(FunctionName="signalbox-archiver")
    return answer


def layer_contents(deployed: Deployed, index: int) -> list[str]:
    name, version = configuration(deployed)["Layers"][index]["Arn"].split(":")[-2:]
    layer = deployed.client("lambda").get_layer_version(LayerName=name, VersionNumber=int(version))
    return contents(deployed, layer["Content"]["Location"])


def contents(deployed: Deployed, location: str) -> list[str]:
    place = urlsplit(location)
    answer = deployed.client("s3").get_object(Bucket=place.netloc.partition(".")[0], Key=place.path.lstrip("/"))
    body = answer["Body"].read()
    return sorted(zipfile.ZipFile(io.BytesIO(body)).namelist())
