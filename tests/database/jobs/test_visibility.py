"""Messages whose batch found no database return after half a minute, then after twice as long."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from signalbox.errors import DatabaseUnavailable
from signalbox.publish.publisher import messages_of
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.sqs_events import sqs_event
from signalbox.testing.stage import Stage
from signalbox.worker import driver, visibility
from tests.support.moto_lanes import MotoLanes
from tests.support.outage import away


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 0.1)


def taken(queues: MotoLanes, number: int) -> dict[str, Any]:
    """Receive that many messages of a lane, as Lambda hands them to a function."""
    url, found = queues.url_of("normal"), list[dict[str, Any]]()
    while len(found) < number:
        found += queues.poll(url)
    arn = f"arn:aws:sqs:us-east-1:123456789012:{queues.stack}-normal"
    names = {"messageId": "MessageId", "receiptHandle": "ReceiptHandle", "body": "Body", "attributes": "Attributes"}
    records = [{ours: message[theirs] for ours, theirs in names.items()} for message in found]
    return {"Records": [record | {"eventSourceARN": arn} for record in records]}


def find_no_database(stage: Stage, receives: int) -> None:
    event = sqs_event(stage.submit_all(["do_nothing"]), receives=receives)
    with away(stage.db), pytest.raises(DatabaseUnavailable):
        stage.work(event=event)


def test_they_are_in_their_lane_again(
    stage: Stage, db: psycopg.Connection, queues: MotoLanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "FIRST_SECONDS", 0)
    stage = stage.another(stack=queues.stack)
    submitted = stage.submit_all(["do_nothing"] * 12)
    stage.app.resources.publisher.send(messages_of(submitted))
    event = taken(queues, 12)
    assert queues.receive("normal") == []
    with away(db), pytest.raises(DatabaseUnavailable):
        stage.work(event=event)
    assert {message["job_id"] for message in queues.receive("normal")} == {job.id for job in submitted}


@pytest.mark.parametrize(("receives", "seconds"), [(1, 30), (2, 60), (5, 480), (6, 900), (400, 900)])
def test_the_oftener_they_have_come_the_longer_they_wait(
    stage: Stage, lanes: AwsStandIn, receives: int, seconds: int
) -> None:
    find_no_database(stage, receives)
    assert list(lanes.hidden) == [("signalbox-normal", seconds)]


def test_unavailable_lane_does_not_change_the_reported_error(
    stage: Stage, lanes: AwsStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    lanes.away.add("normal")
    find_no_database(stage, 1)
    assert "messages.not_brought_back" in caplog.messages


def test_messages_that_somebody_wrote_by_hand_have_no_lane_to_go_back_to(stage: Stage, lanes: AwsStandIn) -> None:
    job_id = stage.submit("do_nothing")
    with away(stage.db), pytest.raises(DatabaseUnavailable):
        stage.work(job_id)
    assert list(lanes.hidden) == []
