"""A canary that fails: the deploy is stopped at its first step, all goes back to the old version, and nothing is lost.

CodeDeploy is played from the template as it is deployed to production; functions, versions, alias, retries and mapping
are those of the laptop's Lambda service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.code_deploy import CodeDeploy, Ended, Measured, gradual_template
from tests.support.template import ALARM, Template

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand

pytest_plugins = ["tests.support.lambda_stand"]

GRADUAL = ("ArchiverFunction", "PollerFunction", "WorkerFunction", "WorkerHeavyFunction")
# Of which each tenth goes to a version with a tenth of the calls.
EVENTS = 20
CALLS = 10


@dataclass(frozen=True)
class Canary:
    """A function with two versions, and the deploy of the second."""

    stand: Stand
    name: str
    deployment: CodeDeploy
    failures: str  # the queue's URL

    @property
    def live(self) -> str:
        return f"{self.name}:live"

    def deploy(self, traffic: Callable[[], None]) -> Ended:
        measured = Measured(self.figures, self.deployment.names("1", "2"))
        return self.deployment.deploy("1", "2", measured, traffic)

    def figures(self) -> list[dict[str, Any]]:
        return [one for one in self.stand.service.figures() if one["function"] == self.name]

    def counted(self, metric: str) -> dict[str, int]:
        """By version."""
        return {one["version"]: one.get(metric, 0) for one in self.figures() if one["qualifier"] == "live"}

    def alias(self) -> tuple[str, Mapping[str, float]]:
        found = self.stand.lambda_.get_alias(FunctionName=self.name, Name="live")
        return found["FunctionVersion"], found.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})

    def send_events(self) -> None:
        for number in range(EVENTS):
            payload = json.dumps({"number": number}).encode()
            self.stand.lambda_.invoke(FunctionName=self.live, InvocationType="Event", Payload=payload)
        assert self.stand.service.idle(20)

    def call(self) -> None:
        """One after the other, which takes a process for each version and no more."""
        for _ in range(CALLS):
            self.stand.invoke(self.live)

    def lost(self) -> int:
        """Events that ended among the failures."""
        held = self.stand.client("sqs").get_queue_attributes(QueueUrl=self.failures, AttributeNames=["All"])
        return int(held["Attributes"]["ApproximateNumberOfMessages"])


def canary(
    stand: Stand, function: str, *, old: str = "", new: str = "always", deployed: Template | None = None
) -> Canary:
    """`old` and `new` say how the two versions fail."""
    name = stand.deploy("flaky", variables={"FAILS": old})
    lambda_ = stand.lambda_
    for fails in (old, new):
        environment: Any = {"Variables": {"FAILS": fails, "PUPPETEER": ""}}
        lambda_.update_function_configuration(FunctionName=name, Environment=environment)
        lambda_.publish_version(FunctionName=name)
    lambda_.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
    url, arn = stand.create_queue()
    lambda_.put_function_event_invoke_config(
        FunctionName=name,
        Qualifier="live",
        MaximumRetryAttempts=2,
        DestinationConfig={"OnFailure": {"Destination": arn}},
    )
    return Canary(stand, name, CodeDeploy(deployed or gradual_template(), function, name, lambda_), url)


@pytest.mark.parametrize("function", GRADUAL)
def test_a_version_that_fails_is_stopped_at_its_first_step_and_no_event_is_lost(stand: Stand, function: str) -> None:
    deploy = canary(stand, function)
    ended = deploy.deploy(deploy.send_events)
    assert ended.weights == (10,)
    assert ended.alarms == (f"{function.removesuffix('Function')}DeployErrors",)
    assert deploy.alias() == ("1", {})
    assert deploy.counted("Errors")["2"] == deploy.counted("Invocations")["2"] == EVENTS // 10
    assert deploy.counted("Errors")["1"] == 0
    assert deploy.counted("Invocations")["1"] == EVENTS, "each event succeeded once"
    assert deploy.lost() == 0


def test_after_the_way_back_nothing_meets_the_version_that_failed(stand: Stand) -> None:
    deploy = canary(stand, "ArchiverFunction")
    deploy.deploy(deploy.send_events)
    met = deploy.counted("Invocations")["2"]
    deploy.send_events()
    assert deploy.counted("Invocations") == {"1": 2 * EVENTS, "2": met}


def test_messages_that_a_failing_version_met_come_back_to_the_old_one(stand: Stand) -> None:
    deploy = canary(stand, "WorkerHeavyFunction")
    url, arn = stand.create_queue(VisibilityTimeout="1")
    stand.map(arn, deploy.live, BatchSize=1)
    sqs = stand.client("sqs")

    def send() -> None:
        entries = [{"Id": str(number), "MessageBody": str(number)} for number in range(10)]
        for _ in range(EVENTS // 10):
            sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert stand.service.idle(20)

    assert deploy.deploy(send).rolled_back
    attributes: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    while any(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=attributes)["Attributes"].values())):
        assert stand.service.idle(20)
    assert deploy.counted("Invocations")["1"] == EVENTS, "each message succeeded once"
    assert deploy.alias() == ("1", {})


@pytest.mark.parametrize(
    ("preference", "weights"),
    [
        ("Linear10PercentEvery2Minutes", (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)),
        ("Canary10Percent5Minutes", (10, 100)),
        ("AllAtOnce", (100,)),
    ],
)
def test_a_good_version_takes_over_step_by_step(stand: Stand, preference: str, weights: tuple[int, ...]) -> None:
    deploy = canary(stand, "WorkerFunction", new="", deployed=gradual_template(preference))
    shares: list[int] = []

    def send() -> None:
        before = deploy.counted("Invocations").get("2", 0)
        deploy.call()
        shares.append((deploy.counted("Invocations").get("2", 0) - before) * 100 // CALLS)

    ended = deploy.deploy(send)
    assert (ended.weights, ended.alarms) == (weights, ())
    assert tuple(shares) == weights
    assert deploy.alias() == ("2", {})


def test_what_fails_on_both_versions_stops_no_deploy_while_there_are_both(stand: Stand) -> None:
    """As when the database is gone. Once the new version is alone, nobody can tell."""
    deploy = canary(stand, "ArchiverFunction", old="always", new="always")
    assert deploy.deploy(deploy.call).weights == (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def without(dimension: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda dimensions: [one for one in dimensions if one["Name"] != dimension]


def of_another_version(dimensions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"Value": "$LATEST"} if one["Name"] == "ExecutedVersion" else one for one in dimensions]


@pytest.mark.parametrize("wrong", [without("FunctionName"), without("Resource"), of_another_version])
def test_an_alarm_with_a_wrong_dimension_would_let_the_failing_version_pass(stand: Stand, wrong: Any) -> None:
    """So what is tried above are the template's dimensions."""
    altered, alarm = gradual_template(), "ArchiverDeployErrors"
    for index, one in enumerate(altered.of(ALARM)[alarm]["Metrics"]):
        if "MetricStat" in one:
            dimensions = wrong(one["MetricStat"]["Metric"]["Dimensions"])
            altered = altered.altered(f"{alarm}.Metrics.{index}.MetricStat.Metric.Dimensions", dimensions)
    deploy = canary(stand, "ArchiverFunction", deployed=altered)
    assert not deploy.deploy(deploy.call).rolled_back
    assert deploy.alias() == ("2", {})
