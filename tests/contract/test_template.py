"""The deployed template keeps every invariant, and agrees with the engine's registry and settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from signalbox.engine_pack import registry_of
from signalbox.postgres.connection import CONNECT_PATIENCE_SECONDS
from signalbox.runtime.settings import Settings
from signalbox_laptop.deploy.deploy import NESTED
from signalbox_laptop.deploy.template import read_template
from tests.support.template import (
    BUCKET,
    FUNCTION,
    PACKS,
    QUEUE,
    ROOT,
    RULE,
    VARIANTS,
    deployed,
    listed,
    packs_of,
    referred,
    source,
    text,
)

# After so many invocations in one chain, Lambda takes it for a mistake and stops it.
LAMBDAS_LIMIT = 16
WITHOUT_PACKS = {"DeadLetterFunction"}
# What AWS takes for a name.
LONGEST_NAMES = (
    (RULE, "Name", 64),
    (FUNCTION, "FunctionName", 64),
    (QUEUE, "QueueName", 80),
)
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}


# What packs read beside the engine's: the account, for the names of their buckets, and their own settings.
OF_PACKS = {
    "SIGNALBOX_ACCOUNT",
    "SIGNALBOX_HTTP_API",
    "FORECASTS_SETTINGS",
    "COMPLIANCE_SETTINGS",
    "RECORDS_SETTINGS",
    "PASSPORTS_SIGNING_SECRET_ARN",
    "PASSPORTS_BUILD_ID",
}

each_variant = pytest.mark.parametrize("variant", VARIANTS)


def test_stack_without_the_pack_shows_no_trace_of_it() -> None:
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
    """The strictest resource decides; AWS complains only after half of the stack is made."""
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
    names = [text(bucket["BucketName"]) for bucket in deployed().of(BUCKET).values() if "BucketName" in bucket]
    assert names
    assert [name for name in names if not name.endswith("-${AWS::AccountId}-${AWS::Region}")] == []


@pytest.mark.parametrize("path", [ROOT / "template.yaml", *ROOT.glob("layers/*/template.yaml")], ids=str)
def test_an_anchor_is_used_in_its_own_section_and_nowhere_else(path: Path) -> None:
    sections = re.split(r"^(?=  # ---- |\w+:$)", path.read_text("utf-8"), flags=re.MULTILINE)
    for section in sections:
        named = set(re.findall(r"(?<=[ \[{]&)[a-z][\w-]*", section))
        assert set(re.findall(r"(?<=[ \[{]\*)[a-z][\w-]*", section)) == named, section.partition("\n")[0]


def test_each_function_has_a_folder_and_each_folder_a_function() -> None:
    folders = {f"functions/{path.name}" for path in ROOT.glob("functions/*") if path.is_dir()}

    assert _sources("AWS::Serverless::Function", "CodeUri") == folders


def test_the_engine_its_dependencies_and_all_packs_together_are_a_layer_each() -> None:
    assert _sources("AWS::Serverless::LayerVersion", "ContentUri") == {
        *("layers/engine", "layers/dependencies", "layers"),
        "layers/jwt",  # for stacks that take tokens of an issuer
    }


def test_function_has_time_left_after_waiting_for_a_waking_database() -> None:
    timeouts = {name: function["Timeout"] for name, function in deployed().of(FUNCTION).items()}

    assert timeouts
    assert [name for name, seconds in timeouts.items() if seconds < CONNECT_PATIENCE_SECONDS + 20] == []


@each_variant
def test_the_settings_read_each_variable_that_a_function_is_given(variant: str) -> None:
    known = {f"SIGNALBOX_{field.upper()}" for field in Settings.model_fields} | OF_PACKS

    for name, function in deployed(variant).of(FUNCTION).items():
        assert set(function["Environment"]["Variables"]) - known == POWERTOOLS, name


@each_variant
def test_each_function_that_runs_tasks_or_jobs_gets_its_packs(variant: str) -> None:
    for name, function in deployed(variant).of(FUNCTION).items():
        told = [pack for pack in function["Environment"]["Variables"]["SIGNALBOX_PACKS"].split(",") if pack]
        assert sorted(told) == ([] if name in WITHOUT_PACKS else packs_of(variant)), name


@each_variant
def test_each_deploy_asks_the_migrator(variant: str) -> None:
    [(name, properties)] = deployed(variant).of("Custom::SignalboxMigrations").items()
    assert (name, referred(properties["ServiceToken"])) == ("Migrations", "MigratorFunction")


def test_with_everything_switched_on_there_is_room_for_more_packs() -> None:
    """AWS takes ten managed policies a role, five layers and 4 KB of environment a function, 500 resources a stack."""
    policies, functions = deployed().of("AWS::IAM::ManagedPolicy").values(), deployed().of(FUNCTION).values()
    for name, role in deployed().of("AWS::IAM::Role").items():
        attached = [policy for policy in policies if {"Ref": name} in policy.get("Roles", [])]
        assert len(role["ManagedPolicyArns"]) + len(attached) <= 8, name
    assert max(len(function["Layers"]) for function in functions) <= 4
    assert max(len(json.dumps(function["Environment"]["Variables"])) for function in functions) <= 3 * 1024
    assert len(deployed().resources) <= 400


def test_nothing_waits_for_itself_in_whichever_stack_it_stands() -> None:
    """Each resource of a pack waits for what the pack's stack waits for, and exists only with all of it."""
    resources = source()["Resources"]
    needs = {name: set(_needs(resource)) & resources.keys() for name, resource in resources.items()}
    for pack, stack in [(name, one) for name, one in resources.items() if one["Type"] == NESTED]:
        inner = read_template(ROOT / stack["Properties"]["TemplateURL"])["Resources"]
        needs |= {
            f"{pack}.{name}": {f"{pack}.{one}" for one in {*_needs(resource)} & inner.keys()}
            for name, resource in inner.items()
        }
        begins, ends = needs[pack], {f"{pack}.{name}" for name in inner}
        needs |= {name: needs[name] | begins for name in ends}
        needs[pack] = ends
    assert list(TopologicalSorter(needs).static_order())


@pytest.mark.parametrize(
    ("resource", "needs"),
    [
        ({"DependsOn": "A"}, {"A"}),
        ({"DependsOn": ["A", "B"]}, {"A", "B"}),
        ({"Properties": {"X": [{"Ref": "A"}], "Y": {"Fn::GetAtt": ["B", "Arn"]}}}, {"A", "B"}),
        ({"Properties": {"X": {"Fn::Sub": "${A}-${B.Arn}-${!C}"}}}, {"A", "B"}),
        ({"Properties": {"X": {"Fn::Sub": ["${A}-${D}", {"D": {"Ref": "B"}}]}}}, {"A", "B", "D"}),
    ],
)
def test_what_a_resource_waits_for_is_seen_however_it_is_written(resource: Any, needs: set[str]) -> None:
    assert set(_needs(resource)) == needs


def test_a_function_whose_continuations_outnumber_lambdas_limit_may_loop() -> None:
    functions = {text(function["FunctionName"]): function for function in deployed().of(FUNCTION).values()}

    assert Settings(stack="any").max_continuations > LAMBDAS_LIMIT
    for name in {task.function for task in registry_of(PACKS)}:
        assert functions[f"${{AWS::StackName}}-{name}"].get("RecursiveLoop") == "Allow", name


def _needs(value: Any) -> Iterator[str]:
    """Return the logical ids that it names, parameters among them."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(pattern)}:
            yield from re.findall(r"\$\{(\w+)", pattern)
        case {"Fn::Sub": [pattern, given]}:
            yield from (*_needs({"Fn::Sub": pattern}), *_needs(given))
        case dict():
            if waits := value.get("DependsOn"):
                yield from listed(waits)
            yield from (name for part in value.values() for name in _needs(part))
        case list():
            yield from (name for part in value for name in _needs(part))


def _sources(kind: str, key: str) -> set[str]:
    resources = source()["Resources"].values()
    return {resource["Properties"][key] for resource in resources if resource["Type"] == kind}
