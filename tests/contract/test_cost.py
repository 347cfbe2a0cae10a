"""The figures of the model are those of the code, and none is idle."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout

from bench import footprint
from local.cost import model
from local.cost.figures import assumed, figures, measured, price_list
from signalbox.jobs import lanes
from signalbox.jobs.metrics import write_version_metrics
from signalbox.settings import Settings
from tests.support.stage import as_url
from tests.support.template import ROOT
from tests.support.watched import dashboard, metrics_of_widget

READERS = [*ROOT.glob("local/cost/*.py"), *ROOT.glob("bench/ramp*.py"), *ROOT.glob("docs/*.py")]


def used() -> str:
    return "".join(path.read_text("utf-8") for path in READERS)


def test_each_figure_is_used_and_each_used_one_is_there() -> None:
    text = used()
    assert [name for name in figures() if f'"{name}"' not in text] == []
    asked = set(re.findall(r'(?:known|figures\(\))\["(\w+)"\]', text))
    assert asked - set(figures()) == set()


def test_each_price_is_used_and_says_where_it_is_from() -> None:
    text = used()
    assert [name for name in price_list().prices if f'"{name}"' not in text and not name.startswith("lambda.")] == []
    assert all(price.source and price.usd > 0 for price in price_list().prices.values())
    assert re.fullmatch(r"20\d\d-[01]\d", price_list().as_of)


def test_each_assumption_has_its_reason() -> None:
    assert [name for name, one in assumed().items() if not one["why"]] == []


def test_what_was_measured_has_the_names_that_the_benchmark_prints() -> None:
    text = (ROOT / "bench" / "footprint.py").read_text("utf-8")
    assert [name for name in measured() if f'"{name}"' not in text] == []


def test_the_models_constants_are_the_engines() -> None:
    assert figures()["messages_a_receive"] == lanes.CALL
    assert figures()["calls_at_once"] == lanes.AT_ONCE
    assert Settings(stack="s").job_retention_days == model.DAYS_KEPT


def test_a_worker_counts_its_version_s_attempts_in_as_many_metrics_as_the_model_does() -> None:
    told = io.StringIO()
    with redirect_stdout(told):
        write_version_metrics("stack", "stack-worker", "7", {("any_type", "completed"): 1})
    [directive] = json.loads(told.getvalue())["_aws"]["CloudWatchMetrics"]

    assert len(directive["Dimensions"]) * len(directive["Metrics"]) == figures()["version_metrics"]


def test_the_dashboard_shows_too_many_metrics_to_be_free() -> None:
    shown = {metric for widget in dashboard("least") for metric in metrics_of_widget(widget)}

    assert (len(shown) > 50) == (price_list().prices["dashboards"].free == 0)


def test_the_engines_tasks_send_as_many_metrics_as_the_model_counts(dsn: str) -> None:
    assert footprint.count_series(as_url(dsn)) == figures()["sweep_metrics"]
