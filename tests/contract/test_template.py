"""The template that deploys keeps every invariant, and agrees with the engine's registry and settings."""

from __future__ import annotations

from dataclasses import fields

import pytest

from signalbox.packs import registry_of
from signalbox.settings import Settings
from tests.contract.invariants import INVARIANTS, Invariant, name_of, rules
from tests.support.template import FUNCTION, PACKS, QUEUE, ROOT, RULE, deployed, source, text

# After so many invocations in one chain, Lambda takes it for a mistake and stops it.
LAMBDAS_LIMIT = 16
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}


@pytest.mark.parametrize("invariant", INVARIANTS, ids=name_of)
def test_the_template_keeps_that(invariant: Invariant) -> None:
    assert list(invariant(deployed())) == []


def test_each_rule_fires_a_registered_task_on_its_own_schedule_and_function() -> None:
    assert list(rules.without_task(deployed(), registry_of(PACKS).tasks)) == []


def test_each_scheduled_task_has_one_rule() -> None:
    assert list(rules.missing_for(deployed(), registry_of(PACKS).tasks)) == []


@pytest.mark.parametrize(("kind", "key"), [(FUNCTION, "FunctionName"), (RULE, "Name"), (QUEUE, "QueueName")])
def test_two_stacks_of_one_account_never_share_a_name(kind: str, key: str) -> None:
    names = [text(properties.get(key)) for properties in deployed().of(kind).values()]

    assert names
    assert [name for name in names if not name.startswith("${AWS::StackName}-")] == []


def test_each_function_has_a_folder_and_each_folder_a_function() -> None:
    folders = {f"functions/{path.name}" for path in ROOT.glob("functions/*") if path.is_dir()}

    assert _sources("AWS::Serverless::Function", "CodeUri") == folders


def test_each_layer_has_a_folder_and_each_folder_a_layer() -> None:
    folders = {f"layers/{path.name}" for path in ROOT.glob("layers/*") if path.is_dir()}

    assert _sources("AWS::Serverless::LayerVersion", "ContentUri") == folders


def test_the_settings_read_each_variable_that_a_function_is_given() -> None:
    known = {f"SIGNALBOX_{field.name.upper()}" for field in fields(Settings)}

    for name, function in deployed().of(FUNCTION).items():
        assert set(function["Environment"]["Variables"]) - known == POWERTOOLS, name


def test_a_function_whose_continuations_outnumber_lambdas_limit_may_loop() -> None:
    functions = {text(function["FunctionName"]): function for function in deployed().of(FUNCTION).values()}

    assert Settings(stack="any").max_continuations > LAMBDAS_LIMIT
    for name in {task.function for task in registry_of(PACKS)}:
        assert functions[f"${{AWS::StackName}}-{name}"].get("RecursiveLoop") == "Allow", name


def _sources(kind: str, key: str) -> set[str]:
    resources = source()["Resources"].values()
    return {resource["Properties"][key] for resource in resources if resource["Type"] == kind}
