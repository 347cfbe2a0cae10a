"""Versions and aliases: what is invoked by which name, and what becomes of its failures."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.support.lambda_stand import Stand

pytest_plugins = ["tests.support.lambda_stand"]


def aliased(stand: Stand, *, weights: dict[str, float] | None = None) -> str:
    """A function with the versions 1 and 2, and the alias live at 1."""
    name, lambda_ = stand.deploy("echo"), stand.lambda_
    for timeout in (11, 12):
        lambda_.update_function_configuration(FunctionName=name, Timeout=timeout)
        lambda_.publish_version(FunctionName=name)
    routing: Any = {"RoutingConfig": {"AdditionalVersionWeights": weights}} if weights else {}
    lambda_.create_alias(FunctionName=name, Name="live", FunctionVersion="1", **routing)
    return name


@pytest.mark.parametrize("form", ["{name}:live", "arn:aws:lambda:us-east-1:123456789012:function:{name}:live"])
def test_an_alias_runs_its_version_and_says_so(stand: Stand, form: str) -> None:
    name = aliased(stand)
    answer = stand.invoke(form.format(name=name))
    said = json.load(answer["Payload"])
    assert (answer["ExecutedVersion"], said["version"]) == ("1", "1")
    assert said["arn"].endswith(f":function:{name}:live")
    assert 10_000 < said["remaining_ms"] <= 11_000


def test_without_a_qualifier_what_was_deployed_last_runs(stand: Stand) -> None:
    name = aliased(stand)
    stand.lambda_.update_function_configuration(FunctionName=name, Timeout=13)
    said = stand.call(name)
    assert (said["version"], said["arn"].rpartition(":")[2]) == ("$LATEST", name)
    assert 12_000 < said["remaining_ms"] <= 13_000


def test_an_alias_that_moves_is_followed_at_once(stand: Stand) -> None:
    name = aliased(stand)
    assert stand.call(f"{name}:live")["version"] == "1"
    stand.lambda_.update_alias(FunctionName=name, Name="live", FunctionVersion="2")
    assert stand.call(name, Qualifier="live")["version"] == "2"


def test_calls_are_dealt_out_by_weight(stand: Stand) -> None:
    name = aliased(stand, weights={"2": 0.3})
    for _ in range(10):
        stand.invoke(f"{name}:live", InvocationType="DryRun")
    assert Counter(stand.call(f"{name}:live")["version"] for _ in range(20)) == {"1": 14, "2": 6}


@pytest.mark.parametrize("kind", ["RequestResponse", "Event", "DryRun"])
@pytest.mark.parametrize("qualifier", ["other", "7"])
def test_a_qualifier_that_is_not_there_is_refused_as_lambda_refuses_it(stand: Stand, kind: Any, qualifier: str) -> None:
    name = aliased(stand)
    with pytest.raises(ClientError) as caught:
        stand.invoke(name, Qualifier=qualifier, InvocationType=kind)
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
    assert caught.value.response["Error"]["Message"].endswith(f":function:{name}:{qualifier}")


def test_what_is_configured_for_an_alias_is_not_for_the_function(stand: Stand) -> None:
    name = stand.deploy("flaky", variables={"FAILS": "always"})
    stand.lambda_.publish_version(FunctionName=name)
    stand.lambda_.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
    url, arn = stand.create_queue()
    config: Any = {"MaximumRetryAttempts": 0, "DestinationConfig": {"OnFailure": {"Destination": arn}}}
    stand.lambda_.put_function_event_invoke_config(FunctionName=name, Qualifier="live", **config)
    for one in (name, f"{name}:live"):
        stand.invoke(one, {"for": one}, InvocationType="Event")
    assert stand.service.idle(20)
    (message,) = stand.receive(url)
    record = json.loads(message["Body"])
    assert record["requestPayload"] == {"for": f"{name}:live"}
    assert record["requestContext"]["functionArn"].endswith(f":{name}:live")
    assert record["responseContext"]["executedVersion"] == "1"


def test_a_mapping_of_an_alias_follows_it(stand: Stand) -> None:
    name = aliased(stand)
    url, arn = stand.create_queue()
    stand.map(arn, f"{name}:live")
    (mapping,) = stand.lambda_.list_event_source_mappings(FunctionName=f"{name}:live")["EventSourceMappings"]
    assert mapping["FunctionArn"].endswith(f":{name}:live")
    for version in ("1", "2"):
        stand.lambda_.update_alias(FunctionName=name, Name="live", FunctionVersion=version)
        stand.client("sqs").send_message(QueueUrl=url, MessageBody="go")
        assert stand.service.idle(20)
    figures = [one for one in stand.service.figures() if one["function"] == name]
    assert {one["version"]: one["Invocations"] for one in figures} == {"1": 1, "2": 1}
