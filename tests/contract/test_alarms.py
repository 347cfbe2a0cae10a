"""Alarms watch what is measured, use the code's limits, and say what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from signalbox.stats.alerts import RULES, Readings
from tests.support.emitted import emitted, gauges
from tests.support.template import FUNCTION, QUEUE, ROOT, statements, text
from tests.support.watched import COMBINATIONS, PREFIX, Alarm, Metric, alarms, dashboards, shown, substituted, watched

each_combination = pytest.mark.parametrize("combination", COMBINATIONS)
each_alarm = pytest.mark.parametrize("alarm", alarms().values(), ids=lambda alarm: alarm.name)
# AWS's own that are looked at, and the resource that their one dimension names.
AWS_METRICS = {
    "AWS/Lambda": (FUNCTION, {"Invocations", "Errors", "Duration"}),
    "AWS/SQS": (QUEUE, {"ApproximateNumberOfMessagesVisible", "NumberOfMessagesSent"}),
}
# Of an alarm's metric and of a custom one, a month.
DOLLARS_AN_ALARM, DOLLARS_A_METRIC = 0.10, 0.30


def is_measured(metric: Metric, combination: str) -> bool:
    if metric in emitted():
        return True
    kind, names = AWS_METRICS.get(metric.namespace, (None, set()))
    [(_, value)] = metric.dimensions
    resources = watched(combination).of(kind) if kind else {}
    known = {*resources, *(text(one.get("FunctionName")) for one in resources.values())}
    return metric.name in names and bool({value, value.strip("${}").partition(".")[0]} & known)


@each_combination
def test_each_alarm_looks_at_metrics_that_are_measured(combination: str) -> None:
    unknown = {
        alarm.name: [m for m in alarm.metrics if not is_measured(m, combination)]
        for alarm in alarms(combination).values()
    }
    assert {name: metrics for name, metrics in unknown.items() if metrics} == {}


@each_combination
def test_dashboards_show_the_metrics_and_stay_within_the_free_tier(combination: str) -> None:
    found = [list(shown(widgets)) for widgets in dashboards(combination).values()]
    assert [metric for metrics in found for metric in metrics if not is_measured(metric, combination)] == []
    assert len(found) <= 3
    assert 20 < max(map(len, found)) <= 50


def test_metrics_have_the_stack_for_their_one_dimension() -> None:
    """AWS charges each set of dimensions as a metric of its own."""
    assert {metric.dimensions for metric in emitted()} == {frozenset({("service", "${AWS::StackName}")})}


def test_watching_an_idle_stack_costs_less_than_six_dollars() -> None:
    looked_at = sum(len(alarm.metrics) for alarm in alarms("least").values())
    assert looked_at * DOLLARS_AN_ALARM + len(gauges()) * DOLLARS_A_METRIC < 6


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_alert_of_the_code_is_an_alarm_of_its_severity(rule: Any) -> None:
    assert alarms()[rule.name.replace("_", "-")].severity == rule.severity


@pytest.mark.parametrize(
    ("name", "reading", "per_unit"),
    [
        ("high-queue-depth", "waiting", 1),
        ("critical-queue-depth", "waiting", 1),
        ("dlq-accumulation", "pending_dead_letters", 1),
        ("slow-jobs", "p95_ms", 1),
        ("worker-down", "silent_workers", 1),
        ("high-failure-rate", "failed", 10),  # of a thousand attempts, in percent
    ],
)
def test_an_alarm_has_the_limit_of_its_alert(name: str, reading: str, per_unit: int) -> None:
    [rule] = [rule for rule in RULES if rule.name == name.replace("-", "_")]
    limit = int(alarms()[name].properties["Threshold"]) * per_unit
    rest: dict[str, Any] = {"completed": 1000 - limit} if reading == "failed" else {}

    def readings(value: int) -> Readings:
        given: dict[str, Any] = {reading: value, **rest}
        return Readings(**given)

    assert rule.alert(readings(limit)) is None
    assert rule.alert(readings(limit + 1)) is not None


def test_alarms_and_sections_of_the_runbook_match_one_to_one() -> None:
    runbook = (ROOT / "docs/runbook.md").read_text("utf-8")
    found = re.findall(r"^## (.+)\n\nAlarm `([a-z-]+)`, (\w+)\.", runbook, re.MULTILINE)
    of_the_database = {"database-capacity": "warning", "database-proxy-waits": "warning"}  # of stacks/aurora.yaml
    assert {name: severity for _, name, severity in found} == of_the_database | {
        one.name: one.severity for one in alarms().values()
    }
    assert [name for heading, name, _ in found if heading.lower().replace(" ", "-") != name] == []


@each_alarm
def test_an_alarm_says_what_is_the_matter_and_links_what_to_do(alarm: Alarm) -> None:
    assert alarm.severity in ("critical", "warning")
    assert alarm.description.endswith(f" ${{RunbookUrl}}#{alarm.name}")
    assert len(alarm.description) < 700, "CloudWatch takes 1,024, the stack's names and the link included"
    assert alarm.properties["TreatMissingData"] == ("breaching" if alarm.name == "stack-silent" else "notBreaching")


def test_an_alarm_links_the_dashboard_where_no_runbook_is_given() -> None:
    link = "#dashboards/dashboard/${AWS::StackName}"
    assert [name for name, alarm in alarms("least").items() if not alarm.description.endswith(link)] == []


@each_combination
def test_alarm_notifies_the_topic_of_its_severity_at_start_and_end(combination: str) -> None:
    topics = {"critical": [{"Ref": "CriticalTopic"}], "warning": [{"Ref": "OperatorsTopic"}]}
    told = {alarm.name: alarm.properties for alarm in alarms(combination).values()}
    wrong = [
        name
        for name, given in told.items()
        if not given["AlarmActions"] == given["OKActions"] == topics[alarms(combination)[name].severity]
    ]
    assert wrong == []


def test_a_stack_whose_rules_do_not_fire_is_not_taken_for_silent() -> None:
    assert set(alarms("least")) - set(alarms("silent")) == {"stack-silent"}


def test_a_pack_that_is_off_is_not_watched() -> None:
    body = str(dashboards("least")) + str([alarm.properties for alarm in alarms("least").values()])
    assert re.findall(r"forecast|runpod|canary|billing", body, re.IGNORECASE) == []


def test_only_alarms_of_this_stack_may_publish_and_nobody_without_tls() -> None:
    policies = watched().of("AWS::SNS::TopicPolicy").values()
    assert len(policies) == len(watched().of("AWS::SNS::Topic")) == 2
    for policy in policies:
        allowed, denied = statements(policy["PolicyDocument"])
        assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert substituted(allowed["Condition"]["ArnLike"]["aws:SourceArn"]).endswith(f":alarm:{PREFIX}*")
        assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_an_address_is_subscribed_to_the_topics_that_the_stack_makes() -> None:
    subscribed = watched("all").of("AWS::SNS::Subscription").values()
    assert [(one["Protocol"], one["TopicArn"]["Ref"]) for one in subscribed] == [
        ("email", "OperatorsTopic"),
        ("email", "CriticalTopic"),
    ]
    assert watched("least").of("AWS::SNS::Subscription") == {}
