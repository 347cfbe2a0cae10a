"""Rules that fire on the laptop reach their targets, are retried, and end in a dead-letter queue if they can't
arrive."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.event_sources.clock import Fired, Firing
from signalbox_laptop.event_sources.delivery import Deliveries, Waits
from signalbox_laptop.event_sources.destination import Destinations
from signalbox_laptop.lambda_api.errors import ContentInvalid, LambdaFault, Throttled
from tests.support.deployed import SECRET, Deployed, deploy_to, moto
from tests.support.small_project import write_small_project

AT = datetime(2026, 3, 29, 0, 45, tzinfo=UTC)
POLL, TICK, FORBIDDEN, DISABLED = (f"signalbox.{name}" for name in ("poll_data", "tick", "forbidden", "disabled"))
ACCOUNT = "us-east-1:123456789012"


@dataclass
class Lambda:
    """Stand for the Lambda service's queue: give the prepared refusals first, then take everything."""

    refusals: list[LambdaFault] = field(default_factory=list)
    taken: list[tuple[str, Any]] = field(default_factory=list)

    def enqueue(self, function: str, payload: bytes) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.taken.append((function.partition(":function:")[2], json.loads(payload)))


@dataclass
class Stage:
    deployed: Deployed
    lambda_: Lambda
    deliveries: Deliveries

    def firing(self) -> Firing:
        return Firing(self.deployed.endpoint, self.deliveries)

    def fire(self, *rules: str, at: datetime = AT) -> list[Fired]:
        return self.firing().fire(at, rules)

    def dead_letter(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the undelivered event, and what EventBridge says of it."""
        assert self.deliveries.wait_until_idle(10)
        message = self.deployed.receive("FailuresUrl")
        attributes = message["MessageAttributes"].items()
        return json.loads(message["Body"]), {name: value["StringValue"] for name, value in attributes}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    project = write_small_project(tmp_path_factory.mktemp("project"))
    with moto(tmp_path_factory.mktemp("home")) as endpoint:
        yield deploy_to(endpoint, project, {"DatabaseSecretArn": SECRET})


@pytest.fixture
def stage(deployed: Deployed) -> Iterator[Stage]:
    lambda_ = Lambda()
    waits = Waits(first_seconds=0.01, longest_seconds=0.02)
    stage = Stage(deployed, lambda_, Deliveries(Destinations.at(deployed.endpoint, lambda_.enqueue), waits))
    yield stage
    stage.deliveries.stop()
    for output in ("TicksUrl", "FailuresUrl"):
        deployed.drain(output)


def test_a_rule_reaches_its_function_with_the_scheduled_instant(stage: Stage) -> None:
    assert stage.fire(POLL) == [Fired(POLL, "2026-03-29T00:45:00Z", targets=1, failed=0)]
    assert stage.lambda_.taken == [
        ("signalbox-archiver", {"task": "poll_data", "scheduled_time": "2026-03-29T00:45:00Z"})
    ]


def test_a_rule_reaches_its_queue_with_the_event_that_eventbridge_makes(stage: Stage) -> None:
    stage.fire(TICK)
    event = json.loads(stage.deployed.receive("TicksUrl")["Body"])
    assert event.pop("id")
    assert event == {
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": "2026-03-29T00:45:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:events:{ACCOUNT}:rule/signalbox.tick"],
        "detail": {},
    }


def test_rule_without_permission_goes_to_its_dead_letter_queue_untried(stage: Stage) -> None:
    assert stage.fire(FORBIDDEN) == [Fired(FORBIDDEN, "2026-03-29T00:45:00Z", targets=1, failed=1)]
    event, said = stage.dead_letter()
    assert stage.lambda_.taken == []
    assert event["time"] == "2026-03-29T00:45:00Z"
    assert "does not allow events.amazonaws.com lambda:InvokeFunction" in said.pop("ERROR_MESSAGE")
    assert said == {
        "RULE_ARN": f"arn:aws:events:{ACCOUNT}:rule/signalbox.forbidden",
        "TARGET_ARN": f"arn:aws:lambda:{ACCOUNT}:function:signalbox-archiver",
        "ERROR_CODE": "NO_PERMISSIONS",
    }


def test_a_throttled_delivery_is_tried_again_until_it_arrives(stage: Stage, permitted: None) -> None:
    stage.lambda_.refusals = [Throttled("ReservedFunctionConcurrentInvocationLimitExceeded") for _ in range(3)]
    assert stage.fire(FORBIDDEN)[0].failed == 1
    assert stage.deliveries.wait_until_idle(10)
    assert stage.lambda_.taken == [("signalbox-archiver", {"task": "sweep_runs"})]
    assert stage.deployed.count("FailuresUrl") == 0


def test_a_delivery_whose_retries_are_spent_ends_in_its_dead_letter_queue(stage: Stage, permitted: None) -> None:
    stage.lambda_.refusals = [LambdaFault("out of order") for _ in range(9)]
    stage.fire(FORBIDDEN)
    _, said = stage.dead_letter()
    assert len(stage.lambda_.refusals) == 9 - 1 - 3
    assert said["ERROR_CODE"] == "SDK_CLIENT_ERROR"
    assert said["ERROR_MESSAGE"] == "out of order"
    assert said["RETRY_ATTEMPTS"] == "3"
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumRetryAttempts"


def test_what_lambda_would_refuse_again_is_not_tried_again(stage: Stage, permitted: None) -> None:
    stage.lambda_.refusals = [ContentInvalid("no JSON"), ContentInvalid("no JSON")]
    stage.fire(FORBIDDEN)
    _, said = stage.dead_letter()
    assert len(stage.lambda_.refusals) == 1
    assert "EXHAUSTED_RETRY_CONDITION" not in said


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ({"Arn": f"arn:aws:lambda:{ACCOUNT}:function:gone"}, "NO_RESOURCE"),
        ({"Arn": f"arn:aws:sqs:{ACCOUNT}:gone"}, "NO_RESOURCE"),
        ({"Arn": f"arn:aws:sns:{ACCOUNT}:topic"}, "INVALID_PARAMETER"),
        ({"Arn": f"arn:aws:sqs:{ACCOUNT}:x", "InputTransformer": {"InputTemplate": "{no json}"}}, "INVALID_JSON"),
    ],
)
def test_a_target_that_can_not_be_reached_says_why(stage: Stage, target: dict[str, Any], code: str) -> None:
    events = stage.deployed.client("events")
    dead_letters = {"DeadLetterConfig": {"Arn": queue_arn(stage.deployed, "FailuresUrl")}}
    events.put_rule(Name="ad-hoc", ScheduleExpression="rate(1 day)")
    events.put_targets(Rule="ad-hoc", Targets=[{"Id": "t", **target, **dead_letters}])
    try:
        stage.fire("ad-hoc")
        assert stage.dead_letter()[1]["ERROR_CODE"] == code
    finally:
        events.remove_targets(Rule="ad-hoc", Ids=["t"])
        events.delete_rule(Name="ad-hoc")


def test_a_queue_without_a_policy_lets_no_rule_in(stage: Stage) -> None:
    events = stage.deployed.client("events")
    events.put_rule(Name="ad-hoc", ScheduleExpression="rate(1 day)")
    target = {"Id": "t", "Arn": queue_arn(stage.deployed, "InboxUrl")}
    dead_letters = {"DeadLetterConfig": {"Arn": queue_arn(stage.deployed, "FailuresUrl")}}
    events.put_targets(Rule="ad-hoc", Targets=[{**target, **dead_letters}])
    try:
        stage.fire("ad-hoc")
        assert stage.dead_letter()[1]["ERROR_CODE"] == "NO_PERMISSIONS"
    finally:
        events.remove_targets(Rule="ad-hoc", Ids=["t"])
        events.delete_rule(Name="ad-hoc")


def test_every_enabled_rule_fires_when_none_is_named(stage: Stage) -> None:
    assert [fired.rule for fired in stage.firing().fire(AT)] == [FORBIDDEN, POLL, TICK]
    assert stage.deployed.receive("TicksUrl")


@pytest.mark.parametrize(
    ("minute", "due"), [(45, [POLL, TICK]), (46, [TICK])], ids=["on the quarter", "off the quarter"]
)
def test_with_due_only_those_fire_that_are_due(stage: Stage, minute: int, due: list[str]) -> None:
    fired = stage.firing().fire(AT.replace(minute=minute), due=True)
    assert [one.rule for one in fired] == due


@pytest.mark.parametrize(
    ("name", "fault"),
    [("signalbox.pol", "no rule is named signalbox.pol; this stack has .*signalbox.poll_data"), (DISABLED, "disabled")],
)
def test_a_named_rule_that_can_not_fire_is_an_error(stage: Stage, name: str, fault: str) -> None:
    with pytest.raises(LaptopError, match=fault):
        stage.fire(name)


def test_the_clock_fires_at_the_whole_minute_what_is_due(stage: Stage) -> None:
    clock = Clock(AT - timedelta(milliseconds=20))
    firing = Firing(stage.deployed.endpoint, stage.deliveries, clock)
    firing.start_clock()
    try:
        clock.ask_twice()
        assert stage.deployed.count("TicksUrl") == 0
        clock.instant = AT + timedelta(milliseconds=5)
        assert json.loads(stage.deployed.receive("TicksUrl")["Body"])["time"] == "2026-03-29T00:45:00Z"
    finally:
        firing.stop()
    assert stage.lambda_.taken[0][1]["scheduled_time"] == "2026-03-29T00:45:00Z"


def test_machine_that_slept_fires_only_the_current_minute(stage: Stage) -> None:
    clock = Clock(AT - timedelta(hours=3, milliseconds=20))
    firing = Firing(stage.deployed.endpoint, stage.deliveries, clock)
    firing.start_clock()
    try:
        clock.instant = AT + timedelta(seconds=59, milliseconds=990)
        assert json.loads(stage.deployed.receive("TicksUrl")["Body"])["time"] == "2026-03-29T00:45:00Z"
        clock.ask_twice()
        assert stage.deployed.count("TicksUrl") == 0
    finally:
        firing.stop()


class Clock:
    """Stand still until a test moves the clock; stay near a whole minute, so that the asker asks often."""

    def __init__(self, instant: datetime) -> None:
        self.instant = instant
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()

    def __call__(self) -> datetime:
        self._asked.put(None)
        return self.instant

    def ask_twice(self) -> None:
        """Wait until it was asked again, and the work that followed the answer before is done."""
        while not self._asked.empty():
            self._asked.get()
        for _ in range(4):
            self._asked.get(timeout=10)


@pytest.fixture
def permitted(deployed: Deployed) -> Iterator[None]:
    """Let the function admit the otherwise forbidden rule."""
    lambda_ = deployed.client("lambda")
    lambda_.add_permission(
        FunctionName="signalbox-archiver",
        StatementId="for-a-test",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=f"arn:aws:events:{ACCOUNT}:rule/signalbox.forbidden",
    )
    yield
    lambda_.remove_permission(FunctionName="signalbox-archiver", StatementId="for-a-test")


def queue_arn(deployed: Deployed, output: str) -> str:
    return f"arn:aws:sqs:{ACCOUNT}:{deployed.outputs()[output].rpartition('/')[2]}"
