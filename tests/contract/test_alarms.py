"""What is watched is what is measured, by the limits that the code has, and each alarm says what to do about it."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from signalbox.jobs.alerts import RULES, Readings
from signalbox.jobs.gauges import HEALTH
from signalbox.jobs.health import PlaneHealth
from signalbox.packs import registry_of
from tests.support.alarms import Metric, metrics_of, window_of, written
from tests.support.emitted import emitted
from tests.support.template import FUNCTION, QUEUE, ROOT, Template, statements
from tests.support.watched import (
    COMBINATIONS,
    COMPOSITE,
    PREFIX,
    Alarm,
    alarms,
    dashboard,
    filtered,
    metrics_of_widget,
    substituted,
    watched,
)

each_combination = pytest.mark.parametrize("combination", COMBINATIONS)
each_alarm = pytest.mark.parametrize("alarm", alarms().values(), ids=lambda alarm: alarm.name)
SEVERITIES = ("critical", "warning")
RUNBOOK = (ROOT / "docs/runbook.md").read_text("utf-8")
HEADINGS = {
    re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-"): heading
    for heading in re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE)
}
# AWS's own: which dimension they have, of what the resource must be, and how its value is written.
AWS_METRICS: dict[str, list[tuple[str, str, str, set[str]]]] = {
    "AWS/Lambda": [("FunctionName", FUNCTION, "", {"Errors", "Invocations", "Throttles", "Duration"})],
    "AWS/SQS": [
        (
            "QueueName",
            QUEUE,
            ".QueueName",
            {
                "ApproximateNumberOfMessagesVisible",
                "ApproximateNumberOfMessagesNotVisible",
                "NumberOfMessagesSent",
                "NumberOfMessagesReceived",
                "NumberOfMessagesDeleted",
                "NumberOfEmptyReceives",
            },
        )
    ],
    "AWS/Logs": [("LogGroupName", "AWS::Logs::LogGroup", "", {"IncomingBytes"})],
    "AWS/RDS": [
        (
            "DBClusterIdentifier",
            "AWS::RDS::DBCluster",
            "",
            {
                "ACUUtilization",
                "CPUUtilization",
                "ServerlessDatabaseCapacity",
                "VolumeBytesUsed",
                "VolumeReadIOPs",
                "VolumeWriteIOPs",
            },
        ),
        (
            "ProxyName",
            "AWS::RDS::DBProxy",
            "",
            {
                "ClientConnections",
                "DatabaseConnectionsBorrowLatency",
                "DatabaseConnectionsCurrentlyBorrowed",
                "DatabaseConnectionsCurrentlySessionPinned",
            },
        ),
    ],
}


def is_measured(metric: Metric, template: Template) -> bool:
    if metric in emitted() or metric in filtered(template):
        return True
    for dimension, kind, attribute, names in AWS_METRICS.get(metric.namespace, ()):
        values = {"${" + name + attribute + "}" for name in template.of(kind)}
        if metric.name in names and metric.dimensions in {frozenset({(dimension, value)}) for value in values}:
            return True
    return False


@each_combination
def test_no_alarm_and_no_widget_looks_at_what_nobody_measures(combination: str) -> None:
    template = watched(combination)
    looked_at = {metric for alarm in alarms(combination).values() for metric in metrics_of(alarm.properties)}
    looked_at |= {metric for widget in dashboard(combination) for metric in metrics_of_widget(widget)}

    assert len(looked_at) > 80
    assert {metric for metric in looked_at if not is_measured(metric, template)} == set()


def test_a_task_that_is_looked_at_is_one() -> None:
    tasks = {
        value
        for alarm in alarms().values()
        for metric in metrics_of(alarm.properties)
        for name, value in metric.dimensions
        if name == "task"
    }

    assert tasks
    assert tasks <= {task.name for task in registry_of(["forecasts"])}


def test_each_metric_that_a_filter_makes_is_looked_at() -> None:
    shown = {metric for widget in dashboard() for metric in metrics_of_widget(widget)}

    assert filtered() <= shown


@pytest.mark.parametrize("combination", ["least", "silent", "aurora", "topic"])
def test_a_pack_that_is_off_is_not_watched(combination: str) -> None:
    body = str(dashboard(combination)) + str([alarm.properties for alarm in alarms(combination).values()])

    assert re.findall(r"forecast|runpod|canary|billing", body, re.IGNORECASE) == []


def test_a_stack_whose_rules_do_not_fire_is_not_taken_for_silent() -> None:
    assert set(alarms("least")) - set(alarms("silent")) == {"stack-silent"}
    assert "StackSilent" not in rule_of("critical", "silent")


# ---- By the limits that the code has.


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


def test_the_alarms_of_health_tell_degraded_from_unhealthy() -> None:
    degraded, unhealthy = (alarms()[f"health-{name}"].properties["Threshold"] for name in ("degraded", "unhealthy"))

    assert HEALTH[PlaneHealth.HEALTHY] <= degraded < HEALTH[PlaneHealth.DEGRADED]
    assert HEALTH[PlaneHealth.DEGRADED] <= unhealthy < HEALTH[PlaneHealth.UNHEALTHY]


def test_functions_are_measured_against_their_own_time_outs() -> None:
    """A duration in milliseconds, divided by a hundredth of the time-out."""
    timeouts = {"${" + name + "}": int(given["Timeout"]) for name, given in watched().of(FUNCTION).items()}
    calculated = [divisors(alarms()["slow-functions"].properties["Metrics"])]
    calculated += [divisors(_as_queries(widget)) for widget in dashboard() if "time-out" in str(widget)]

    assert len(calculated) == 2
    for found in calculated:
        assert found == {name: timeouts[name] * 10 for name in found}
        assert set(timeouts) - set(found) == {"${MigratorFunction}"}
    assert alarms()["slow-functions"].properties["Threshold"] == 80


def test_what_computing_costs_goes_by_the_functions_memory() -> None:
    memory = {"${" + name + "}": int(given["MemorySize"]) for name, given in watched().of(FUNCTION).items()}
    [widget] = [widget for widget in dashboard() if widget["properties"].get("title") == "Computing"]
    factors = {
        function: float(query["Expression"].rpartition("* ")[2])
        for query in _as_queries(widget)
        if "Expression" in query
        for function in [_function_of(widget, query["Expression"].split()[0])]
    }

    assert factors == {name: memory[name] / 1024 for name in factors}
    assert len(factors) == 5


def divisors(queries: list[dict[str, Any]]) -> dict[str, int]:
    by_id = {query["Id"]: query for query in queries}
    found = {}
    for query in queries:
        if shared := re.fullmatch(r"(?:FILL\()?(\w+)(?:, 0\))? / (\d+)", query.get("Expression", "")):
            [dimension] = by_id[shared[1]]["MetricStat"]["Metric"]["Dimensions"]
            found[written(dimension["Value"])] = int(shared[2])
    return found


def _as_queries(widget: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a widget as an alarm would have them."""
    queries: list[dict[str, Any]] = []
    for line in widget["properties"]["metrics"]:
        options = line[-1] if isinstance(line[-1], dict) else {}
        if "expression" in options:
            queries.append({"Id": options["id"], "Expression": options["expression"]})
        elif "id" in options:
            metric = {"Dimensions": [{"Name": line[2], "Value": line[3]}]}
            queries.append({"Id": options["id"], "MetricStat": {"Metric": metric}})
    return queries


def _function_of(widget: dict[str, Any], id_: str) -> str:
    [query] = [query for query in _as_queries(widget) if query["Id"] == id_]
    return str(query["MetricStat"]["Metric"]["Dimensions"][0]["Value"])


# ---- Whom it tells, and what it says.


@each_alarm
def test_an_alarm_links_the_heading_that_says_what_to_do(alarm: Alarm) -> None:
    assert alarm.anchor == alarm.name
    assert alarm.description.rpartition("#")[0].endswith(" ${RunbookUrl}")
    assert HEADINGS.get(alarm.name), f"docs/runbook.md has no heading for {alarm.name}"


def test_an_alarm_links_the_dashboard_where_no_runbook_is_given() -> None:
    found = {**alarms("least"), **alarms("least", kind=COMPOSITE)}
    home = "https://${AWS::Region}.console.aws.amazon.com/cloudwatch/home?region=${AWS::Region}"
    dashboard_link = f" {home}#dashboards/dashboard/${{AWS::StackName}}"

    assert found
    assert [name for name, alarm in found.items() if not alarm.description.endswith(dashboard_link)] == []


def test_each_alarm_has_its_section_in_the_runbook_and_each_such_section_its_alarm() -> None:
    found = re.findall(r"^## (.+)\n\nAlarm `([a-z-]+)`, (\w+)\.", RUNBOOK, re.MULTILINE)
    told = {name: severity for _, name, severity in found}

    everything = {**alarms(), **alarms(kind=COMPOSITE)}
    assert told == {alarm.name: alarm.severity for alarm in everything.values()}
    assert [name for heading, name, _ in found if HEADINGS[name] != heading] == []
    assert len(found) == len(told)


@each_alarm
def test_an_alarm_says_in_plain_words_what_is_the_matter(alarm: Alarm) -> None:
    assert alarm.severity in SEVERITIES
    assert 80 < len(alarm.description) < 700, "CloudWatch takes 1,024, the stack's names and the link included"
    assert "\n" not in alarm.description


def test_the_links_of_a_deploys_alarms_lead_somewhere_too() -> None:
    linked = {
        substituted(properties["AlarmDescription"]).rpartition("#")[2]
        for properties in watched().of("AWS::CloudWatch::Alarm").values()
    }
    assert linked <= set(HEADINGS)


@each_alarm
def test_an_alarm_says_what_it_takes_missing_data_for_and_stays_within_cloudwatchs_limits(alarm: Alarm) -> None:
    period = window_of(alarm.properties) // int(alarm.properties["EvaluationPeriods"])

    assert alarm.properties["TreatMissingData"] == ("breaching" if alarm.name == "stack-silent" else "notBreaching")
    assert window_of(alarm.properties) <= (7 * 86400 if period >= 3600 else 86400)
    assert len(metrics_of(alarm.properties)) <= 10, "the most that an alarm may calculate with"
    assert len(alarm.properties.get("Metrics", ())) <= 20


@each_combination
def test_every_alarm_tells_the_one_topic(combination: str) -> None:
    topic = {"Ref": "OperatorsTopicArn" if combination == "topic" else "OperatorsTopic"}
    told = {**alarms(combination), **alarms(combination, COMPOSITE)}.values()

    assert [alarm.name for alarm in told if alarm.properties["AlarmActions"] != [topic]] == []
    assert {
        name
        for name, alarm in {**alarms(combination), **alarms(combination, COMPOSITE)}.items()
        if alarm.properties.get("OKActions") == [topic]
    } == {"severity-critical", "severity-warning"}


def test_a_pager_hears_of_every_critical_alarm_and_of_no_warning() -> None:
    """By the filter policy that the documents give."""
    watching = (ROOT / "docs/watching.md").read_text("utf-8")
    [policy] = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", watching, re.DOTALL)]
    [[(field, [match])]] = [policy.items()]
    everything = [*alarms().values(), *alarms(kind=COMPOSITE).values()]
    paged = {alarm.name for alarm in everything if substituted(alarm.properties[field]).startswith(match["prefix"])}

    assert paged == {alarm.name for alarm in everything if alarm.severity == "critical"}


@each_combination
@pytest.mark.parametrize("severity", SEVERITIES)
def test_the_alarm_of_a_severity_is_made_of_all_alarms_of_it(severity: str, combination: str) -> None:
    named = re.findall(r'ALARM\("\$\{(\w+)\}"\)', rule_of(severity, combination))
    expected = {alarm.id for alarm in alarms(combination).values() if alarm.severity == severity}

    assert sorted(named) == sorted(expected)
    assert re.fullmatch(r'ALARM\("[^"]+"\)(\s+OR ALARM\("[^"]+"\))*\s*', rule_of(severity, combination))


def rule_of(severity: str, combination: str) -> str:
    alarm = alarms(combination, COMPOSITE)[f"severity-{severity}"]
    return substituted(alarm.properties["AlarmRule"])


def test_only_alarms_of_this_stack_may_publish_and_nobody_without_tls() -> None:
    [policy] = watched().of("AWS::SNS::TopicPolicy").values()
    allowed, denied = statements(policy["PolicyDocument"])

    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert substituted(allowed["Condition"]["ArnLike"]["aws:SourceArn"]).endswith(f":alarm:{PREFIX}*")
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    [topic] = watched().of("AWS::SNS::Topic").values()
    assert topic["KmsMasterKeyId"] == {"Ref": "StackKey"}
    assert watched("topic").of("AWS::SNS::Topic") == {}


def test_an_address_is_subscribed_to_a_topic_that_the_stack_makes() -> None:
    kind = "AWS::SNS::Subscription"

    assert [one["Protocol"] for one in watched("all").of(kind).values()] == ["email"]
    assert watched("least").of(kind) == watched("topic").of(kind) == {}


# ---- The dashboard.


@each_combination
def test_the_dashboards_widgets_fill_the_grid_and_do_not_overlap(combination: str) -> None:
    widgets = dashboard(combination)

    assert 25 < len(widgets) <= 500
    assert [widget for widget in widgets if widget["x"] < 0 or widget["x"] + widget["width"] > 24] == []
    overlapping = [
        (one, other)
        for one, other in combinations(widgets, 2)
        if one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    ]
    assert overlapping == []


@each_combination
def test_no_row_of_the_dashboard_is_left_empty(combination: str) -> None:
    rows = {row for widget in dashboard(combination) for row in range(widget["y"], widget["y"] + widget["height"])}

    assert rows == set(range(max(rows) + 1))


@each_combination
def test_each_graph_has_a_title_of_its_own_and_says_what_its_axis_counts(combination: str) -> None:
    graphs = [widget for widget in dashboard(combination) if widget["type"] == "metric"]
    titles = [widget["properties"]["title"] for widget in graphs]

    assert len(set(titles)) == len(titles)
    series = [widget["properties"] for widget in graphs if widget["properties"]["view"] == "timeSeries"]
    assert [given["title"] for given in series if not given["yAxis"]["left"]["label"]] == []
    assert {given["region"] for given in (widget["properties"] for widget in graphs)} == {"${AWS::Region}"}


@each_combination
def test_the_dashboard_shows_each_alarm_there_is(combination: str) -> None:
    [widget] = [widget for widget in dashboard(combination) if widget["type"] == "alarm"]
    shown = [arn.partition(f":alarm:{PREFIX}")[2] for arn in widget["properties"]["alarms"]]

    assert sorted(shown) == sorted([*alarms(combination), *alarms(combination, COMPOSITE)])
