"""samconfig.toml has each environment whole, since SAM inherits nothing, and sets only parameters that exist."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from local.conditions import Decided
from local.transform import parameters_of
from tests.support.template import ROOT, SECRET, source

CONFIG: dict[str, Any] = tomllib.loads((ROOT / "samconfig.toml").read_text())
ENVIRONMENTS = [name for name in CONFIG if name != "version"]
# A person confirms what changes in production.
EXTRA = {"prod": {"confirm_changeset"}}


def settings(environment: str) -> set[tuple[str, str]]:
    return {
        (command, setting)
        for command, section in CONFIG[environment].items()
        for setting in section["parameters"]
        if setting not in EXTRA.get(environment, set())
    }


def overrides(environment: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', CONFIG[environment]["deploy"]["parameters"]["parameter_overrides"]))


def refusals(given: dict[str, str]) -> list[str]:
    """Return what CloudFormation would say before it makes anything."""
    template = source()
    return list(Decided(template, parameters_of(template, given)).refusals())


def test_there_is_an_environment_for_each_case() -> None:
    assert ENVIRONMENTS == ["default", "aurora", "staging", "prod"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_is_as_complete_as_the_others(environment: str) -> None:
    assert settings(environment) == settings("default")


def test_no_two_environments_share_a_stack() -> None:
    stacks = {CONFIG[environment]["global"]["parameters"]["stack_name"] for environment in ENVIRONMENTS}

    assert len(stacks) == len(ENVIRONMENTS)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_deploys_once_its_secret_is_filled_in(environment: str) -> None:
    given = overrides(environment)
    if "DatabaseSecretArn" in given:
        assert any("needs DatabaseSecretArn" in refusal for refusal in refusals(given))
        given["DatabaseSecretArn"] = SECRET
    assert refusals(given) == []
