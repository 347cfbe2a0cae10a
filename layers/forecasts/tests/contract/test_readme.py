"""The README names everything that the pack's code has: every task, setting, table and metric."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module

import pytest
from samcli.cli.types import CfnParameterOverridesType

from forecasts.settings import ForecastSettings
from forecasts.tasks import TASKS
from signalbox.packs.task import Task
from tests.support.template import ROOT

PACK = ROOT / "layers/forecasts/forecasts"
PAGE = (ROOT / "layers/forecasts/README.md").read_text("utf-8")
FLOW = re.compile(r"\b[A-Z]+-\d{3}\b")
# `count` may get one of two names, so the name does not follow the parenthesis.
METRIC = re.compile(r'\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b(?=")')


def section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def rows(heading: str) -> dict[str, list[str]]:
    """Return the cells of a section's table, by each name in the first column."""
    lines = [line.strip("|").split("|") for line in section(heading).splitlines() if line.startswith("| `")]
    return {name: [cell.strip() for cell in rest] for first, *rest in lines for name in re.findall(r"`(\w+)`", first)}


def default_of(field: str) -> str:
    value = ForecastSettings.read({}).model_dump(mode="json")[field]
    if value in (None, ""):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_has_a_section_that_names_its_flow(task: Task) -> None:
    flows = set(FLOW.findall(import_module(task.module).__doc__ or ""))
    assert flows
    assert flows <= set(FLOW.findall(section(f"`{task.name}`")))


def test_the_sections_come_in_the_order_of_the_registry() -> None:
    assert re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE) == [task.name for task in TASKS]


def test_each_setting_is_there_with_its_default() -> None:
    told = {name: cells[0] for name, cells in rows("Settings").items()}
    assert told == {f"FORECASTS_{field.upper()}": default_of(field) for field in ForecastSettings.model_fields}


def test_deploy_command_gives_settings_as_sam_and_pack_read_them() -> None:
    found = re.search(r"sam deploy --parameter-overrides ((?:.+\\\n)*.+)", section("Deploy it"))
    assert found is not None
    given = CfnParameterOverridesType().convert(tuple(shlex.split(found[1].replace("\\\n", " "))), None, None)
    assert {"ForecastsPack", "ForecastsSettings"} <= set(given)
    read = ForecastSettings.read({"FORECASTS_SETTINGS": given["ForecastsSettings"]})
    assert (read.runpod_endpoint_id, read.stripe_prices) == ("abc123", {"price_1PqR": "pro"})


def test_each_table_is_there() -> None:
    tables = re.findall(
        r"^CREATE TABLE forecasts\.(\w+)", (PACK / "migrations/0001_baseline.sql").read_text("utf-8"), re.MULTILINE
    )
    assert set(rows("Tables")) == set(tables)


def test_each_metric_is_there_and_each_that_is_there_is_counted() -> None:
    code = "".join(path.read_text("utf-8") for path in PACK.rglob("*.py"))
    calls = re.findall(r"metrics\.(?:count|seconds|milliseconds)\((.*?)\n", code)
    counted = {name for call in calls for name in METRIC.findall(call)}
    begun = tuple(re.findall(r'metrics\.count\(f"(\w+){', code))  # names that end in the verdict
    told = set(rows("Metrics"))
    assert len(counted) > 15
    assert counted <= told
    assert [prefix for prefix in begun if not any(name.startswith(prefix) for name in told)] == []
    assert [name for name in told - counted if f'"{name}"' not in code and not name.startswith(begun)] == []
