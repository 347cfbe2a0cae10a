"""samconfig.toml has each environment whole, since SAM inherits nothing, and sets only parameters that exist."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.support.template import ROOT, source

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


def test_there_is_an_environment_for_each_stage() -> None:
    assert ENVIRONMENTS == ["default", "staging", "prod"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_is_as_complete_as_the_others(environment: str) -> None:
    assert settings(environment) == settings("default")


def test_no_two_environments_share_a_stack() -> None:
    stacks = {CONFIG[environment]["global"]["parameters"]["stack_name"] for environment in ENVIRONMENTS}

    assert len(stacks) == len(ENVIRONMENTS)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_sets_only_parameters_of_the_template_to_values_it_allows(environment: str) -> None:
    overrides = CONFIG[environment]["deploy"]["parameters"]["parameter_overrides"]
    parameters = source()["Parameters"]
    given = re.findall(r'(\w+)="([^"]*)"', overrides)

    assert given
    for name, value in given:
        assert value in [str(allowed) for allowed in parameters[name]["AllowedValues"]], name
