"""Messages whose batch found no database: back in their lane after half a minute, and each time after twice as long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from signalbox.errors import DatabaseUnavailable
from signalbox.invocation import Invocation
from signalbox.worker import driver, visibility
from tests.support.jobs_stage import JobsStage, sqs_event
from tests.support.lane_stand_in import LaneStandIn
from tests.support.outage import away
from tests.support.workshop import Workshop


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PATIENCE_SECONDS", 0.1)


def taken(stage: JobsStage, number: int) -> dict[str, Any]:
    """So many messages of a lane, hidden from now on, as Lambda hands them to a function."""
    url = stage.url_of("normal")
    records: list[dict[str, Any]] = []
    while len(records) < number:
        answer = stage.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        records += [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{stage.stack}-normal",
            }
            for message in answer["Messages"]
        ]
    return {"Records": records}


def invoke(workshop: Workshop, receives: int) -> None:
    event = sqs_event([workshop.submit()], receives=receives)
    with away(workshop.db), pytest.raises(DatabaseUnavailable):
        workshop.engine.work(event, Invocation.of("request", datetime.now(UTC), 300))


def test_they_are_in_their_lane_again(
    jobs_stage: JobsStage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "FIRST_SECONDS", 0)
    submitted = jobs_stage.submit(*["do_nothing"] * 12)
    jobs_stage.send_jobs(submitted)
    event = taken(jobs_stage, 12)
    assert jobs_stage.receive("normal") == []
    with away(db), pytest.raises(DatabaseUnavailable):
        jobs_stage.work(event)
    assert {message["job_id"] for message in jobs_stage.receive("normal")} == {job.id for job in submitted}


@pytest.mark.parametrize(("receives", "seconds"), [(1, 30), (2, 60), (5, 480), (6, 900), (400, 900)])
def test_the_oftener_they_have_come_the_longer_they_wait(
    workshop: Workshop, lanes: LaneStandIn, receives: int, seconds: int
) -> None:
    invoke(workshop, receives)
    assert list(lanes.hidden) == [("normal", seconds)]


def test_a_lane_that_is_away_as_well_changes_nothing_of_what_is_told(
    workshop: Workshop, lanes: LaneStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    lanes.away.add("normal")
    invoke(workshop, 1)
    assert "messages.not_brought_back" in caplog.messages


def test_messages_that_somebody_wrote_by_hand_have_no_lane_to_go_back_to(
    workshop: Workshop, lanes: LaneStandIn
) -> None:
    job = workshop.submit()
    with away(workshop.db), pytest.raises(DatabaseUnavailable):
        workshop.work(job.id)
    assert list(lanes.hidden) == []
