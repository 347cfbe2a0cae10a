"""A rule's target gets its input as in the examples of EventBridge's documentation, and at the edges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signalbox_laptop.event_sources.rule import Rule, RuleTarget
from signalbox_laptop.event_sources.target_input import InputInvalid, input_of, part_of, render

EVENT: dict[str, Any] = {
    "version": "0",
    "id": "7bf73129",
    "source": "aws.events",
    "time": "2026-03-29T00:45:00Z",
    "resources": ["arn:aws:events:us-east-1:123456789012:rule/signalbox.poll_data"],
    "detail": {"instance-id": "i-1", "count": 3, "tags": ["a", "b"], "text": 'say "hi"\n', "none": None},
}
RULE = Rule("signalbox.poll_data", EVENT["resources"][0], "rate(1 minute)", True, ())
VALUES = {"instance": "i-1", "count": 3, "object": {"a": 'x"y'}, "text": 'say "hi"\n', "none": None}


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ('"instance <instance> counts <count>"', "instance i-1 counts 3"),
        ('"instance \\"<instance>\\" counts"', 'instance "i-1" counts'),
        ('{"instance": <instance>, "count": <count>}', {"instance": "i-1", "count": 3}),
        ('{"instance": "<instance>"}', {"instance": "i-1"}),
        ('{"both": "<instance>/<count>", "plain": "no variable"}', {"both": "i-1/3", "plain": "no variable"}),
        ('{"object": <object>, "list": [<count>, <instance>]}', {"object": {"a": 'x"y'}, "list": [3, "i-1"]}),
        ('{"object": "<object>"}', {"object": '{"a": "x\\"y"}'}),
        ('{"text": <text>, "quoted": "<text>"}', {"text": 'say "hi"\n', "quoted": 'say "hi"\n'}),
        ('{"none": <none>}', {"none": None}),
        ('{"missing": <missing>, "quoted": "[<missing>]"}', {"missing": "", "quoted": "[]"}),
        ('{\n  "spread": <instance>\n}', {"spread": "i-1"}),
        ("<object>", {"a": 'x"y'}),
    ],
)
def test_a_template_gives_the_json_that_eventbridge_gives(template: str, rendered: Any) -> None:
    assert json.loads(render(template, VALUES)) == rendered


def test_a_template_that_gives_no_json_is_refused_with_its_text() -> None:
    with pytest.raises(InputInvalid, match="<count> and more"):
        render('{"count": <count> and more}', VALUES)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("$", EVENT),
        ("$.time", "2026-03-29T00:45:00Z"),
        ("$.detail.instance-id", "i-1"),
        ("$.detail.tags[1]", "b"),
        ("$.detail.tags[*]", ["a", "b"]),
        ("$.resources[0]", EVENT["resources"][0]),
        ("$.detail.none", None),
    ],
)
def test_a_path_leads_to_a_part_of_the_event(path: str, part: Any) -> None:
    assert part_of(EVENT, path) == part


@pytest.mark.parametrize("path", ["$.absent", "$.detail.tags[9]", "$.time.hour", "$.detail.tags.first"])
def test_a_path_that_leads_nowhere_is_empty_in_the_template(path: str) -> None:
    target = RuleTarget("t", "arn", input_paths_map={"x": path}, input_template='{"x": "<x>"}')
    assert json.loads(input_of(RULE, target, EVENT)) == {"x": ""}


def test_without_an_input_the_target_gets_the_event() -> None:
    assert json.loads(input_of(RULE, RuleTarget("t", "arn"), EVENT)) == EVENT


def test_a_constant_input_is_sent_as_it_stands() -> None:
    assert input_of(RULE, RuleTarget("t", "arn", input='{"task":  "sweep_runs"}'), EVENT) == '{"task":  "sweep_runs"}'


def test_an_input_path_sends_a_part_of_the_event() -> None:
    assert json.loads(input_of(RULE, RuleTarget("t", "arn", input_path="$.detail.tags"), EVENT)) == ["a", "b"]


def test_the_scheduled_instant_reaches_the_task_as_the_template_writes_it() -> None:
    target = RuleTarget(
        "archiver",
        "arn",
        input_paths_map={"time": "$.time"},
        input_template='{"task": "poll_data", "scheduled_time": <time>}',
    )
    assert json.loads(input_of(RULE, target, EVENT)) == {"task": "poll_data", "scheduled_time": "2026-03-29T00:45:00Z"}


def test_reserved_variables_need_no_path() -> None:
    template = (
        '{"rule": <aws.events.rule-name>, "arn": "<aws.events.rule-arn>", "at": <aws.events.event.ingestion-time>, '
        '"event": <aws.events.event>, "all": <aws.events.event.json>}'
    )
    sent = json.loads(input_of(RULE, RuleTarget("t", "arn", input_template=template), EVENT))
    assert sent["rule"] == "signalbox.poll_data"
    assert sent["arn"] == RULE.arn
    assert sent["at"] == EVENT["time"]
    assert sent["all"] == EVENT
    assert "detail" not in sent["event"]
    assert sent["event"]["id"] == EVENT["id"]
