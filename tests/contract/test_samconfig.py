"""samconfig.toml has each environment whole, since SAM inherits nothing, and sets only existing parameters."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.parameters import faults_of
from signalbox_laptop.deploy.template import parameters_of, read_template
from tests.support.template import ROOT, SECRET

CONFIG: dict[str, Any] = tomllib.loads((ROOT / "samconfig.toml").read_text())
ENVIRONMENTS = [name for name in CONFIG if name != "version"]
# A person confirms what changes in production; the database has a template of its own.
EXTRA = {"prod": {"confirm_changeset"}, "aurora": {"template_file"}}


def settings(environment: str) -> set[tuple[str, str]]:
    return {
        (command, setting)
        for command, section in CONFIG[environment].items()
        for setting in section["parameters"]
        if setting not in EXTRA.get(environment, set())
    }


def overrides(environment: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', CONFIG[environment]["deploy"]["parameters"]["parameter_overrides"]))


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
    template = read_template(ROOT / CONFIG[environment]["deploy"]["parameters"].get("template_file", "template.yaml"))
    given = overrides(environment)
    if "DatabaseSecretArn" in given:
        [fault] = faults_of(template["Parameters"], given)
        assert "must be the full ARN of the secret that opens your PostgreSQL" in fault
        given["DatabaseSecretArn"] = SECRET
    assert faults_of(template["Parameters"], given) == []
    assert Decided(template, parameters_of(template, given)).refusals() == []
