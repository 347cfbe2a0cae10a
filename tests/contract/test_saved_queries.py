"""Saved queries and metric filters ask for what the logs have, and the documents name those that there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from signalbox import errors
from tests.support.emitted import emitted
from tests.support.template import FUNCTION, ROOT, referred
from tests.support.watched import PREFIX, substituted, watched

QUERIES = {
    substituted(given["Name"]).removeprefix(f"{PREFIX[:-1]}/"): given
    for given in watched().of("AWS::Logs::QueryDefinition").values()
}
each_query = pytest.mark.parametrize("name", QUERIES)
# What Lambda and CloudWatch write by themselves, and the logger in each line of an exception.
LAMBDAS = {"type", "errorType", "errorMessage", "level", "message", "exception_name"}
LAMBDAS |= {f"record.{name}" for name in ("requestId", "status")}
LAMBDAS |= {f"record.metrics.{name}Ms" for name in ("duration", "initDuration")}
LAMBDAS |= {f"record.metrics.{name}MB" for name in ("maxMemoryUsed", "memorySize")}
WORDS = {"fields", "filter", "sort", "stats", "limit", "as", "by", "asc", "desc", "like", "in", "and", "or"}
FUNCTIONS = {"count", "sum", "avg", "max", "min", "pct", "latest", "bin", "coalesce", "ispresent"}


def logged() -> set[str]:
    """Fields that the code gives to lines of the log."""
    code = "".join(path.read_text("utf-8") for path in ROOT.glob("layers/*/*/**/*.py"))
    metrics = {f"{metric.name}.0" for metric in emitted()}
    return metrics | set(re.findall(r'"([a-z_]+)":', code)) | set(re.findall(r"\b([a-z_]+)=", code))


@each_query
def test_a_saved_query_asks_for_fields_that_there_are(name: str) -> None:
    text = re.sub(r'"[^"]*"|/[^/]+/', "", QUERIES[name]["QueryString"])
    made = set(re.findall(r"\bas (\w+)", text))
    asked = set(re.findall(r"(?<![\w@.])[A-Za-z_][\w.]*", text)) - WORDS - FUNCTIONS - made

    assert asked
    assert asked - LAMBDAS - logged() == {word for word in asked if re.fullmatch(r"\d+m", word)}


def test_the_documents_name_every_saved_query_and_no_other() -> None:
    watching = (ROOT / "docs/watching.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \|", watching.partition("## Saved queries")[2], re.MULTILINE)
    runbook = (ROOT / "docs/runbook.md").read_text("utf-8")
    sent_to = {
        name for found in re.findall(r"saved quer(?:y|ies)\s((?:`[a-z-]+`(?: and )?)+)", runbook)
        for name in re.findall(r"`([a-z-]+)`", found)
    }  # fmt: skip

    assert sorted(listed) == sorted(QUERIES)
    assert len(sent_to) > 8
    assert sent_to <= set(QUERIES)


@pytest.mark.parametrize("metric", ["DatabaseUnavailable", "FunctionsCutOff"])
def test_what_a_function_can_t_count_itself_is_counted_from_the_log_of_each(metric: str) -> None:
    groups = {
        referred(given["LogGroupName"])
        for given in watched().of("AWS::Logs::MetricFilter").values()
        if given["MetricTransformations"][0]["MetricName"] == metric
    }
    logging = {name: referred(given["LoggingConfig"]["LogGroup"]) for name, given in watched().of(FUNCTION).items()}

    assert groups == {group for name, group in logging.items() if name != "MigratorFunction"}


def test_an_unreachable_database_is_logged_as_the_filter_looks_for_it() -> None:
    """By Lambda's own runtime client, which writes what a handler raises."""
    code = (
        "import sys; from awslambdaric import bootstrap; "
        "error = bootstrap.make_error('no route', 'DatabaseUnavailable', [], 'id-1'); "
        "bootstrap.log_error(error, bootstrap.StandardLogSink())"
    )
    environ = {**os.environ, "AWS_LAMBDA_LOG_FORMAT": "JSON"}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    line = json.loads(answer.stdout)
    [pattern] = {
        given["FilterPattern"]
        for given in watched().of("AWS::Logs::MetricFilter").values()
        if "errorType" in given["FilterPattern"]
    }

    assert re.fullmatch(r'\{ \$\.errorType = "(\w+)" \}', pattern)
    assert f'$.errorType = "{line["errorType"]}"' in pattern
    assert issubclass(errors.DatabaseUnavailable, errors.Unavailable)
    assert line["level"] == "ERROR"
