"""Lanes carry only which job to look at, to the queue that its submit chose, by tenant."""

from __future__ import annotations

from datetime import timedelta

import pytest

from signalbox.errors import Unavailable
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import SQS_MAX_DELAY
from signalbox.packs.job_type import Lane
from signalbox.publish.lanes import Lanes
from signalbox.publish.publisher import messages_of
from signalbox.submit.new_job import NewJob, Submitted
from signalbox.testing.sqs_events import sqs_event
from signalbox.testing.stage import Stage
from tests.support.jobs import obeying
from tests.support.moto_lanes import MotoLanes


@pytest.fixture
def stage(stage: Stage, queues: MotoLanes) -> Stage:
    return stage.another(stack=queues.stack)


def lanes_of(stage: Stage) -> Lanes:
    return Lanes(stage.app.resources.clients, stage.app.resources.settings.stack)


def send(stage: Stage, submitted: list[Submitted]) -> int:
    return lanes_of(stage).send(messages_of(submitted))


@pytest.mark.parametrize(
    ("priority", "lane"), [(1, Lane.HIGH), (3, Lane.HIGH), (4, Lane.NORMAL), (7, Lane.NORMAL), (8, Lane.LOW)]
)
def test_a_job_is_sent_to_the_lane_of_its_priority(stage: Stage, queues: MotoLanes, priority: int, lane: Lane) -> None:
    submitted = stage.submit_all([NewJob(job_type="do_nothing", priority=priority)])
    assert send(stage, submitted) == 1
    (message,) = queues.receive(lane)
    assert message["job_id"] == submitted[0].id


def test_a_message_holds_the_id_and_the_type_and_is_grouped_by_tenant(stage: Stage, queues: MotoLanes) -> None:
    submitted = stage.submit_all([NewJob(job_type="do_nothing", tenant="Ärzte am Markt", payload={"number": 7})])
    send(stage, submitted)
    assert queues.receive("normal") == [
        {"job_id": submitted[0].id, "job_type": "do_nothing", "group": "-rzte-am-Markt"}
    ]


def test_a_job_without_a_tenant_shares_one_group_with_the_others_like_it(stage: Stage, queues: MotoLanes) -> None:
    send(stage, stage.submit_all(["do_nothing"] * 2))
    assert [message["group"] for message in queues.receive("normal")] == ["-", "-"]


def test_many_jobs_are_sent_in_calls_of_ten_and_each_arrives_once(stage: Stage, queues: MotoLanes) -> None:
    submitted = stage.submit_all(["do_nothing"] * 43)
    assert send(stage, submitted) == 43
    assert sorted(message["job_id"] for message in queues.receive("normal")) == sorted(one.id for one in submitted)


def test_what_waits_for_its_time_is_not_sent(stage: Stage) -> None:
    submitted = stage.submit_all([NewJob(job_type="do_nothing", delay=timedelta(minutes=1))])
    assert send(stage, submitted) == 0
    assert lanes_of(stage).depth("normal") == 0


def test_a_delay_beyond_what_sqs_knows_is_cut_to_that(stage: Stage, queues: MotoLanes) -> None:
    job_id = stage.submit("do_nothing")
    message = JobMessage(job_id, "do_nothing", "low", delay=SQS_MAX_DELAY * 2)
    assert lanes_of(stage).send([message]) == 1
    assert queues.delayed("low") == 1
    assert lanes_of(stage).depth("low") == 1


def test_a_lane_that_is_not_there_is_named(stage: Stage) -> None:
    elsewhere = Lanes(stage.app.resources.clients, "nowhere")
    with pytest.raises(Unavailable, match="queue nowhere-normal does not accept messages"):
        elsewhere.send([JobMessage("018f0000-0000-7000-8000-000000000000", "do_nothing", "normal")])
    with pytest.raises(Unavailable, match="lane 'high' does not report its depth"):
        elsewhere.depth("high")


def test_the_worker_completes_what_a_lane_brings(stage: Stage) -> None:
    jobs = stage.submit_all(["do_nothing"] * 3)
    assert stage.work(event=sqs_event(jobs)) == {"batchItemFailures": []}
    assert set(stage.statuses(*(job.id for job in jobs))) == {"completed"}


def test_retry_due_within_fifteen_minutes_returns_to_its_lane_delayed(stage: Stage, queues: MotoLanes) -> None:
    job_id = stage.submit(obeying("fail", 300))
    stage.work(job_id)
    assert stage.status(job_id) == "pending"
    assert queues.delayed("normal") == 1


def test_a_message_that_nobody_can_read_comes_back_alone(stage: Stage) -> None:
    jobs = stage.submit_all(["do_nothing"])
    event = sqs_event([*jobs, "not a job", '{"job_id": 7}'])
    failed = stage.work(event=event)["batchItemFailures"]
    assert [one["itemIdentifier"] for one in failed] == [record["messageId"] for record in event["Records"][1:]]
    assert stage.status(jobs[0].id) == "completed"
