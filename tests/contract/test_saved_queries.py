"""Saved queries ask for fields that the logs have, and the documents name the queries."""

from __future__ import annotations

import re

import pytest

from tests.support.emitted import emitted
from tests.support.template import ROOT
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
    """Return the fields that the code gives to lines of the log."""
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
    assert sent_to
    assert sent_to <= set(QUERIES)
