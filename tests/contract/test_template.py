"""The template that deploys keeps every invariant, and agrees with the engine's registry and settings."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

from forecasts.settings import ForecastSettings
from signalbox.database import CONNECT_PATIENCE_SECONDS
from signalbox.packs import registry_of
from signalbox.settings import Settings
from tests.support.template import (
    BUCKET,
    FUNCTION,
    PACKS,
    QUEUE,
    ROOT,
    RULE,
    VARIANTS,
    deployed,
    packs_of,
    referred,
    source,
    statements,
    text,
)

# After so many invocations in one chain, Lambda takes it for a mistake and stops it.
LAMBDAS_LIMIT = 16
PACK_ACCESS = {"RunPodAccess", "ForecastsAccess"}
ENGINE_ACCESS = {"NetworkAccess", "TaskAccess", "LaneAccess", "FileAccess", "DeliveryAccess", "ReaderAccess"}
WITHOUT_PACKS = {"DeadLetterFunction"}
# What AWS takes for a name.
LONGEST_NAMES = (
    (RULE, "Name", 64),
    (FUNCTION, "FunctionName", 64),
    (QUEUE, "QueueName", 80),
)
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}


# Beside those that the code of the pack reads: the one that holds several of them.
TOGETHER = "FORECASTS_SETTINGS"

each_variant = pytest.mark.parametrize("variant", VARIANTS)


def test_without_the_pack_the_stack_is_what_it_would_be_if_there_were_none() -> None:
    left = deployed("engine").resources
    named = [name for name, resource in left.items() if "forecasts" in json.dumps(resource).lower()]
    assert named == []
    assert set(deployed("engine").of(BUCKET)) == {"JobsBucket"}
    packs = set(deployed().of(QUEUE)) - set(deployed("engine").of(QUEUE))
    assert packs == {"NotificationsQueue", "NotificationsDeadLetters", "EvaluationsQueue", "EvaluationsDeadLetters"}


@pytest.mark.parametrize(("kind", "key"), [(FUNCTION, "FunctionName"), (RULE, "Name"), (QUEUE, "QueueName")])
def test_two_stacks_of_one_account_never_share_a_name(kind: str, key: str) -> None:
    names = [text(properties.get(key)) for properties in deployed().of(kind).values()]

    assert names
    # No stack's name holds a dot, so that the rules of prod-eu are never taken for those of prod.
    assert [name for name in names if not name.startswith(f"${{AWS::StackName}}{'.' if kind == RULE else '-'}")] == []


def test_the_documents_say_how_long_a_stacks_name_may_be() -> None:
    """By the resource that leaves it the least; AWS says so only when it has made half of the stack."""
    left = [
        longest - len(text(properties[key]).removeprefix("${AWS::StackName}"))
        for kind, key, longest in LONGEST_NAMES
        for properties in deployed().of(kind).values()
    ]
    said = re.search(r"name for the stack of (\d+) characters", (ROOT / "docs" / "deploy.md").read_text("utf-8"))
    assert said is not None
    assert int(said[1]) == min(left)


def test_each_parameter_stands_in_one_group() -> None:
    groups = source()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    assert sorted(grouped) == sorted(source()["Parameters"])


def test_no_bucket_has_a_name_that_another_account_could_have_taken() -> None:
    assert deployed().of(BUCKET)
    assert [name for name, bucket in deployed().of(BUCKET).items() if "BucketName" in bucket] == []


def test_each_function_has_a_folder_and_each_folder_a_function() -> None:
    folders = {f"functions/{path.name}" for path in ROOT.glob("functions/*") if path.is_dir()}

    assert _sources("AWS::Serverless::Function", "CodeUri") == folders


def test_each_layer_has_a_folder_and_each_folder_a_layer() -> None:
    folders = {f"layers/{path.name}" for path in ROOT.glob("layers/*") if path.is_dir()}

    assert _sources("AWS::Serverless::LayerVersion", "ContentUri") == folders


def test_a_function_that_waits_for_a_database_to_wake_up_has_time_left_to_work() -> None:
    timeouts = {name: function["Timeout"] for name, function in deployed().of(FUNCTION).items()}

    assert timeouts
    assert [name for name, seconds in timeouts.items() if seconds < CONNECT_PATIENCE_SECONDS + 20] == []


@each_variant
def test_the_settings_read_each_variable_that_a_function_is_given(variant: str) -> None:
    known = {f"SIGNALBOX_{field.name.upper()}" for field in fields(Settings)}
    known |= {f"FORECASTS_{field.upper()}" for field in ForecastSettings.model_fields} | {TOGETHER}

    for name, function in deployed(variant).of(FUNCTION).items():
        assert set(function["Environment"]["Variables"]) - known == POWERTOOLS, name


@each_variant
def test_a_function_that_is_told_to_run_a_pack_has_its_layer_and_no_other_has(variant: str) -> None:
    for name, function in deployed(variant).of(FUNCTION).items():
        told = [pack for pack in function["Environment"]["Variables"].get("SIGNALBOX_PACKS", "").split(",") if pack]
        layers = [layer["Ref"].lower() for layer in function["Layers"]]
        attached = [pack for pack in PACKS if any(layer.startswith(f"{pack}layer") for layer in layers)]
        assert told == attached == ([] if name in WITHOUT_PACKS else packs_of(variant)), name


@each_variant
def test_each_deploy_asks_the_migrator(variant: str) -> None:
    [(name, properties)] = deployed(variant).of("Custom::SignalboxMigrations").items()
    assert (name, referred(properties["ServiceToken"])) == ("Migrations", "MigratorFunction")


@pytest.mark.parametrize(
    ("function", "allowed"),
    [
        ("ArchiverFunction", {"ForecastsAccess"}),
        ("PollerFunction", {"RunPodAccess"}),
        ("WorkerFunction", {"ForecastsAccess"}),  # a job may be a task
        ("WorkerHeavyFunction", {"ForecastsAccess"}),
        ("DeadLetterFunction", set()),
    ],
)
def test_a_function_has_only_those_of_the_packs_permissions_that_its_tasks_need(
    function: str, allowed: set[str]
) -> None:
    policies = deployed().of("AWS::IAM::Role")[f"{function}Role"]["ManagedPolicyArns"]
    granted = {policy["Ref"] for policy in policies if isinstance(policy, dict) and "Ref" in policy}

    assert granted - ENGINE_ACCESS == allowed | {"DatabaseAccess"}
    assert not PACK_ACCESS & {
        policy.get("Ref")
        for policy in deployed("engine").of("AWS::IAM::Role")[f"{function}Role"]["ManagedPolicyArns"]
        if isinstance(policy, dict)
    }


def test_with_everything_switched_on_there_is_room_for_more_packs() -> None:
    """AWS takes ten managed policies a role, five layers and 4 KB of environment a function, 500 resources."""
    roles = deployed().of("AWS::IAM::Role").values()
    functions = deployed().of(FUNCTION).values()
    assert max(len(role["ManagedPolicyArns"]) for role in roles) <= 8
    assert max(len(function["Layers"]) for function in functions) <= 4
    assert max(len(json.dumps(function["Environment"]["Variables"])) for function in functions) <= 3 * 1024
    assert len(deployed().resources) <= 400


def test_a_secret_that_is_not_given_is_not_asked_for() -> None:
    policies = deployed("forecasts").of("AWS::IAM::ManagedPolicy")
    resources = [
        statement["Resource"] for policy in policies.values() for statement in statements(policy["PolicyDocument"])
    ]

    assert {"Ref": "RunPodSecretArn"} not in resources
    assert {"Ref": "StripeSecretArn"} not in resources


def test_a_function_whose_continuations_outnumber_lambdas_limit_may_loop() -> None:
    functions = {text(function["FunctionName"]): function for function in deployed().of(FUNCTION).values()}

    assert Settings(stack="any").max_continuations > LAMBDAS_LIMIT
    for name in {task.function for task in registry_of(PACKS)}:
        assert functions[f"${{AWS::StackName}}-{name}"].get("RecursiveLoop") == "Allow", name


def _sources(kind: str, key: str) -> set[str]:
    resources = source()["Resources"].values()
    return {resource["Properties"][key] for resource in resources if resource["Type"] == kind}
