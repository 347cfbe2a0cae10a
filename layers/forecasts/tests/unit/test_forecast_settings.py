"""Each setting of the pack has a variable of its own or a field in one object, and all faults are listed together."""

from __future__ import annotations

import json

import pytest

from forecasts.settings import ForecastSettings
from signalbox.errors import SettingsRefused

AS_IT_IS = ForecastSettings.read({})
DEFAULTS = AS_IT_IS.model_dump(mode="json")


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_an_empty_object_and_the_variables_of_others_change_nothing() -> None:
    assert ForecastSettings.read({"FORECASTS_SETTINGS": "{}", "FORECASTS_STRIPE_LIMIT": " ", "OTHER": "x"}) == AS_IT_IS


@pytest.mark.parametrize("field", [name for name, value in DEFAULTS.items() if value is not None])
def test_each_setting_can_be_given_what_it_is_by_default(field: str) -> None:
    given = {f"FORECASTS_{field.upper()}": as_text(DEFAULTS[field])}
    assert ForecastSettings.read(given) == AS_IT_IS


def test_settings_share_a_variable_and_a_settings_own_comes_first() -> None:
    together = json.dumps({"stripe_limit": 7, "cleanup_batch": 8, "stripe_prices": {"p": "pro"}})
    read = ForecastSettings.read({"FORECASTS_SETTINGS": together, "FORECASTS_CLEANUP_BATCH": "9"})
    assert (read.stripe_limit, read.cleanup_batch, read.stripe_prices) == (7, 9, {"p": "pro"})


@pytest.mark.parametrize(
    ("environ", "faults"),
    [
        (
            {"FORECASTS_STRIPE_LIMIT": "none", "FORECASTS_STRIPE_PRICES": "{"},
            ["STRIPE_LIMIT is 'none': ", "STRIPE_PRICES is not"],
        ),
        (
            {"FORECASTS_CLEANUP_BACH": "1"},
            ["FORECASTS_CLEANUP_BACH is not known; did you mean 'FORECASTS_CLEANUP_BATCH'"],
        ),
        ({"FORECASTS_SETTINGS": '{"cleanup_bach": 1}'}, ["FORECASTS_CLEANUP_BACH"]),
        ({"FORECASTS_SETTINGS": "[1]"}, ["FORECASTS_SETTINGS is not a JSON object"]),
        ({"FORECASTS_SETTINGS": "{"}, ["FORECASTS_SETTINGS is not a JSON object"]),
    ],
)
def test_what_is_wrong_is_named(environ: dict[str, str], faults: list[str]) -> None:
    with pytest.raises(SettingsRefused) as refused:
        ForecastSettings.read(environ)
    assert [fault for fault in faults if fault not in str(refused.value)] == []


def test_what_the_packs_template_makes_is_found_by_its_name() -> None:
    read = ForecastSettings.read(
        {"SIGNALBOX_STACK": "prod", "SIGNALBOX_ACCOUNT": "123456789012", "AWS_REGION": "eu-west-1"}
    )
    assert (read.evaluations_queue, read.forecast_bucket) == (
        "prod-evaluations",
        "prod-forecasts-123456789012-eu-west-1",
    )
    assert read.runpod_secret == "prod/forecasts/runpod"
